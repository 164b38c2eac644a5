"""Decides how many suspect runs, which may kill their process, a worker executes at once."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Final

LOSSES_BEFORE_ISOLATION: Final = 2
"""A run that was lost this often is suspect: nothing else runs in its child, whatever its handler says."""

FEWEST_SUSPECTS: Final = 8
"""Suspects run at once at least: most handlers wait more than they compute."""

_MOST_SUSPECTS: Final = 64
"""More children cost more CPU to start than they save waiting."""

_CHILD_BYTES: Final = 64 << 20
"""Memory to plan for a child: 40 MB were measured with few modules."""

_CGROUP_LIMITS: Final = (
    Path("/sys/fs/cgroup/memory.max"),
    Path("/sys/fs/cgroup/memory/memory.limit_in_bytes"),
)


def suspects_that_fit(slots: int, memory_bytes: int) -> int:
    """Return how many suspects run at once by default: one per slot, as far as half of the memory lasts.

    Args:
        slots: of the worker.
        memory_bytes: of the machine or the container.
    """
    return max(FEWEST_SUSPECTS, min(slots, _MOST_SUSPECTS, memory_bytes // 2 // _CHILD_BYTES))


def memory_bytes(limits: Sequence[Path] = _CGROUP_LIMITS) -> int:
    """Return the memory that this process may use: the machine's, or less if its container has a limit.

    Args:
        limits: files that can hold the container's limit in bytes.
    """
    known = [os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")]
    for file in limits:
        try:
            known.append(int(file.read_text(encoding="ascii")))
        except (OSError, ValueError):  # the other version of cgroups, or `max`: no limit
            continue
    return min(known)
