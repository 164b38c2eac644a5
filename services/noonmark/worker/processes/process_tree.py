"""Finds and kills the descendants of a process. Standard library alone: the supervisor uses it."""

from __future__ import annotations

import contextlib
import os
import signal
from typing import Final

_MOST_OF_A_TREE: Final = 10_000


def children(pid: int) -> list[int]:
    """Return the children of a process."""
    try:
        with os.scandir(f"/proc/{pid}/task") as tasks:
            threads = [task.name for task in tasks]
        found: list[int] = []
        for thread in threads:
            with open(f"/proc/{pid}/task/{thread}/children", "rb") as file:  # noqa: PTH123 - read in a loop
                found += map(int, file.read().split())
    except FileNotFoundError:
        # The process is gone, or this kernel does not list children.
        return [other for other in _everyone() if _parent(other) == pid]
    except OSError:
        return []
    return found


def tree(pid: int, most: int = _MOST_OF_A_TREE) -> list[int]:
    """Return a process and its descendants; stop soon after `most` of them."""
    found = [pid]
    for member in found:
        if len(found) > most:
            break
        found += children(member)
    return found


def kill_tree(pid: int) -> None:
    """Kill a process and its current descendants."""
    for member in tree(pid):
        with contextlib.suppress(OSError):
            os.kill(member, signal.SIGKILL)


def kill_group(pid: int) -> None:
    """Kill a process group, if it exists."""
    with contextlib.suppress(OSError):
        os.killpg(pid, signal.SIGKILL)


def kill_marked(token: bytes) -> int:
    """Kill all processes with a token in their arguments or environment, and their descendants.

    Args:
        token: identifies a supervisor: its reapers have it in their arguments, what they start in its
            environment.

    Returns:
        The number of processes with the token.
    """
    found = [pid for pid in _everyone() if pid != os.getpid() and _is_marked(pid, token)]
    for pid in found:
        kill_tree(pid)
    return len(found)


def _is_marked(pid: int, token: bytes) -> bool:
    for name in ("cmdline", "environ"):
        try:
            with open(f"/proc/{pid}/{name}", "rb") as file:  # noqa: PTH123 - read in a loop
                if token in file.read():
                    return True
        except OSError:
            continue
    return False


def _everyone() -> list[int]:
    return [int(name) for name in os.listdir("/proc") if name.isdecimal()]  # noqa: PTH208 - read in a loop


def _parent(pid: int) -> int:
    """Return the parent of a process; -1 if it is gone."""
    try:
        with open(f"/proc/{pid}/stat", "rb") as file:  # noqa: PTH123 - read in a loop
            return int(file.read().rpartition(b")")[2].split()[1])
    except OSError:
        return -1
