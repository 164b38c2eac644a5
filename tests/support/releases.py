"""The release before this one, as its own commit has it."""

from __future__ import annotations

import io
import re
import subprocess
import tarfile
import tomllib
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
_ROOTS = ("services", "shared", "schemas")
_NAMESPACE = "noonmark"


def previous_release(folder: Path) -> tuple[str, Path] | None:
    """Extract the packages of the previous release into a folder that goes first on a module path.

    Args:
        folder: is created; gets one folder `noonmark` with all packages.

    Returns:
        The version and the folder; None where the history does not reach back that far.
    """
    found = previous_commit()
    if found is None:
        return None
    version, commit = found
    extract(commit, folder / "all", *_ROOTS)
    merge_packages(folder / "all", folder / _NAMESPACE)
    return version, folder


def previous_commit() -> tuple[str, str] | None:
    """Find the last commit whose project had another version than now; return the version and the commit."""
    now = _version((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    for commit in _git("log", "--format=%H", "--", "pyproject.toml").decode().split():
        version = _version(_git("show", f"{commit}:pyproject.toml").decode())
        if version != now:
            break
    else:
        return None
    # Changes since `commit` that left the project file alone belong to that version, too.
    after = _git("rev-list", "--ancestry-path", "--reverse", f"{commit}..HEAD", "--", "pyproject.toml")
    # A bump that is not committed yet leaves all of HEAD to it.
    return version, f"{after.decode().split()[0]}^" if after else "HEAD"


def extract(commit: str, folder: Path, *paths: str) -> None:
    """Extract the files of a commit, or those below some paths, into a folder, which is created."""
    archive = _git("archive", "--format=tar", commit, *paths)
    folder.mkdir(parents=True)
    with tarfile.open(fileobj=io.BytesIO(archive)) as packed:
        packed.extractall(folder, filter="data")


def merge_packages(release: Path, target: Path) -> None:
    """Move every part of the namespace into one folder, wherever a release keeps its parts.

    Args:
        release: holds the roots `services`, `shared` and `schemas`, each with `noonmark` folders at any depth.
        target: is created if it does not exist; packages that several parts hold are merged.

    Raises:
        FileExistsError: two parts hold the same file.
    """
    for part in _parts(release):
        _merge(part, target)


def _parts(release: Path) -> list[Path]:
    """Return the outermost `noonmark` folders of each root; none of them is a package of its own."""
    found: list[Path] = []
    for root in _ROOTS:
        for path in sorted((release / root).rglob(_NAMESPACE)):
            if path.is_dir() and not any(outer in path.parents for outer in found):
                found.append(path)
    return found


def _merge(source: Path, target: Path) -> None:
    target.mkdir(parents=True, exist_ok=True)
    for path in sorted(source.iterdir()):
        place = target / path.name
        if path.is_dir():
            _merge(path, place)
        elif not place.exists():
            path.rename(place)
        elif place.read_bytes() != path.read_bytes():
            raise FileExistsError(f"{path.name} is in two parts of the release: {path} and {place}")


def _version(project: str) -> str:
    version: str = re.sub(r"\s", "", tomllib.loads(project)["project"]["version"])
    return version


def _git(*arguments: str) -> bytes:
    done = subprocess.run(["git", "-C", str(ROOT), *arguments], capture_output=True, check=False)
    return done.stdout
