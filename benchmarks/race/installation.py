"""Installing rivals into a folder, and finding out which are installed."""

from __future__ import annotations

import hashlib
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Final

from benchmarks.race.rivals import Rival
from benchmarks.stack import BenchmarkError

_MARK: Final = ".installed"


def missing(rival: Rival, rivals_folder: Path) -> str | None:
    """Return why a rival cannot take part, with the command that installs it; None if it can."""
    mark = rivals_folder / rival.name / _MARK
    install = f"python -m benchmarks.race --install {rival.name} --rivals {rivals_folder}"
    if not mark.exists():
        needed = f" (needs {', '.join(rival.tools)})" if rival.tools else ""
        return f"not installed{needed}; install it with: {install}"
    if mark.read_text(encoding="ascii") != fingerprint(rival):
        return f"another version or program of it is installed; install it again with: {install}"
    return None


def install(rival: Rival, rivals_folder: Path, say: Callable[[str], None]) -> None:
    """Install a rival, in place of an earlier installation.

    Raises:
        BenchmarkError: a tool is missing, or a command failed.
    """
    if absent := [tool for tool in rival.tools if shutil.which(tool) is None]:
        raise BenchmarkError(f"{rival.name} needs {', '.join(absent)}, not on the PATH; install it first")
    folder = (rivals_folder / rival.name).absolute()
    mark = folder / _MARK
    if folder.exists():
        if not mark.exists():
            raise BenchmarkError(f"{folder} is not an installed rival; remove it, or pass another --rivals")
        shutil.rmtree(folder)
    shutil.copytree(rival.program, folder)
    # So that an installation that failed can be repeated.
    mark.touch()
    for command in rival.install(folder):
        say(" ".join(command))
        code = subprocess.run(command, cwd=folder, check=False).returncode
        if code != 0:
            raise BenchmarkError(f"{rival.name} is not installed: `{command[0]}` exited with {code}")
    mark.write_text(fingerprint(rival), encoding="ascii")


def fingerprint(rival: Rival) -> str:
    """Return what changes with the version of a rival, its program or its installation."""
    # The interpreter that creates an environment differs between working copies.
    commands = repr(rival.install(Path("folder"))).replace(sys.executable, "python")
    digest = hashlib.sha256(f"{rival.version} {commands}".encode())
    for path in sorted(rival.program.rglob("*")):
        if path.is_file():
            digest.update(path.name.encode() + path.read_bytes())
    return digest.hexdigest()
