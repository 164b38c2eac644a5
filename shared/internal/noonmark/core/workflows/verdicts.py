"""The verdict of a workflow run: a function of how its tasks ended."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from noonmark.core.states import RunState
from noonmark.core.workflows.definition import Definition, Task
from noonmark.core.workflows.progress import TaskProgress
from noonmark.core.workflows.rules import Decision, decide_task

NAMED: Final = 5
"""How many failed tasks an ending names."""

_OWN_FAILURES: Final = frozenset(
    {TaskProgress.FAILED, TaskProgress.CANCELLED, TaskProgress.SKIPPED_BY_CANCEL}
)


class Stop(StrEnum):
    """Why a workflow run stops before its main tasks have ended."""

    CANCELLED = "cancelled"
    DEADLINE = "deadline"


class WorkflowFailure(StrEnum):
    """Reason of a workflow run that is `dead`."""

    DEADLINE = "deadline"
    TASK_FAILED = "task_failed"
    FINALLY_FAILED = "finally_failed"


@dataclass(frozen=True, slots=True)
class Ending:
    """How a workflow run ends.

    Attributes:
        state: `succeeded`, `dead` or `cancelled`.
        reason: why it is dead.
        failed: keys of up to `NAMED` tasks that made it dead, in topological order.
        first: number of the first of them; its run has the error that is shown.
        failures: how many tasks made it dead.
        handled: keys of up to `NAMED` main tasks whose failure another task handled, in topological order.
    """

    state: RunState
    reason: WorkflowFailure | None = None
    failed: tuple[str, ...] = ()
    first: int | None = None
    failures: int = 0
    handled: tuple[str, ...] = ()


def ending_of(definition: Definition, progress: bytes, choices: bytes, stop: Stop | None = None) -> Ending:
    """Return how a workflow run ends whose tasks have all ended.

    Args:
        definition: of its version.
        progress: of its tasks.
        choices: of its edges.
        stop: why it stopped, if that came before all main tasks had ended.
    """
    handlers = (task for task in definition.tasks if progress[task.no] == TaskProgress.SUCCEEDED)
    dealt_with = {no for task in handlers for no in task.handles}
    failures = [task for task in _failures(definition.tasks, progress, choices) if not task.may_fail]
    handled = tuple(task.key for task in failures if task.no in dealt_with and not task.is_final)[:NAMED]
    if stop is Stop.CANCELLED:
        return Ending(RunState.CANCELLED, handled=handled)
    if stop is Stop.DEADLINE:
        return Ending(RunState.DEAD, WorkflowFailure.DEADLINE, handled=handled)
    left = [task for task in failures if task.no not in dealt_with]
    main = [task for task in left if not task.is_final]
    if main:
        return _dead(WorkflowFailure.TASK_FAILED, main, handled)
    if left:
        return _dead(WorkflowFailure.FINALLY_FAILED, left, handled)
    return Ending(RunState.SUCCEEDED, handled=handled)


def _failures(tasks: Iterable[Task], progress: bytes, choices: bytes) -> Iterator[Task]:
    """Find the tasks that failed themselves, not because of a task that they depend on."""
    for task in tasks:
        own = progress[task.no]
        if own in _OWN_FAILURES or (
            # Skipped by failure, and no failed parent is the cause: it missed its start deadline.
            own == TaskProgress.SKIPPED_BY_FAILURE
            and decide_task(task, progress, choices) is not Decision.UPSTREAM_FAILED
        ):
            yield task


def _dead(reason: WorkflowFailure, tasks: list[Task], handled: tuple[str, ...]) -> Ending:
    keys = tuple(task.key for task in tasks[:NAMED])
    return Ending(RunState.DEAD, reason, keys, tasks[0].no, len(tasks), handled)
