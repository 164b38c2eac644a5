"""Building an image without an engine or a registry, and running it as a container would be.

A build takes the steps of the Dockerfile on a Debian made by debootstrap. What runs gets the image's files read-only,
`/tmp` in memory, the image's user and environment and no way to more rights, but this machine's network and processes.
"""

from __future__ import annotations

import configparser
import json
import os
import shlex
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.support.node import Node

from noonmark.devstack.processes import processes

BUNDLE_IN_BUILD = "/run/secrets/ca_bundle"

# In a mount namespace of its own, so that nothing of it outlives the process.
_CONTAIN = """
set -e
mount --bind "$ROOT" "$ROOT"
mount --rbind /proc "$ROOT/proc"
mount --rbind /dev "$ROOT/dev"
mount -t tmpfs -o mode=1777,nosuid,nodev tmpfs "$ROOT/tmp"
for pair in $BINDS; do mount --bind -o ro "${pair%%:*}" "$ROOT${pair##*:}"; done
mount -o remount,bind,ro "$ROOT"
exec setpriv --no-new-privs chroot --userspec="$AS" "$ROOT" "$@"
"""


@dataclass(frozen=True, slots=True)
class Buildah:
    """Images kept in a folder of their own."""

    folder: Path

    def call(self, *arguments: str, **more: Any) -> str:
        """Run buildah; return its output."""
        store = ["--root", f"{self.folder}/store", "--runroot", f"{self.folder}/run"]
        done = subprocess.run(
            ["buildah", *store, *arguments],
            check=False,
            capture_output=True,
            text=True,
            env={**os.environ, "BUILDAH_ISOLATION": "chroot"},
            **more,
        )
        assert done.returncode == 0, f"buildah {shlex.join(arguments)}:\n{done.stdout}\n{done.stderr}"
        return done.stdout.strip()

    def load(self, archive: Path, name: str) -> None:
        """Make an image of a tar file of its files."""
        container = self.call("from", "scratch")
        self.call("add", "--quiet", container, str(archive), "/")
        self.call("commit", "--quiet", "--rm", container, name)

    def build(self, context: Path, name: str, *, base: str) -> str:
        """Build the Dockerfile of a folder on a base that is here; packages come as pip of this machine gets them.

        Returns:
            What the build printed.
        """
        config, bundle = self._pip_settings()
        secrets = [f"--secret=id=pip_conf,src={config}"]
        if bundle:
            secrets.append(f"--secret=id=ca_bundle,src={bundle}")
        options = ("--format=docker", "--pull-never", f"--build-arg=BASE={base}", f"--tag={name}")
        return self.call("build", *options, *secrets, str(context))

    def _pip_settings(self) -> tuple[Path, str]:
        """Write the settings of this machine's pip as one file, its certificates at the place of the build's."""
        said = subprocess.run(
            ["python3", "-m", "pip", "config", "list"], check=True, capture_output=True, text=True
        ).stdout
        wanted = {}
        for line in said.splitlines():
            name, _, value = line.partition("=")
            wanted[name.rpartition(".")[2]] = value.strip("'\"")
        bundle = wanted.get("cert", "")
        found = configparser.RawConfigParser()
        found["global"] = {
            **{
                name: value
                for name, value in wanted.items()
                if "index-url" in name or name in {"proxy", "timeout"}
            },
            **({"cert": BUNDLE_IN_BUILD} if bundle else {}),
        }
        path = self.folder / "pip.conf"
        with path.open("w", encoding="utf-8") as file:
            found.write(file)
        return path, bundle

    def config(self, name: str) -> dict[str, Any]:
        """What the image says about itself, as an engine reads it."""
        return json.loads(self.call("inspect", "--type=image", name))["Docker"]["config"]

    def layer_bytes(self, name: str) -> list[int]:
        """The sizes of the layers, unpacked, the lowest first."""
        layers = json.loads((self.folder / "store/overlay-layers/layers.json").read_text())
        by_id = {layer["id"]: layer for layer in layers}
        images = json.loads((self.folder / "store/overlay-images/images.json").read_text())
        (top,) = (image["layer"] for image in images if name in image.get("names", ()))
        sizes = []
        while top:
            sizes.append(by_id[top]["diff-size"])
            top = by_id[top].get("parent", "")
        return sizes[::-1]


@dataclass(frozen=True, slots=True)
class Image:
    """A built image, its files unpacked at `root`."""

    root: Path
    config: Mapping[str, Any]

    @classmethod
    def unpack(cls, buildah: Buildah, name: str) -> Image:
        """Unpack an image."""
        container = buildah.call("from", "--pull-never", name)
        return cls(Path(buildah.call("mount", container)), buildah.config(name))

    @property
    def environment(self) -> dict[str, str]:
        """The variables that the image sets."""
        return dict(entry.split("=", 1) for entry in self.config["Env"])

    def argv(self, command: Sequence[str], *, binds: Mapping[Path, str], **variables: str) -> list[str]:
        """The command line that runs something in the image.

        Args:
            command: what runs; its own variables are those of the image and `variables`.
            binds: folders of this machine that are seen at a path of the image, read-only.
            variables: set or replace variables.
        """
        for inside in binds.values():
            (self.root / inside.lstrip("/")).mkdir(parents=True, exist_ok=True)
        environment = {**self.environment, **variables}
        outside = {
            "ROOT": str(self.root),
            "AS": self.config["User"],
            "BINDS": " ".join(f"{path}:{inside}" for path, inside in binds.items()),
        }
        return [
            *("env", *(f"{name}={value}" for name, value in outside.items())),
            *("unshare", "--mount", "sh", "-c", _CONTAIN, "contain"),
            *("/usr/bin/env", "-i", "-C", self.config["WorkingDir"]),
            *(f"{name}={value}" for name, value in environment.items()),
            *command,
        ]

    def run(
        self, *command: str, binds: Mapping[Path, str] | None = None, **variables: str
    ) -> subprocess.CompletedProcess[str]:
        """Run something in the image to its end."""
        argv = self.argv(command, binds=binds or {}, **variables)
        return subprocess.run(argv, check=False, capture_output=True, text=True, timeout=60)

    def start(
        self,
        service: str,
        folder: Path,
        *arguments: str,
        binds: Mapping[Path, str] | None = None,
        **variables: str,
    ) -> Node:
        """Start a service of the image; its log goes into a file of the folder."""
        log = folder / f"{service}.log"
        argv = self.argv([*self.config["Entrypoint"], service, *arguments], binds=binds or {}, **variables)
        process = processes.spawn(argv, log_file=log, env=dict(os.environ), cwd=folder)
        return Node(service, service, process, log)

    def health(self, **variables: str) -> subprocess.CompletedProcess[str]:
        """Run the image's health check beside a service with these variables."""
        kind, *command = self.config["Healthcheck"]["Test"]
        assert kind == "CMD"
        return self.run(*command, **variables)
