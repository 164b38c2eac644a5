"""The release before this one, as its own commit has it."""

from __future__ import annotations

import io
import re
import subprocess
import tarfile
import tomllib
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
_PACKAGES = ("services", "shared", "schemas")


def previous_release(folder: Path) -> tuple[str, Path] | None:
    """Lay the packages of the release before this one into a folder, to stand first on a module path.

    Its code is that of the last commit whose project had another version than now.

    Args:
        folder: is made; gets one folder `noonmark` with all packages.

    Returns:
        The version and the folder; None where the history does not reach back so far.
    """
    now = _version((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    for commit in _git("log", "--format=%H", "--", "pyproject.toml").decode().split():
        version = _version(_git("show", f"{commit}:pyproject.toml").decode())
        if version != now:
            break
    else:
        return None
    # Changes since `commit` that left the project file alone belong to that version, too.
    after = _git("rev-list", "--ancestry-path", "--reverse", f"{commit}..HEAD", "--", "pyproject.toml")
    bump = after.decode().split()[0] if after else "HEAD"
    archive = _git("archive", "--format=tar", f"{bump}^", *_PACKAGES)
    folder.mkdir()
    with tarfile.open(fileobj=io.BytesIO(archive)) as packed:
        packed.extractall(folder / "all", filter="data")
    for package in _PACKAGES:
        for path in sorted((folder / "all" / package / "noonmark").iterdir()):
            path.rename(_made(folder / "noonmark") / path.name)
    return version, folder


def _made(folder: Path) -> Path:
    folder.mkdir(exist_ok=True)
    return folder


def _version(project: str) -> str:
    version: str = re.sub(r"\s", "", tomllib.loads(project)["project"]["version"])
    return version


def _git(*arguments: str) -> bytes:
    done = subprocess.run(["git", "-C", str(ROOT), *arguments], capture_output=True, check=False)
    return done.stdout
