"""The tools that judge what an operator deploys: found on the path, or built once into a cache folder.

`python -m tests.support.deploy_tools NAME…` makes what is missing (`make deploy-tools`). Tests only look: a tool that
is missing skips them and says how to get it, except in CI, where it fails them.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final
from zipfile import ZipFile

import pytest

from noonmark.devstack.kafka.jars import kafka_version

HERE: Final = Path(__file__).resolve().parents[1] / "deploy" / "tools"
HELM: Final = "v4.3.1"
KUBERNETES: Final = "v1.36.3"
KWOK: Final = "v0.8.0"
COMPOSE: Final = "v2.40.3"
DEBIAN: Final = "bookworm"
OPENAPI_GENERATOR: Final = "7.17.0"
_GENERATOR_ARTIFACT: Final = f"org.openapitools:openapi-generator-cli:{OPENAPI_GENERATOR}"
KEYCLOAK: Final = "26.4.7"
OPENAPI_PYTHON_CLIENT: Final = "0.29.1"
NODE_PACKAGES: Final = "1"
"""Increase it with a change of tests/deploy/tools/node/package.json."""


def folder() -> Path:
    """Return where built tools are kept: `noonmark/tools` in the user's cache folder."""
    base = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(base) / "noonmark" / "tools"


@dataclass(frozen=True, slots=True)
class Tool:
    """How a tool is had. Its file stands in `folder()` under its name and version, or on the path.

    Attributes:
        name: of the executable.
        version: part of the file's name, so that another version is built anew; empty for Debian's packages.
        package: Debian package that has it, where one has.
        make: writes the executable to a path.
    """

    name: str
    version: str = ""
    package: str = ""
    make: Callable[[Path], None] | None = None

    def find(self) -> Path | None:
        """Return the executable, if it is there."""
        if self.make is None:
            found = shutil.which(self.name)
            return Path(found) if found else None
        path = folder() / f"{self.name}-{self.version}"
        return path if path.exists() else None


def tool(name: str) -> Path:
    """Return the executable of a tool, for a test.

    Raises:
        Skipped: it is missing on a machine of a developer.
        Failed: it is missing in CI.
    """
    found = TOOLS[name].find()
    if found is None:
        reason = f"{name} is missing: run `make deploy-tools TOOLS={name}`"
        (pytest.fail if os.environ.get("CI") else pytest.skip)(reason)
    return found


def _go_install(module: str) -> Callable[[Path], None]:
    def make(target: Path) -> None:
        scratch = target.with_name(f"{target.name}.build")
        scratch.mkdir(parents=True, exist_ok=True)
        environment = {**os.environ, "GOBIN": str(scratch), "CGO_ENABLED": "0", "GOFLAGS": "-mod=mod"}
        _run(["go", "install", "-trimpath", "-ldflags", "-s -w", module], env=environment)
        (built,) = scratch.iterdir()
        built.replace(target)
        scratch.rmdir()

    return make


def _go_build(source: Path, package: str, flags: str = "") -> Callable[[Path], None]:
    def make(target: Path) -> None:
        _run(
            ["go", "build", "-trimpath", "-ldflags", f"-s -w {flags}".strip(), "-o", str(target), package],
            cwd=source,
            env={**os.environ, "CGO_ENABLED": "0"},
        )

    return make


def _go_module(module: str, version: str, package: str, flags: str) -> Callable[[Path], None]:
    """Build a program in its own module, for one whose `go.mod` forbids `go install`; its dependencies are its own."""

    def make(target: Path) -> None:
        fetched = subprocess.run(
            ["go", "mod", "download", "-json", f"{module}@{version}"], check=True, stdout=subprocess.PIPE
        )
        _go_build(Path(json.loads(fetched.stdout)["Dir"]), package, flags)(target)

    return make


def _compose() -> Tool:
    module = "github.com/docker/compose/v2"
    stamp = f"-X {module}/internal.Version={COMPOSE}"
    return Tool("docker-compose", COMPOSE, make=_go_module(module, COMPOSE, "./cmd", stamp))


def _kubernetes(binary: str) -> Tool:
    stamp = f"-X k8s.io/component-base/version.gitVersion={KUBERNETES}"
    build = _go_build(HERE / "kubernetes", f"k8s.io/kubernetes/cmd/{binary}", stamp)
    return Tool(binary, KUBERNETES, make=build)


def _base_image(target: Path) -> None:
    """Make a Debian with Python as a tar file: what an image can be built on where none can be pulled."""
    root = target.with_name(f"{target.name}.root")
    shutil.rmtree(root, ignore_errors=True)
    packages = "ca-certificates,netbase,python3-venv"
    _run(["debootstrap", "--variant=minbase", f"--include={packages}", DEBIAN, str(root)], env={**os.environ})
    _run(
        [
            "tar",
            "--create",
            f"--file={target}",
            f"--directory={root}",
            "--exclude=./var/cache/apt/archives/*.deb",
            ".",
        ],
        env={**os.environ},
    )
    shutil.rmtree(root)


def _java_archive(artifact: str) -> Callable[[Path], None]:
    def make(target: Path) -> None:
        scratch = target.with_name(f"{target.name}.build")
        copied = [f"-Dartifact={artifact}", f"-DoutputDirectory={scratch}"]
        _run(["mvn", "-q", "-B", "dependency:copy", *copied], env={**os.environ})
        (archive,) = scratch.iterdir()
        archive.replace(target)
        scratch.rmdir()

    return make


