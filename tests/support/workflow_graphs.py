"""Workflows for tests: graphs in a few words, conditions that compare, and runs that a test plays task by task."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from noonmark.core.workflows.advancing import Advance, advance
from noonmark.core.workflows.definition import Definition, Edge, Rule, Task
from noonmark.core.workflows.progress import TaskProgress
from noonmark.core.workflows.resuming import rerun, resume
from noonmark.core.workflows.verdicts import Stop


@dataclass(frozen=True)
class OwnIs:
    """A condition of an edge: the parent's result equals a value."""

    value: object
    reads: frozenset[str] = frozenset()
    verdicts: frozenset[str] = frozenset()

    def holds(
        self, results: Callable[[str], object], verdicts: Callable[[str], str], own: object = None
    ) -> bool:
        return own == self.value


class ResultIs:
    """A condition of a task: the result of another equals a value."""

    verdicts: frozenset[str] = frozenset()

    def __init__(self, key: str, value: object) -> None:
        self.key, self.value, self.reads = key, value, frozenset({key})

    def holds(
        self, results: Callable[[str], object], verdicts: Callable[[str], str], own: object = None
    ) -> bool:
        return results(self.key) == self.value


class VerdictIs:
    """A condition of a task: the verdict of another is this one."""

    reads: frozenset[str] = frozenset()

    def __init__(self, key: str, verdict: str) -> None:
        self.key, self.verdict, self.verdicts = key, verdict, frozenset({key})

    def holds(
        self, results: Callable[[str], object], verdicts: Callable[[str], str], own: object = None
    ) -> bool:
        found = verdicts(self.key)
        assert found in {"succeeded", "failed", "skipped"}, f"{self.key} had not ended when it was read"
        return found == self.verdict


def graph(tasks: Mapping[str, Mapping[str, Any]], last: Mapping[str, Mapping[str, Any]] = {}) -> Definition:
    """Compile tasks that are in topological order, `last` being those of `finally`.

    A task has `after`, a list of keys or of pairs of key and condition, and the other fields of a document.
    """
    numbers = {key: no for no, key in enumerate([*tasks, *last])}
    compiled: list[Task] = []
    choices = 0
    for key, fields in [*tasks.items(), *last.items()]:
        edges = []
        for parent in fields.get("after", ()):
            name, condition = parent if isinstance(parent, tuple) else (parent, None)
            edges.append(Edge(numbers[name], condition, choices if condition is not None else -1))
            choices += condition is not None
        compiled.append(
            Task(
                no=len(compiled),
                key=key,
                rule=Rule(fields.get("rule", "all_succeeded")),
                edges=tuple(edges),
                when=fields.get("when"),
                may_fail=fields.get("may_fail", False),
                handles=tuple(numbers[name] for name in fields.get("handles", ())),
                is_final=key in last,
            )
        )
    return Definition(compiled)


class Run:
    """A workflow run; its methods return the keys of the tasks that start then."""

    def __init__(self, definition: Definition, **results: object) -> None:
        self.definition = definition
        self.results = results
        self.progress = bytes(len(definition.tasks))
        self.choices = bytes(definition.choices)
        self.skipped: dict[str, str] = {}
        self.loaded: list[str] = []
        self.last: Advance | None = None
        self.stop: Stop | None = None

    def open(self) -> list[str]:
        return self.step([])

    def succeed(self, *keys: str) -> list[str]:
        return self.step([(key, TaskProgress.SUCCEEDED) for key in keys])

    def fail(self, *keys: str) -> list[str]:
        return self.step([(key, TaskProgress.FAILED) for key in keys])

    def end(self, key: str, progress: TaskProgress) -> list[str]:
        return self.step([(key, progress)])

    def cancel(self) -> list[str]:
        self.stop = Stop.CANCELLED
        return self.step([])

    def miss_deadline(self) -> list[str]:
        self.stop = Stop.DEADLINE
        return self.step([])

    def redrive(self) -> list[str]:
        self.stop = None
        self.progress, self.choices = resume(self.definition, self.progress, self.choices)
        return self.step([])

    def rerun(self, *keys: str, downstream: bool = True) -> list[str]:
        self.progress, self.choices = rerun(
            self.definition, self.progress, self.choices, map(self.no, keys), downstream=downstream
        )
        return self.step([])

    def step(self, ends: Iterable[tuple[str, TaskProgress]]) -> list[str]:
        self.last = advance(
            self.definition,
            self.progress,
            self.choices,
            [(self.no(key), progress) for key, progress in ends],
            results=self._result,
            stop=self.stop,
        )
        self.progress, self.choices = self.last.progress, self.last.choices
        self.skipped |= {self._key(no): reason.value for no, reason in self.last.skipped}
        return [self._key(no) for no in self.last.started]

    @property
    def verdict(self) -> str | None:
        """How it ended, with the tasks that are named: `dead task_failed a b`."""
        assert self.last is not None
        ending = self.last.ending
        if ending is None:
            return None
        return " ".join(filter(None, (ending.state, ending.reason, *ending.failed)))

    def of(self, key: str) -> TaskProgress:
        return TaskProgress(self.progress[self.no(key)])

    def no(self, key: str) -> int:
        return self.definition.numbers[key]

    def _key(self, no: int) -> str:
        return self.definition.tasks[no].key

    def _result(self, no: int) -> object:
        self.loaded.append(self._key(no))
        return self.results.get(self._key(no))
