"""Errors of the development stack: what went wrong, and what you can do about it."""

from __future__ import annotations

import errno


class DevStackError(Exception):
    """The stack, or a part of it, could not be started or stopped.

    Attributes:
        what: One sentence that says what went wrong and where.
        remedy: What to do about it; empty if nothing more is known.
        detail: Lines that help to find the cause (the end of a log); empty if there are none.
    """

    def __init__(self, what: str, *, remedy: str = "", detail: str = "") -> None:
        """Joins the parts into one message; `detail` goes on its own lines."""
        self.what = what
        self.remedy = remedy
        self.detail = detail
        super().__init__(f"{what} {remedy}".strip() + (f"\n{detail}" if detail else ""))


def explain_os_error(error: OSError, doing: str) -> DevStackError:
    """Turns an operating system error into a sentence with a remedy.

    Args:
        error: The error as the system gave it.
        doing: What was being done, to follow "while", as in "starting Kafka".
    """
    where = f" ({error.filename})" if error.filename else ""
    if error.errno in {errno.ENOSPC, errno.EDQUOT}:
        return disk_full(f"while {doing}{where}")
    if error.errno in {errno.EACCES, errno.EPERM, errno.EROFS}:
        return DevStackError(
            f"Permission denied while {doing}{where}: {error.strerror}.",
            remedy="Use --state-dir to choose a folder that you may write to.",
        )
    return DevStackError(f"System error while {doing}{where}: {error.strerror or error}.")


def disk_full(when: str) -> DevStackError:
    """The error for a full disk."""
    return DevStackError(
        f"The disk is full {when}.",
        remedy="Free some space (the stack needs about 1 GB), or use --state-dir to put its data elsewhere.",
    )


def explain_log(log_tail: str, *, name: str, port_option: str) -> DevStackError | None:
    """Recognises a known cause in the end of a server's log.

    Args:
        log_tail: The last lines of the log.
        name: The server's name, such as `Kafka`.
        port_option: The command line option that chooses its port.

    Returns:
        The explained error, or None if the log has no cause that is known here.
    """
    lowered = log_tail.lower()
    if "no space left on device" in lowered or "disk quota exceeded" in lowered:
        return disk_full(f"while starting {name}")
    if "address already in use" in lowered or "could not create any tcp/ip sockets" in lowered:
        return DevStackError(
            f"The port of {name} is in use by another program.",
            remedy=f"Choose another with {port_option}, or leave the option out to use a free one.",
        )
    return None
