"""One step of a workflow run: folds the tasks that ended, and decides everything that follows.

Tasks have topological numbers, so a heap over them decides each task after its parents, and a cascade of
skips of any depth in one call. A child is counted once per call, however many of its parents ended.

An edge's condition is evaluated once, when its parent has succeeded, and its choice is kept.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from heapq import heappop, heappush
from typing import Final

from noonmark.core.states import SkipReason
from noonmark.core.workflows.conditions import NOTHING
from noonmark.core.workflows.definition import Definition
from noonmark.core.workflows.progress import (
    VERDICTS_OF_TASKS,
    Choice,
    TaskProgress,
    all_ended,
    main_ended,
)
from noonmark.core.workflows.rules import SKIP_REASONS, Decision, decide_task
from noonmark.core.workflows.verdicts import Ending, Stop, ending_of

Results = Callable[[int], object]
"""Returns the result of a task that succeeded, as JSON, or `conditions.NOTHING`; by the task's number."""

UNDECIDED_VERDICT: Final = "undecided"
"""What a condition reads as the verdict of a task that has not ended. No document can name it."""

_UNDECIDED: Final = int(TaskProgress.UNDECIDED)
_LIVE: Final = int(TaskProgress.LIVE)
_SUCCEEDED: Final = int(TaskProgress.SUCCEEDED)


@dataclass(frozen=True, slots=True)
class Advance:
    """What follows from the tasks that ended.

    Attributes:
        progress: of all tasks afterwards.
        choices: of all edges with a condition afterwards.
        started: numbers of the tasks to run now, ascending; they are `LIVE`.
        skipped: numbers of the tasks that were skipped, ascending, with the reasons.
        ending: how the workflow run ends; None: it goes on.
    """

    progress: bytes
    choices: bytes
    started: list[int]
    skipped: list[tuple[int, SkipReason]]
    ending: Ending | None = None


def advance(
    definition: Definition,
    progress: bytes,
    choices: bytes,
    ends: Iterable[tuple[int, TaskProgress]],
    *,
    results: Results,
    stop: Stop | None = None,
) -> Advance:
    """Fold the ends of task runs and decide all that can be decided.

    To open a workflow run, or to continue it after `resume` or `rerun`, pass no ends. An end of a task that
    is not `LIVE` changes nothing, so ends may be repeated. The call has no effects: if `results` raises, you
    can load what it lacked and call again.

    Args:
        definition: of the version of the run.
        progress: one `TaskProgress` per task; all zero for a new run.
        choices: one `Choice` per edge with a condition; all zero for a new run.
        ends: numbers of tasks whose runs ended, and how.
        results: called only if a condition needs it, at most once per task.
        stop: skips main tasks that are undecided; tasks of `finally` still run. Pass it in every call from
            when it is requested. Do not pass one that was requested when `main_ended` already held.

    Raises:
        ValueError: progress or choices are of another definition.
    """
    if (len(progress), len(choices)) != (len(definition.tasks), definition.choices):
        raise ValueError(
            f"the state of {len(progress)} tasks and {len(choices)} conditions is not that of a workflow of"
            f" {len(definition.tasks)} tasks and {definition.choices} conditions"
        )
    step = _Step(definition, progress, choices, results)
    ended = step.fold(ends)
    step.choose(ended)
    main, total = definition.main_count, len(definition.tasks)
    if stop is not None:
        step.skip_undecided(main)
    elif ended:
        step.decide(set().union(*(definition.children[no] for no in ended)), main)
    else:
        step.decide(range(main), main)
    if main_ended(definition, step.progress):
        step.decide(range(main, total), total)
    return step.outcome(stop)


def choices_of(definition: Definition, progress: bytes, results: Results) -> bytes:
    """Return the choices of all edges whose parents have succeeded, for a progress that the ledger gave."""
    step = _Step(definition, progress, bytes(definition.choices), results)
    step.choose([])
    return bytes(step.choices)


