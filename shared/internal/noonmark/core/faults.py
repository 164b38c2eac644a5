"""Named fault points, where tests kill a process between two effects.

A point costs one function call that does nothing unless `NOONMARK_FAULT` names it. The value is
`<point>=<n>`: the process sends itself SIGKILL the n-th time it passes the point.
"""

from __future__ import annotations

import os
import signal
from typing import Final

POINTS: Final = (
    "intake.before_commit",
    "intake.after_commit",
    "trigger.before_commit",
    "trigger.after_commit",
    "dispatcher.before_produce",
    "dispatcher.after_produce",
    "dispatcher.after_delete",
    "dispatcher.after_accept",
    "workflow.before_commit",
    "workflow.after_commit",
    "worker.before_start",
    "worker.after_start",
    "worker.before_outcome",
    "worker.after_outcome",
    "observer.before_commit",
    "observer.after_commit",
    "observer.after_tell",
)
"""Every point, named `<service>.<moment>`; those of `workflow` are passed by triggers that advance workflows.
`after_produce` is before the outbox rows are deleted,
`after_accept` before the rows of an application's outbox are; `after_tell` is before a delivery is recorded
as sent; `after_commit` and `after_outcome` are before Kafka offsets are committed."""

_armed: dict[str, int] = {}


def arm(setting: str) -> None:
    """Arm the point that a `NOONMARK_FAULT` value names.

    Raises:
        ValueError: an unknown point, or a count below one.
    """
    point, _, count = setting.partition("=")
    if point not in POINTS:
        raise ValueError(f"NOONMARK_FAULT: {point!r} is not a fault point; known: {', '.join(POINTS)}")
    passes = int(count or "1")
    if passes < 1:
        raise ValueError(f"NOONMARK_FAULT={setting!r}: the count must be 1 or more")
    _armed[point] = passes


def hit(point: str) -> None:
    """Kill this process if the point is armed and its count is used up."""
    if not _armed:
        return
    left = _armed.get(point)
    if left is None:
        return
    if left <= 1:
        os.kill(os.getpid(), signal.SIGKILL)
    _armed[point] = left - 1
