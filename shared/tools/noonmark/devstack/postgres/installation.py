"""A copy of the bundled Postgres for the user it runs as, where that user cannot reach the wheel."""

from __future__ import annotations

import errno
import hashlib
import os
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from noonmark.devstack.kafka.jars import locked
from noonmark.devstack.postgres.accounts import is_open
from noonmark.devstack.processes.errors import DevStackError, disk_full
from noonmark.devstack.processes.patience import Say

# Only root copies, so the folder is a system folder: no other user can write to it or to its parents.
COPIES: Final = Path("/var/cache/noonmark")
BIN_VARIABLE: Final = "NOONMARK_PG_BIN"

_PROGRAMS: Final = ("initdb", "postgres")
_PARTS: Final = ("bin", "lib", "share")


def reachable_binaries(binaries: Path, say: Say, *, copies: Path = COPIES) -> Path:
    """The folder with `initdb` and `postgres` as another user than root can reach it.

    `initdb` and `postgres` look for each other with access(2), which ignores capabilities: every user
    must be able to search the folders above them. Where one is closed (`/root`, what `mktemp -d`
    makes), the installation is copied once. The copy is named after its content, so each version has
    its own and a copy never changes.

    Args:
        binaries: Where the installation is.
        say: Receives one line when a copy is about to be created.
        copies: Where copies are kept.

    Raises:
        DevStackError: The user cannot reach it, and it could not be copied.
    """
    binaries = binaries.resolve()
    if all(is_open(binaries / program) for program in _PROGRAMS):
        return binaries
    if os.environ.get(BIN_VARIABLE):
        raise DevStackError(
            f"Postgres cannot run as root, and other users cannot search {binaries} ({BIN_VARIABLE}).",
            remedy=f"Set {BIN_VARIABLE} to a folder that every user can search, or unset it.",
        )
    try:
        packages = binaries.parents[2]
        return _copy_of(packages, binaries.parent, copies, say) / binaries.relative_to(packages)
    except OSError as error:
        if error.errno in {errno.ENOSPC, errno.EDQUOT}:
            raise disk_full(f"while copying Postgres to {copies}") from error
        raise _unreachable(
            binaries, f"it could not be copied to {copies}: {error.strerror or error}"
        ) from error


def _copy_of(packages: Path, prefix: Path, copies: Path, say: Say) -> Path:
    """A folder that holds what `packages` holds of Postgres, in the same places relative to each other."""
    _prepare(prefix, copies)
    files = sorted(_files(packages, prefix))
    target = copies / f"postgres-{_digest(packages, files)}"
    # Concurrent starts wait for the one that copies.
    with locked(target.with_name(f"{target.name}.lock")):
        if not target.exists():
            say(
                f"copying Postgres to {target}: the user it runs as cannot reach {prefix} (once, about 40 MB)"
            )
            fresh = target.with_name(f"{target.name}.new")
            shutil.rmtree(fresh, ignore_errors=True)
            _copy(packages, files, fresh)
            # The name must not survive a power failure that the content does not survive.
            os.sync()
            fresh.rename(target)
    return target


def _prepare(prefix: Path, copies: Path) -> None:
    """Creates the folder for copies, or checks that only root could have written to it."""
    copies.mkdir(parents=True, exist_ok=True)
    found = copies.lstat()
    if copies.is_symlink() or found.st_uid != os.geteuid():
        raise _unreachable(prefix, f"it cannot be copied to {copies}, which does not belong to root")
    copies.chmod(0o755)
    if not is_open(copies):
        raise _unreachable(prefix, f"a folder above {copies}, where a copy would go, is also closed")


def _files(packages: Path, prefix: Path) -> Iterator[Path]:
    # The wheel keeps the libraries that its programs link in a folder next to the package.
    libraries = packages / f"{prefix.parent.name}.libs"
    for folder in (libraries, *(prefix / part for part in _PARTS)):
        yield from (file.relative_to(packages) for file in folder.rglob("*") if file.is_file())


def _digest(packages: Path, files: list[Path]) -> str:
    """The hash of the content; reading 40 MB takes a tenth of a second."""
    digest = hashlib.sha256()
    for file in files:
        with (packages / file).open("rb") as content:
            digest.update(f"{file}\0{hashlib.file_digest(content, 'sha256').hexdigest()}\0".encode())
    return digest.hexdigest()[:16]


def _copy(packages: Path, files: list[Path], fresh: Path) -> None:
    """Copies with new permissions: the original's may exclude other users, too."""
    for file in files:
        target = fresh / file
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(packages / file, target)
        target.chmod(0o755 if file.parent.name == "bin" or ".so" in file.name else 0o644)
    for folder in (fresh, *(path for path in fresh.rglob("*") if path.is_dir())):
        folder.chmod(0o755)


def _unreachable(path: Path, reason: str) -> DevStackError:
    return DevStackError(
        f"Postgres cannot run as root, other users cannot search the folders above {path}, and {reason}.",
        remedy="Run as another user than root, move the project to a folder that every user can search, "
        f"or set {BIN_VARIABLE} to another Postgres, such as /usr/lib/postgresql/15/bin.",
    )