class _Step:
    """The state of a workflow run within one call."""

    def __init__(self, definition: Definition, progress: bytes, choices: bytes, results: Results) -> None:
        self.progress = bytearray(progress)
        self._definition = definition
        self.choices = bytearray(choices)
        self._load = results
        self._loaded: dict[int, object] = {}
        self._started: list[int] = []
        self._skipped: list[tuple[int, SkipReason]] = []

    def fold(self, ends: Iterable[tuple[int, TaskProgress]]) -> list[int]:
        """Return the numbers of the tasks that were `LIVE` and have ended now."""
        ended = []
        for no, end in ends:
            if end > _LIVE and self.progress[no] == _LIVE:
                self.progress[no] = end
                ended.append(no)
        return ended

    def choose(self, ended: list[int]) -> None:
        """Evaluate conditions of edges from tasks that succeeded: from these, or if it is empty, all."""
        if Choice.UNKNOWN not in self.choices:
            return
        for no in ended or range(len(self.progress)):
            if self.progress[no] != _SUCCEEDED:
                continue
            for edge in self._definition.conditional_edges[no]:
                if edge.condition is not None and self.choices[edge.choice] == Choice.UNKNOWN:
                    holds = edge.condition.holds(self._result, self._verdict, self._result_of(no))
                    self.choices[edge.choice] = Choice.HOLDS if holds else Choice.DOES_NOT_HOLD

    def skip_undecided(self, end: int) -> None:
        """Skip the undecided tasks with numbers below `end`, because the workflow run stops."""
        for no in range(end):
            if self.progress[no] == _UNDECIDED:
                self._skip(no, TaskProgress.SKIPPED_BY_CANCEL, SkipReason.CANCELLED)

    def decide(self, candidates: Iterable[int], end: int) -> None:
        """Decide undecided candidates, and what follows from them, if their numbers are below `end`."""
        children, progress = self._definition.children, self.progress
        heap = sorted(no for no in candidates if no < end and progress[no] == _UNDECIDED)
        queued = set(heap)
        while heap:
            no = heappop(heap)
            if not self._decide_one(no):
                continue
            for child in children[no]:
                if child < end and progress[child] == _UNDECIDED and child not in queued:
                    queued.add(child)
                    heappush(heap, child)

    def outcome(self, stop: Stop | None) -> Advance:
        """Return what this call decided."""
        progress, choices = bytes(self.progress), bytes(self.choices)
        ending = ending_of(self._definition, progress, choices, stop) if all_ended(progress) else None
        return Advance(progress, choices, self._started, self._skipped, ending)

    def _decide_one(self, no: int) -> bool:
        """Decide a task if it can be decided; return whether it was skipped, so that its children change."""
        task = self._definition.tasks[no]
        decision = decide_task(task, self.progress, self.choices)
        if decision is Decision.WAIT:
            return False
        if decision is Decision.RUN:
            if task.when is None or task.when.holds(self._result, self._verdict):
                self.progress[no] = _LIVE
                self._started.append(no)
                return False
            self._skip(no, TaskProgress.SKIPPED, SkipReason.CONDITION)
            return True
        failed = decision is Decision.UPSTREAM_FAILED
        progress = TaskProgress.SKIPPED_BY_FAILURE if failed else TaskProgress.SKIPPED
        self._skip(no, progress, SKIP_REASONS[decision])
        return True

    def _skip(self, no: int, progress: TaskProgress, reason: SkipReason) -> None:
        self.progress[no] = progress
        self._skipped.append((no, reason))

    def _result(self, key: str) -> object:
        no = self._definition.numbers[key]
        return self._result_of(no) if self.progress[no] == _SUCCEEDED else NOTHING

    def _result_of(self, no: int) -> object:
        if no not in self._loaded:
            self._loaded[no] = self._load(no)
        return self._loaded[no]

    def _verdict(self, key: str) -> str:
        progress = TaskProgress(self.progress[self._definition.numbers[key]])
        return VERDICTS_OF_TASKS.get(progress, UNDECIDED_VERDICT)
