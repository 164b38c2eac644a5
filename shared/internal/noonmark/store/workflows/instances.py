"""An open workflow run in the hands of a pass: what was taken of it, and what was decided."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from functools import partial
from typing import NamedTuple
from uuid import UUID

import orjson

from noonmark.core.ids import shard_of
from noonmark.core.kinds.json_values import NOTHING, pointer_path, value_at
from noonmark.core.states import Lane, Origin, RunState, SkipReason
from noonmark.core.workflows.advancing import advance
from noonmark.core.workflows.ids import TaskKey
from noonmark.core.workflows.progress import TaskProgress, progress_of
from noonmark.core.workflows.verdicts import Ending, Stop, WorkflowFailure
from noonmark.store.workflows.compiled import Compiled
from noonmark.store.workflows.results import Instance, Results
from noonmark.store.workflows.runs import task_key


class TakenFacts(NamedTuple):
    """A row of `take_facts`: the due timers of one workflow run, its state, and its row in the ledger.

    `asked` says that a timer is about the workflow run itself. `locked`: this pass holds the lock of the open
    workflow; the columns after it are null otherwise. `state` is null if there is no such workflow run.
    """

    workflow_id: UUID
    scheduled_for: datetime
    places: list[str]
    keys: list[str] | None
    states: list[str] | None
    reasons: list[str] | None
    asked: bool
    locked: bool
    generation: int | None
    progress: bytes | None
    choices: bytes | None
    stopping: str | None
    held_at: datetime | None
    opened_at: datetime | None
    job_id: UUID
    job_version: int
    state: str | None
    reason: str | None
    origin: str
    namespace: str
    lane: int
    attempt: int
    fence: int
    started_at: datetime | None
    start_by: datetime | None
    holds_slot: bool
    job_state: str | None
    capped: bool
    now: datetime


@dataclass(slots=True, eq=False)
class OpenWorkflow:
    """A workflow run that a pass advances.

    Attributes:
        facts: what was taken.
        compiled: its version.
        generation: of the task runs that it starts.
        progress: a byte for each task.
        choices: a byte for each conditional edge.
        stopping: why nothing more starts, but for `finally`.
        is_new: it is opened by this pass.
        started: numbers of the tasks whose runs are written.
        skipped: numbers of the tasks that are skipped, with the reason.
        ending: its verdict, if every task has one.
        error: what is shown of a failed run.
        result: of a run that has succeeded, JSON text.
        ends: the tasks that have ended, and how.
    """

    facts: TakenFacts
    compiled: Compiled
    generation: int
    progress: bytes
    choices: bytes
    stopping: Stop | None = None
    is_new: bool = False
    started: Sequence[int] = ()
    skipped: Sequence[tuple[int, SkipReason]] = ()
    ending: Ending | None = None
    error: str | None = None
    result: str | None = None
    ends: list[tuple[int, TaskProgress]] = field(default_factory=list)

    @classmethod
    def of(cls, facts: TakenFacts, compiled: Compiled) -> OpenWorkflow:
        """Return an open workflow with what has ended, or one to open, with no task decided."""
        if not facts.locked:
            definition = compiled.definition
            nothing = bytes(len(definition.tasks))
            return cls(facts, compiled, 1, nothing, bytes(definition.choices), is_new=True)
        assert facts.generation is not None
        assert facts.progress is not None
        assert facts.choices is not None
        stop = None if facts.stopping is None else Stop(facts.stopping)
        opened = cls(facts, compiled, facts.generation, facts.progress, facts.choices, stop)
        opened.ends = list(_ends_of(facts))
        return opened

    def advance(self, results: Results) -> None:
        """Decide what follows from what has ended.

        Raises:
            NotReadError: a result is needed first; nothing has changed.
        """
        decided = advance(
            self.compiled.definition,
            self.progress,
            self.choices,
            self.ends,
            results=partial(results.of, self.instance),
            stop=self.stopping,
        )
        if decided.ending is not None:
            self._end(decided.ending, results)
        self.progress, self.choices = bytes(decided.progress), bytes(decided.choices)
        self.started, self.skipped, self.ending = decided.started, decided.skipped, decided.ending

    def _end(self, ending: Ending, results: Results) -> None:
        """Add result or error to the verdict."""
        source = self.compiled.definition.result
        if ending.state is RunState.SUCCEEDED and source is not None:
            value = value_at(results.of(self.instance, source.task), pointer_path(source.at))
            self.result = None if value is NOTHING else orjson.dumps(value).decode()
        elif ending.reason is WorkflowFailure.DEADLINE:
            self.error = "the deadline of the workflow run passed"
        elif ending.first is not None:
            self.error = _error(ending, results.error_of(self.instance, ending.first))

    @property
    def instance(self) -> Instance:
        """The run whose results its conditions read."""
        facts = self.facts
        return Instance(facts.workflow_id, facts.job_id, facts.scheduled_for, self.generation)

    def deadline(self) -> datetime | None:
        """Return when the run must have ended: counted from its instant, or from its redrive."""
        seconds, facts = self.compiled.deadline_seconds, self.facts
        if seconds is None:
            return None
        begun = facts.scheduled_for if self.generation == 1 else facts.opened_at or facts.now
        return begun + timedelta(seconds=seconds)

    def shard(self, shards: int) -> int:
        """Return the shard of the run and of its tasks: its own, so that runs of one job are spread."""
        return shard_of(self.facts.workflow_id, shards)

    def lane_of(self, task: int) -> int:
        """Return the lane of a task's run: the lowest for a backfill, as for all its runs."""
        return int(Lane.LOW) if self.facts.origin == Origin.BACKFILL else self.compiled.lanes[task]

    def key_of(self, task: int) -> str:
        """Return the key of a task's run in this generation."""
        return TaskKey(self.facts.workflow_id, task, 0, self.generation).text


def _error(ending: Ending, error: str | None) -> str:
    """Return what is shown of a failed run: which tasks failed, and the error of the first."""
    names = ", ".join(ending.failed)
    more = ending.failures - len(ending.failed)
    which = f"{names} and {more} more" if more else names
    failed = f"task{'s' if ending.failures > 1 else ''} {which} failed"
    return f"{failed}: {error}" if error else failed


def _ends_of(facts: TakenFacts) -> Iterator[tuple[int, TaskProgress]]:
    """Yield what the timers of a workflow say about its tasks; those of older generations say nothing."""
    tasks = len(facts.progress or b"")
    before, after = f"{facts.workflow_id}/", f"/0/{facts.generation}"
    for text, state, reason in zip(facts.keys or (), facts.states or (), facts.reasons or (), strict=True):
        number = text[len(before) : -len(after)]
        if text.startswith(before) and text.endswith(after) and number.isdecimal():
            task = int(number)
        else:  # of another generation, or written in another way
            key = task_key(text)
            if key is None or key.generation != facts.generation:
                continue
            task = key.task_no
        if task < tasks and (reached := progress_of(state, reason or None)) is not TaskProgress.LIVE:
            yield task, reached
