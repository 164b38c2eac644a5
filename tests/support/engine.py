"""A real Docker engine of a test's own.

The engine runs in network and mount namespaces of its own: its bridges, its rules for packets and the ports that
containers publish exist there alone, on the loopback of that namespace, and nothing in it reaches another machine. Its
data are in memory, so that none of them is left, and no slow disk decides what a test finds.
"""

from __future__ import annotations

import os
import shlex
import shutil
import signal
import subprocess
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import pytest
from tests.support.deploy_tools import tool
from tests.support.kube import eventually

from noonmark.devstack.processes import processes

IMAGES: Final = Path(__file__).parents[1] / "containers" / "images"
BASE: Final = "python-stand-in:bookworm"
_START: Final = 'ip link set lo up && mount -t tmpfs -o size=10g,mode=711 data "$0" && exec dockerd "$@"'


@dataclass(frozen=True, slots=True)
class Engine:
    """An engine that answers.

    Attributes:
        host: what `DOCKER_HOST` is set to.
        pid: of the engine, whose network namespace is used.
        folder: holds its data.
    """

    host: str
    pid: int
    folder: Path

    @property
    def environment(self) -> dict[str, str]:
        """Variables with which a client finds it."""
        outside = {
            name: value for name, value in os.environ.items() if not name.startswith(("DOCKER_", "COMPOSE_"))
        }
        return {**outside, "DOCKER_HOST": self.host, "DOCKER_CONFIG": str(self.folder / "client")}

    def inside(self, *command: str | Path) -> list[str]:
        """Return the command line that runs something in the engine's network, where published ports are."""
        return ["nsenter", f"--net=/proc/{self.pid}/ns/net", "--", *(str(part) for part in command)]

    def docker(self, *arguments: str, **more: Any) -> str:
        """Run the client; return its output."""
        done = subprocess.run(
            ["docker", *arguments],
            check=False,
            capture_output=True,
            text=True,
            env={**self.environment, "DOCKER_BUILDKIT": "0"},
            **more,
        )
        assert done.returncode == 0, f"docker {shlex.join(arguments)}:\n{done.stdout}\n{done.stderr}"
        return done.stdout.strip()

    def build(self, name: str, tag: str, parts: Mapping[str, Path]) -> None:
        """Build one of the images in `tests/containers/images`.

        Args:
            name: its folder.
            tag: name of the image that it is used for.
            parts: folders that its Dockerfile copies, by the names that it gives them.
        """
        context = Path(tempfile.mkdtemp(dir=self.folder))
        shutil.copytree(IMAGES / name, context, dirs_exist_ok=True)
        for part, source in parts.items():
            shutil.copytree(source, context / part, ignore_dangling_symlinks=True)
        self.docker("build", "--quiet", "--build-arg", f"BASE={BASE}", "--tag", tag, str(context))
        shutil.rmtree(context)


@contextmanager
def running_engine() -> Iterator[Engine]:
    """Start an engine without images, and end it and all that runs in it."""
    if os.geteuid() != 0:
        pytest.skip("a Docker engine of the test's own needs root")
    tool("dockerd")
    # Unix sockets have short paths.
    folder = Path(tempfile.mkdtemp(prefix="nm-engine-"))
    host = f"unix://{folder}/docker.sock"
    log = folder / "dockerd.log"
    data = folder / "data"
    data.mkdir()
    options = {
        "data-root": data,
        "exec-root": folder / "exec",
        "pidfile": folder / "pid",
        "host": host,
    }
    process = processes.spawn(
        [
            *("unshare", "--net", "--mount", "sh", "-c", _START, str(data)),
            *(f"--{name}={value}" for name, value in options.items()),
        ],
        log_file=log,
    )
    engine = Engine(host, process.pid, folder)

    def answers() -> bool:
        if processes.has_ended(process):
            pytest.skip(f"no Docker engine can run here:\n{processes.tail(log)}")
        asked = subprocess.run(
            ["docker", "version"], check=False, capture_output=True, env=engine.environment, timeout=30
        )
        return asked.returncode == 0

    try:
        eventually("the Docker engine answers", answers, seconds=120)
        engine.docker("import", str(tool("base-image.tar")), BASE)
        yield engine
    finally:
        if not processes.has_ended(process):
            if left := engine.docker("ps", "--all", "--quiet").split():
                engine.docker("rm", "--force", "--volumes", *left)
            process.send_signal(signal.SIGTERM)
        process.wait(60)
        shutil.rmtree(folder)
