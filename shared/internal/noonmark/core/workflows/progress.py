"""How far the tasks of a workflow run are: one byte per task, one byte per edge with a condition."""

from __future__ import annotations

from collections.abc import Mapping
from enum import IntEnum
from functools import lru_cache
from typing import Final

from noonmark.core.states import RunState, SkipReason
from noonmark.core.transitions import VERDICTS
from noonmark.core.workflows.definition import Definition, Task


class TaskProgress(IntEnum):
    """How far a task is: its byte in the progress of a workflow run.

    From `SUCCEEDED` on the task has ended.
    """

    UNDECIDED = 0
    """No run, and no reason yet to start or to skip it."""
    LIVE = 1
    """Its run exists and has not ended."""
    SUCCEEDED = 2
    FAILED = 3
    """Its run is `dead`, `unknown` or `discarded`."""
    CANCELLED = 4
    SKIPPED_BY_FAILURE = 5
    """Skipped as `upstream_failed` or `start_deadline`."""
    SKIPPED = 6
    """Skipped as `condition`, `upstream_skipped` or `not_needed`."""
    SKIPPED_BY_CANCEL = 7
    """Undecided when the workflow run was cancelled or its deadline passed."""


class Choice(IntEnum):
    """Whether the condition of an edge holds: its byte in the choices of a workflow run."""

    UNKNOWN = 0
    HOLDS = 1
    DOES_NOT_HOLD = 2


class EdgeClass(IntEnum):
    """What an edge contributes to the rule of the task that depends on it."""

    PENDING = 0
    SUCCEEDED = 1
    SKIPPED = 2
    """The parent was skipped without a failure, or it succeeded and the edge's condition does not hold."""
    FAILED = 3


VERDICTS_OF_TASKS: Final = {
    TaskProgress.SUCCEEDED: "succeeded",
    TaskProgress.FAILED: "failed",
    TaskProgress.CANCELLED: "failed",
    TaskProgress.SKIPPED_BY_FAILURE: "skipped",
    TaskProgress.SKIPPED: "skipped",
    TaskProgress.SKIPPED_BY_CANCEL: "skipped",
}
"""What a condition reads as the verdict of a task that has ended."""

_OF_STATES: Final = {
    RunState.SUCCEEDED: TaskProgress.SUCCEEDED,
    RunState.DEAD: TaskProgress.FAILED,
    RunState.UNKNOWN: TaskProgress.FAILED,
    RunState.DISCARDED: TaskProgress.FAILED,
    RunState.CANCELLED: TaskProgress.CANCELLED,
}
_OF_SKIPS: Final[Mapping[str, TaskProgress]] = {
    SkipReason.CONDITION: TaskProgress.SKIPPED,
    SkipReason.UPSTREAM_SKIPPED: TaskProgress.SKIPPED,
    SkipReason.NOT_NEEDED: TaskProgress.SKIPPED,
    SkipReason.CANCELLED: TaskProgress.SKIPPED_BY_CANCEL,
}
_CLASSES: Final = bytes(
    [
        EdgeClass.PENDING,
        EdgeClass.PENDING,
        EdgeClass.SUCCEEDED,
        EdgeClass.FAILED,
        EdgeClass.FAILED,
        EdgeClass.FAILED,
        EdgeClass.SKIPPED,
        EdgeClass.FAILED,
    ]
).ljust(256, b"\0")
"""The class of an edge without a condition, at the place of its parent's progress; for `bytes.translate`."""

_SUCCEEDED: Final = int(TaskProgress.SUCCEEDED)
_HOLDS: Final = int(Choice.HOLDS)
_DOES_NOT_HOLD: Final = int(Choice.DOES_NOT_HOLD)


@lru_cache(maxsize=256)
def progress_of(state: RunState | str, reason: str | None = None) -> TaskProgress:
    """Return the progress of a task by the state of its run.

    A run that has not ended is `LIVE`. A run that was skipped for a reason that no rule gives, such as its
    start deadline, counts as a failure: what depends on it must not run as if it were left out on purpose.

    Args:
        state: of the run.
        reason: of the run, if it is skipped.

    Raises:
        ValueError: there is no such state.
    """
    state = RunState(state)
    if state not in VERDICTS:
        return TaskProgress.LIVE
    if state != RunState.SKIPPED:
        return _OF_STATES[state]
    return _OF_SKIPS.get(reason or "", TaskProgress.SKIPPED_BY_FAILURE)


def edge_classes(task: Task, progress: bytes | bytearray, choices: bytes | bytearray) -> bytes:
    """Return the `EdgeClass` of each edge of a task, in the order of its edges."""
    classes = bytes([progress[edge.parent] for edge in task.edges]).translate(_CLASSES)
    if not choices:
        return classes
    chosen = bytearray(classes)
    for place, edge in enumerate(task.edges):
        if edge.choice >= 0 and progress[edge.parent] == _SUCCEEDED:
            choice = choices[edge.choice]
            if choice == _DOES_NOT_HOLD:
                chosen[place] = EdgeClass.SKIPPED
            elif choice != _HOLDS:
                chosen[place] = EdgeClass.PENDING
    return bytes(chosen)


def all_ended(progress: bytes | bytearray) -> bool:
    """Whether every task has ended."""
    return _ended_before(progress, len(progress))


def main_ended(definition: Definition, progress: bytes | bytearray) -> bool:
    """Whether every task that is not of `finally` has ended. A stop after this comes too late."""
    return _ended_before(progress, definition.main_count)


def _ended_before(progress: bytes | bytearray, end: int) -> bool:
    return progress.find(TaskProgress.UNDECIDED, 0, end) < 0 and progress.find(TaskProgress.LIVE, 0, end) < 0
