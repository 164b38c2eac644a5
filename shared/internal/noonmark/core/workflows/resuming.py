"""What is kept, and what is decided again, when a workflow run that has ended is redriven or rerun.

Pass what these functions return to `advance` without ends: it starts the next generation.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final

from noonmark.core.workflows.definition import Definition, Task
from noonmark.core.workflows.progress import Choice, TaskProgress
from noonmark.core.workflows.rules import Decision, decide_task

_UNDECIDED: Final = int(TaskProgress.UNDECIDED)
_KEPT_SKIPS: Final = frozenset({Decision.UPSTREAM_SKIPPED, Decision.NOT_NEEDED})


def resume(definition: Definition, progress: bytes, choices: bytes) -> tuple[bytes, bytes]:
    """Return progress and choices from which a redrive continues.

    A main task is kept if it succeeded, or was skipped without a failure, and that still follows from kept
    tasks alone. So a task that ran because another one failed is decided again, and a task that needed one
    parent and had it is kept. All other tasks are undecided, including those of `finally`.

    Raises:
        ValueError: a task's run has not ended.
    """
    if TaskProgress.LIVE in progress:
        raise ValueError("the workflow run cannot be redriven: a task has not ended")
    kept = bytearray(len(progress))
    kept_choices = bytearray(len(choices))
    for task in definition.tasks[: definition.main_count]:
        if _still_follows(definition, task, progress[task.no], kept, kept_choices):
            kept[task.no] = progress[task.no]
            _keep_choices(definition, task.no, choices, kept_choices)
    return bytes(kept), bytes(kept_choices)


def rerun(
    definition: Definition, progress: bytes, choices: bytes, tasks: Iterable[int], *, downstream: bool
) -> tuple[bytes, bytes]:
    """Return progress and choices from which a rerun of some tasks continues.

    The tasks and those between them are undecided, so that they run in order. If one of them is a main task,
    so are all tasks of `finally`, which run after the last main task. Rules apply again: a task whose parents
    failed is skipped again.

    Args:
        definition: of the version of the run.
        progress: of a workflow run that has ended.
        choices: of its edges.
        tasks: numbers of the tasks.
        downstream: all tasks that depend on them, directly or through others, are undecided too.

    Raises:
        ValueError: a task is undecided, or its run has not ended.
    """
    if TaskProgress.LIVE in progress or TaskProgress.UNDECIDED in progress:
        raise ValueError("tasks cannot be rerun: the workflow run has not ended")
    again = set(tasks)
    below = _reached(again, definition.children)
    again = below if downstream else below & _reached(again, _parents(definition))
    if any(no < definition.main_count for no in again):
        again.update(range(definition.main_count, len(definition.tasks)))
    left, left_choices = bytearray(progress), bytearray(choices)
    for no in again:
        left[no] = _UNDECIDED
        for edge in definition.conditional_edges[no]:
            left_choices[edge.choice] = Choice.UNKNOWN
    return bytes(left), bytes(left_choices)


def _still_follows(
    definition: Definition, task: Task, progress: int, kept: bytearray, choices: bytearray
) -> bool:
    """Whether a task's progress follows from the tasks that are kept, however the others end."""
    if progress not in {TaskProgress.SUCCEEDED, TaskProgress.SKIPPED}:
        return False
    decision = decide_task(task, kept, choices)
    if decision is not Decision.RUN:
        return progress == TaskProgress.SKIPPED and decision in _KEPT_SKIPS
    # It succeeded, or its `when` was false, which holds as long as what `when` reads is kept.
    when = task.when
    if when is None:
        return progress == TaskProgress.SUCCEEDED
    return all(kept[definition.numbers[key]] != _UNDECIDED for key in when.reads | when.verdicts)


def _keep_choices(definition: Definition, no: int, choices: bytes, kept: bytearray) -> None:
    for edge in definition.conditional_edges[no]:
        kept[edge.choice] = choices[edge.choice]


def _parents(definition: Definition) -> list[list[int]]:
    return [[edge.parent for edge in task.edges] for task in definition.tasks]


def _reached(tasks: Iterable[int], neighbours: Sequence[Sequence[int]]) -> set[int]:
    """Return the tasks, and all that can be reached from them."""
    found = set(tasks)
    unvisited = list(found)
    while unvisited:
        new = set(neighbours[unvisited.pop()]) - found
        found |= new
        unvisited.extend(new)
    return found
