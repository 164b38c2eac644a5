"""A workflow run as the ledger has it, and what its graph says: decided again from the rows alone.

This shares the graph and the conditions with the product, but none of its decisions.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime, timedelta
from enum import StrEnum
from functools import cache, cached_property
from typing import Final, NamedTuple

from noonmark.core.states import RunState, SkipReason
from noonmark.core.workflows.conditions import NOTHING
from noonmark.core.workflows.definition import Rule, Task
from noonmark.verify.history import Graph, Run

CLOCK: Final = timedelta(milliseconds=200)
"""Virtual machines correct their clocks in steps of some milliseconds: an end may be dated a little later."""

BY_RULE: Final = frozenset(
    {SkipReason.UPSTREAM_FAILED, SkipReason.UPSTREAM_SKIPPED, SkipReason.NOT_NEEDED, SkipReason.CONDITION}
)
"""Why a task is skipped when it is decided upon, if the workflow run was not stopped."""

_RUN: Final = "run"
_WAIT: Final = "wait"
_NO_FAILURE: Final = BY_RULE - {SkipReason.UPSTREAM_FAILED}


class End(StrEnum):
    """What the run of a task is for those that depend on it."""

    PENDING = "-"
    SUCCEEDED = "S"
    FAILED = "F"
    SKIPPED = "K"
    """Without a failure, or by a condition of the edge."""


Rows = Mapping[int, Run]
"""The run that counts for each task, by its number."""


class Flow:
    """A workflow run with the runs of its tasks, by generation.

    Attributes:
        run: the workflow run.
        graph: of its version.
        rows: the runs of tasks of each generation that has any.
        strangers: runs whose key is of no task of the graph.
    """

    def __init__(
        self, run: Run, tasks: Sequence[Run], graph: Graph, results: Mapping[str, str] | None = None
    ) -> None:
        self.run, self.graph = run, graph
        self.tasks = graph.definition.tasks
        self.rows: dict[int, dict[int, Run]] = {}
        self.strangers: list[Run] = []
        self._results = results
        self._values: dict[str, object] = {}
        for one in tasks:
            key = read_key(one)
            if key is None or key.task >= len(self.tasks):
                self.strangers.append(one)
            else:
                self.rows.setdefault(key.generation, {})[key.task] = one
        self._kept_of: dict[int, dict[int, Run]] = {}

    @cached_property
    def newest(self) -> int:
        """The newest generation that has runs of tasks; 0: none has."""
        return max(self.rows, default=0)

    def generations(self) -> list[int]:
        """Those that have runs of tasks, in order."""
        return sorted(self.rows)

    def kept(self, generation: int) -> Rows:
        """The runs of earlier generations that count in a generation.

        A redrive keeps what succeeded, or was skipped without a failure, if it follows from what is kept.
        """
        if generation not in self._kept_of:
            self._kept_of[generation] = self._kept(generation)
        return self._kept_of[generation]

    def _kept(self, generation: int) -> dict[int, Run]:
        last: dict[int, Run] = {}
        for earlier in self.generations():
            if earlier < generation:
                last |= self.rows[earlier]
        kept: dict[int, Run] = {}
        for task in self.tasks:
            row = last.get(task.no)
            if row is None or task.is_final or end_of(row) not in {End.SUCCEEDED, End.SKIPPED}:
                continue
            said = self.says(task, kept)
            if said == _RUN and task.when is not None:
                stays = self._reads(task) <= kept.keys()
            elif said == _RUN:
                stays = end_of(row) is End.SUCCEEDED
            else:
                stays = end_of(row) is End.SKIPPED and said in _NO_FAILURE
            if stays:
                kept[task.no] = row
        return kept

    def counted(self, generation: int) -> Rows:
        """The run that counts for each task in a generation: its own, or the one that was kept."""
        return {**self.kept(generation), **self.rows.get(generation, {})}

    def says(self, task: Task, rows: Rows, at: datetime | None = None) -> str:
        """What the rule of a task says: `run`, `wait`, or why to skip it.

        Args:
            task: the task.
            rows: the runs that count.
            at: nothing is known of what ended later; None: all ends are known.
        """
        found = {self._edge(task, place, rows, at) for place in range(len(task.edges))}
        return _decide(task.rule, frozenset(found))

    def holds(self, task: Task, rows: Rows, at: datetime) -> bool | None:
        """Whether the `when` of a task held; None: it depends on when the end of a task was noticed."""
        assert task.when is not None
        if not self._reads(task) <= self._noticed(task, self._reads(task)):
            return None
        return task.when.holds(
            lambda key: self._result(rows.get(self.graph.definition.numbers[key]), at),
            lambda key: _verdict(rows.get(self.graph.definition.numbers[key]), at),
        )

    def chosen(self, no: int, place: int, rows: Rows) -> bool:
        """Whether the condition of an edge holds, by the result of its parent."""
        edge = self.tasks[no].edges[place]
        assert edge.condition is not None
        own = self._result(rows.get(edge.parent), None)
        return edge.condition.holds(lambda _key: NOTHING, lambda _key: "", own)

    def failures(self, rows: Rows) -> Iterator[Task]:
        """Yield the tasks that failed themselves if that is neither allowed nor dealt with."""
        handled = {
            no
            for task in self.tasks
            if task.no in rows and end_of(rows[task.no]) is End.SUCCEEDED
            for no in task.handles
        }
        for task in self.tasks:
            row = rows.get(task.no)
            failed = (
                row is not None and end_of(row) is End.FAILED and row.reason != SkipReason.UPSTREAM_FAILED
            )
            if failed and not task.may_fail and task.no not in handled:
                yield task

    def _edge(self, task: Task, place: int, rows: Rows, at: datetime | None) -> End:
        edge = task.edges[place]
        found = end_of(rows.get(edge.parent), at)
        if found is End.SUCCEEDED and edge.condition is not None and not self.chosen(task.no, place, rows):
            return End.SKIPPED
        return found

    def _reads(self, task: Task) -> set[int]:
        assert task.when is not None
        return {self.graph.definition.numbers[key] for key in task.when.reads | task.when.verdicts}

    def _noticed(self, task: Task, wanted: set[int]) -> set[int]:
        """Those of the tasks whose ends were certainly noticed before a task was decided upon.

        A rule that waits for all parents has seen their ends, and so have their rules.
        """
        found = {one.no for one in self.tasks if not one.is_final} if task.is_final else set()
        unvisited = [task]
        while unvisited and not wanted <= found:
            one = unvisited.pop()
            if len(one.edges) > 1 and one.rule in {Rule.ONE_SUCCEEDED, Rule.ONE_FAILED}:
                continue
            new = {edge.parent for edge in one.edges} - found
            found |= new
            unvisited += [self.tasks[no] for no in new]
        return found & wanted

    def _result(self, row: Run | None, at: datetime | None) -> object:
        if row is None or end_of(row, at) is not End.SUCCEEDED:
            return NOTHING
        if row.id not in self._values:
            text = row.result if self._results is None else self._results.get(row.id)
            self._values[row.id] = _value(text)
        return self._values[row.id]


class Key(NamedTuple):
    """The key of a task's run: whose task it is."""

    workflow: str
    task: int
    item: int
    generation: int


