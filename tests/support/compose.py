"""An installation by docker-compose.yml on an engine of a test's own."""

from __future__ import annotations

import json
import os
import shlex
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from tests.support.deploy_tools import tool
from tests.support.engine import Engine
from tests.support.stand_ins import MISSING

ROOT: Final = Path(__file__).resolve().parents[2]


@dataclass(frozen=True, slots=True)
class Installation:
    """A folder with a checkout, in which an operator calls compose.

    Attributes:
        engine: runs its containers.
        folder: holds the checkout.
    """

    engine: Engine
    folder: Path

    def set_up(self) -> None:
        """Write the files that an operator writes: the passwords, and an override without what is missing here."""
        example = (self.folder / ".env.example").read_text().splitlines()
        lines = [
            f"{line}{os.urandom(12).hex()}" if line.endswith("=") and line[0] != "#" else line
            for line in example
        ]
        (self.folder / ".env").write_text("\n".join(lines) + "\n")
        self.override("")
        plugins = self.engine.folder / "client" / "cli-plugins"
        plugins.mkdir(parents=True, exist_ok=True)
        if not (plugins / "docker-compose").exists():
            (plugins / "docker-compose").symlink_to(tool("docker-compose"))

    def override(self, services: str) -> None:
        """Write docker-compose.override.yml: the services of it, in YAML, in addition to what must be left out here."""
        without = f"  {MISSING}:\n    profiles: [not-available-here]\n"
        (self.folder / "docker-compose.override.yml").write_text(f"services:\n{without}{services}")

    def run(self, *command: str, **variables: str) -> subprocess.CompletedProcess[str]:
        """Run a command in the folder, in the engine's network, where published ports are."""
        return subprocess.run(
            self.engine.inside(*command),
            check=False,
            capture_output=True,
            text=True,
            cwd=self.folder,
            env={**self.engine.environment, **variables},
            timeout=900,
        )

    def compose(self, *arguments: str) -> str:
        """Run `docker compose`; return its output."""
        done = self.run("docker", "compose", *arguments)
        assert done.returncode == 0, (
            f"docker compose {shlex.join(arguments)}:\n{done.stdout}\n{done.stderr}\n{self.state()}"
        )
        return done.stdout.strip()

    def noonmark(self, *arguments: str) -> str:
        """Run a command of noonmark in the container of the API."""
        return self.compose("exec", "-T", "api", "noonmark", *arguments)

    def containers(self) -> dict[str, dict[str, Any]]:
        """What the engine says about the containers of the project, by service; of several, the last."""
        found = self.run(
            "docker", "ps", "--all", "--quiet", "--filter", "label=com.docker.compose.project"
        ).stdout.split()
        all_of_them = json.loads(self.engine.docker("inspect", *found)) if found else []
        return {one["Config"]["Labels"]["com.docker.compose.service"]: one for one in all_of_them}

    def state(self) -> str:
        """What runs, and what it logged last."""
        listed = self.run("docker", "compose", "ps", "--all").stdout
        return listed + self.run("docker", "compose", "logs", "--no-color", "--tail", "15").stdout


def outside_path() -> str:
    """Return the path of a shell in which commands of noonmark work."""
    return f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"


def copy_checkout(folder: Path) -> None:
    """Copy the files of this checkout that git knows or would add."""
    listed = subprocess.run(
        ["git", "-C", ROOT, "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
        check=True,
        capture_output=True,
        text=True,
    ).stdout
    for name in filter(None, listed.split("\0")):
        if (ROOT / name).exists():
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(ROOT / name, folder / name)