def _keycloak(target: Path) -> None:
    """Fetch and unpack Keycloak."""
    packed = target.with_name(f"{target.name}.zip")
    unpacked = target.with_name(f"{target.name}.unpacked")
    shutil.rmtree(unpacked, ignore_errors=True)
    _java_archive(f"org.keycloak:keycloak-quarkus-dist:{KEYCLOAK}:zip")(packed)
    with ZipFile(packed) as archive:
        archive.extractall(unpacked)
    packed.unlink()
    (home,) = unpacked.iterdir()
    shutil.rmtree(target, ignore_errors=True)
    home.replace(target)
    unpacked.rmdir()


def _python_packages(*requirements: str) -> Callable[[Path], None]:
    def make(target: Path) -> None:
        shutil.rmtree(target, ignore_errors=True)
        _run(
            [sys.executable, "-m", "pip", "install", "--quiet", "--target", str(target), *requirements],
            env={**os.environ},
        )

    return make


def _node_packages(source: Path) -> Callable[[Path], None]:
    def make(target: Path) -> None:
        shutil.rmtree(target, ignore_errors=True)
        target.mkdir(parents=True)
        shutil.copy(source / "package.json", target)
        _run(
            ["npm", "install", "--silent", "--no-package-lock", "--ignore-scripts"],
            cwd=target,
            env={**os.environ},
        )

    return make


TOOLS: Final = {
    entry.name: entry
    for entry in (
        Tool("promtool", package="prometheus"),
        Tool("prometheus", package="prometheus"),
        Tool("amtool", package="prometheus-alertmanager"),
        Tool("prometheus-alertmanager", package="prometheus-alertmanager"),
        Tool("etcd", package="etcd-server"),
        Tool("buildah", package="buildah"),
        Tool("dockerd", package="docker.io"),
        Tool("debootstrap", package="debootstrap"),
        Tool("base-image.tar", DEBIAN, make=_base_image),
        Tool("helm", HELM, make=_go_install(f"helm.sh/helm/v4/cmd/helm@{HELM}")),
        Tool("composecheck", "2", make=_go_build(HERE / "composecheck", ".")),
        _compose(),
        Tool(
            "kafka-tools.jar",
            kafka_version(),
            make=_java_archive(f"org.apache.kafka:kafka-tools:{kafka_version()}"),
        ),
        _kubernetes("kube-apiserver"),
        _kubernetes("kube-controller-manager"),
        _kubernetes("kube-scheduler"),
        Tool("openapi-generator.jar", OPENAPI_GENERATOR, make=_java_archive(_GENERATOR_ARTIFACT)),
        Tool("keycloak", KEYCLOAK, make=_keycloak),
        Tool(
            "openapi-python-client",
            OPENAPI_PYTHON_CLIENT,
            make=_python_packages(f"openapi-python-client=={OPENAPI_PYTHON_CLIENT}"),
        ),
        Tool("node-packages", NODE_PACKAGES, make=_node_packages(HERE / "node")),
        Tool("node", package="nodejs"),
        Tool("kwok", KWOK, make=_go_install(f"sigs.k8s.io/kwok/cmd/kwok@{KWOK}")),
    )
}

QUICK: Final = ("promtool", "prometheus", "amtool", "prometheus-alertmanager", "helm", "composecheck")
"""What the tests of `make test` look for; the rest is for `make test-deploy`."""

MANUAL: Final = ("dockerd", "docker-compose", "kafka-tools.jar")
"""What is made only where it is named: `make test-containers` does not run in CI."""


def install(names: Sequence[str]) -> list[str]:
    """Make what is missing; return the names that could not be made."""
    missing = [TOOLS[name] for name in names if TOOLS[name].find() is None]
    packages = sorted({entry.package for entry in missing if entry.package})
    if packages and shutil.which("apt-get") and os.geteuid() == 0:
        print(f"installing {' '.join(packages)}", flush=True)
        subprocess.run(["apt-get", "update", "-qq"], check=False)
        subprocess.run(
            ["apt-get", "install", "-y", "-qq", "--no-install-recommends", *packages],
            check=False,
            stdout=subprocess.DEVNULL,
            env={**os.environ, "DEBIAN_FRONTEND": "noninteractive"},
        )
    for entry in missing:
        if entry.make is not None:
            _build(entry, entry.make)
    return [entry.name for entry in missing if entry.find() is None]


def _build(entry: Tool, make: Callable[[Path], None]) -> None:
    target = folder() / f"{entry.name}-{entry.version}"
    target.parent.mkdir(parents=True, exist_ok=True)
    print(f"building {entry.name} {entry.version} (minutes, once) ...", flush=True)
    began = time.monotonic()
    unfinished = target.with_name(f"{target.name}.new")
    try:
        make(unfinished)
        unfinished.replace(target)
    except (OSError, subprocess.CalledProcessError) as error:
        print(f"{entry.name} could not be built: {error}", file=sys.stderr, flush=True)
        return
    print(f"built {entry.name} in {time.monotonic() - began:.0f} s", flush=True)


def _run(command: Sequence[str], *, env: dict[str, str], cwd: Path | None = None) -> None:
    subprocess.run(command, check=True, env=env, cwd=cwd)


def main() -> int:
    """Make the tools that are named, or all but `MANUAL`."""
    failed = install(sys.argv[1:] or [name for name in TOOLS if name not in MANUAL])
    if failed:
        print(f"missing: {', '.join(failed)}", file=sys.stderr)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