def read_key(run: Run) -> Key | None:
    """Read the key of a task's run; None: it is none."""
    workflow, *numbers = run.request.split("/")
    if len(numbers) != len(Key._fields) - 1 or not all(each.isascii() and each.isdigit() for each in numbers):
        return None
    return Key(workflow, *map(int, numbers))


def end_of(run: Run | None, at: datetime | None = None) -> End:
    """What the run of a task is for those that depend on it, as far as is known at a time."""
    if run is None or run.finished_at is None or (at is not None and run.finished_at > at + CLOCK):
        return End.PENDING
    if run.state == RunState.SUCCEEDED:
        return End.SUCCEEDED
    return End.SKIPPED if run.state == RunState.SKIPPED and run.reason in _NO_FAILURE else End.FAILED


def was_decided(run: Run) -> bool:
    """Whether a run was skipped when its task was decided upon: it was never queued, nor did it wait."""
    by_rule = run.reason in BY_RULE or (
        run.reason == SkipReason.CANCELLED and run.due_at is not None and run.finished_at == run.due_at
    )
    return run.state == RunState.SKIPPED and run.queued_at is None and by_rule


def _value(text: str | None) -> object:
    """Read a result; Postgres keeps JSON that no program can read."""
    try:
        return NOTHING if text is None else json.loads(text)
    except ValueError:
        return NOTHING


def _verdict(run: Run | None, at: datetime) -> str:
    if end_of(run, at) is End.PENDING:
        return "undecided"
    assert run is not None
    return run.state if run.state in {RunState.SUCCEEDED, RunState.SKIPPED} else "failed"


@cache
def _decide(rule: Rule, ends: frozenset[End]) -> str:
    """The table of the rules. A task without dependencies runs."""
    needed = {Rule.ONE_FAILED: End.FAILED, Rule.ONE_SUCCEEDED: End.SUCCEEDED}.get(rule)
    if not ends or needed in ends:
        return _RUN
    if rule in {Rule.ALL_SUCCEEDED, Rule.NONE_FAILED} and End.FAILED in ends:
        return SkipReason.UPSTREAM_FAILED
    if End.PENDING in ends:
        return _WAIT
    return _decide_at_last(rule, ends)


def _decide_at_last(rule: Rule, ends: frozenset[End]) -> str:
    """What is left when every dependency has ended, and no end alone was decisive."""
    without = {End.SKIPPED} & ends if rule is Rule.ALL_SUCCEEDED else ends == {End.SKIPPED}
    if rule is Rule.ONE_FAILED:
        return SkipReason.NOT_NEEDED
    if rule is Rule.ONE_SUCCEEDED:
        return SkipReason.UPSTREAM_FAILED if End.FAILED in ends else SkipReason.UPSTREAM_SKIPPED
    return SkipReason.UPSTREAM_SKIPPED if without and rule is not Rule.ALL_DONE else _RUN
