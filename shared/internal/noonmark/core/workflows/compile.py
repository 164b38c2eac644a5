"""Compiles the tasks of a workflow's document to its graph, and refuses what could not run as written."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import reduce
from itertools import count
from operator import or_
from typing import Final, NamedTuple

from noonmark.core.workflows.ancestors import ended_before
from noonmark.core.workflows.circles import shortest_circle
from noonmark.core.workflows.conditions import Condition, place_of
from noonmark.core.workflows.definition import Definition, Edge, ResultSource, Rule, Task
from noonmark.core.workflows.problems import InvalidWorkflowError, Problem
from noonmark.core.workflows.stored import definition_of, graph_of

__all__ = [
    "MOST_EDGES",
    "MOST_TASKS",
    "Parent",
    "ResultPlace",
    "TaskSource",
    "compile_tasks",
    "definition_of",
    "graph_of",
]

MOST_TASKS: Final = 5_000
MOST_EDGES: Final = 100_000

_MOST_SUGGESTIONS: Final = 20
"""A search for a near key reads all keys."""

_LONGEST_CIRCLE: Final = 20
"""Most members of a circle that are shown."""

Suggest = Callable[[str, Collection[str]], str]
"""Returns the end of a message about an unknown key, such as `; did you mean 'mails'?`, by the known keys."""


class Parent(NamedTuple):
    """A dependency as the document has it.

    Attributes:
        key: of the task that is depended on.
        condition: on that task's result.
        place: where the key is in the item of `depends_on`: `/task`, or "" if the item is only the key.
        position: of the item in `depends_on`.
    """

    key: str
    condition: Condition | None = None
    place: str = ""
    position: int = 0


@dataclass(frozen=True, slots=True)
class TaskSource:
    """A task as the document has it: the fields that decide whether and when it runs.

    Attributes:
        pointer: JSON pointer to the task.
        parents: in the order of the document.
        handles: keys of tasks; the other attributes are those of `Task`.
    """

    key: str
    pointer: str
    parents: Sequence[Parent] = ()
    rule: Rule = Rule.ALL_SUCCEEDED
    when: Condition | None = None
    may_fail: bool = False
    handles: Sequence[str] = ()
    is_final: bool = False
    start_deadline_seconds: float | None = None


class ResultPlace(NamedTuple):
    """Where the result of a workflow is: the key of a task, and a JSON pointer into its result."""

    key: str
    at: str = ""


def compile_tasks(
    sources: Sequence[TaskSource],
    result: ResultPlace | None = None,
    *,
    suggest: Suggest = lambda _key, _known: "",
) -> Definition:
    """Compile the tasks of a workflow. The order in which they are given makes no difference.

    Args:
        sources: at least one.
        result: of the workflow.
        suggest: names the known key that may be meant by an unknown one.

    Raises:
        InvalidWorkflowError: lists every problem.
    """
    compiler = _Compiler(sources, suggest)
    definition = compiler.compile(result)
    if compiler.problems or definition is None:
        raise InvalidWorkflowError(compiler.problems)
    return definition


class _Compiler:
    """Compiles one workflow, and collects its problems."""

    def __init__(self, sources: Sequence[TaskSource], suggest: Suggest) -> None:
        self.problems: list[Problem] = []
        self._suggest = suggest
        self._suggestions = 0
        self._sources: dict[str, TaskSource] = {}
        for source in sources:
            if source.key in self._sources:
                self._refuse(source.pointer, f"{source.key!r} is also a key in tasks", "another key")
            self._sources.setdefault(source.key, source)
        self._main = [source.key for source in self._sources.values() if not source.is_final]

    def compile(self, result: ResultPlace | None) -> Definition | None:
        """Return the graph; None if it cannot be made."""
        if self._is_too_large():
            return None
        edges = {key: list(self._edges(source)) for key, source in self._sources.items()}
        levels = self._levels(edges)
        if result is not None and result.key not in self._sources:
            self._refuse_unknown("/result/result", result.key, self._sources)
        if self.problems or levels is None:
            return None
        # A function of the graph alone: maps in JSON have no order.
        order = sorted(self._sources.values(), key=lambda one: (one.is_final, levels[one.key], one.key))
        numbers = {source.key: no for no, source in enumerate(order)}
        choices = count()
        tasks = [
            Task(
                no,
                source.key,
                source.rule,
                tuple(
                    Edge(numbers[key], condition, -1 if condition is None else next(choices))
                    for key, condition, *_ in edges[source.key]
                ),
                source.when,
                source.may_fail,
                self._handled(source, numbers),
                source.is_final,
                source.start_deadline_seconds,
            )
            for no, source in enumerate(order)
        ]
        self._check_upstream(tasks, edges, numbers)
        return Definition(tasks, ResultSource(numbers[result.key], result.at) if result else None)

    def _is_too_large(self) -> bool:
        edges = sum(len(source.parents) for source in self._sources.values())
        found = (("tasks", len(self._sources), MOST_TASKS), ("dependencies", edges, MOST_EDGES))
        for what, number, most in found:
            if number > most:
                self._refuse("/tasks", f"has {number} {what}", f"at most {most}")
                return True
        return False

    def _edges(self, source: TaskSource) -> Iterator[Parent]:
        """Yield the dependencies of a task that are valid by themselves."""
        seen: set[str] = set()
        for parent in source.parents:
            key = parent.key
            found = self._sources.get(key)
            if (
                found is not None
                and key not in seen
                and key != source.key
                and found.is_final <= source.is_final
            ):
                seen.add(key)
                yield parent
                continue
            at = f"{source.pointer}/depends_on/{parent.position}{parent.place}"
            if found is None:
                self._refuse_unknown(at, key, self._sources if source.is_final else self._main)
            elif key == source.key:
                self._refuse(at, "is the task itself", "another task")
            elif key in seen:
                self._refuse(at, f"{key!r} is listed twice", "each task once")
            else:
                self._refuse(at, f"{key!r} is of finally and runs after all tasks", "a task of tasks")

    def _levels(self, edges: Mapping[str, Sequence[Parent]]) -> dict[str, int] | None:
        """Return for each task the most edges from it to a task without any; None if there is a circle."""
        children: dict[str, list[str]] = {key: [] for key in edges}
        waiting = {key: len(parents) for key, parents in edges.items()}
        for key, parents in edges.items():
            for parent in parents:
                children[parent.key].append(key)
        level = [key for key, number in waiting.items() if not number]
        levels: dict[str, int] = {}
        depth = 0
        while level:
            levels |= dict.fromkeys(level, depth)
            following = []
            for key in level:
                for child in children[key]:
                    waiting[child] -= 1
                    if not waiting[child]:
                        following.append(child)
            level, depth = following, depth + 1
        if len(levels) == len(edges):
            return levels
        self._refuse_circle(edges)
        return None

    def _refuse_circle(self, edges: Mapping[str, Sequence[Parent]]) -> None:
        keys = sorted(edges)
        numbers = {key: no for no, key in enumerate(keys)}
        found = shortest_circle([[numbers[parent.key] for parent in edges[key]] for key in keys])
        names = [keys[no] for no in found]
        start, following = names[0], names[1]
        index = next(parent.position for parent in edges[start] if parent.key == following)
        if len(names) > _LONGEST_CIRCLE:
            names = [*names[: _LONGEST_CIRCLE - 1], f"… {len(names) - _LONGEST_CIRCLE} more …", names[-1]]
        shown = " → ".join([*names, start])
        self._refuse(f"{self._sources[start].pointer}/depends_on/{index}", f"{shown} is a circle", "")

    def _handled(self, source: TaskSource, numbers: Mapping[str, int]) -> tuple[int, ...]:
        handled: dict[int, None] = {}
        for index, key in enumerate(source.handles):
            at = f"{source.pointer}/handles/{index}"
            no = numbers.get(key)
            if no is None:
                self._refuse_unknown(at, key, numbers)
            elif key == source.key:
                self._refuse(at, "is the task itself", "a task upstream")
            elif no in handled:
                self._refuse(at, f"{key!r} is listed twice", "each task once")
            else:
                handled[no] = None
        return tuple(handled)

    def _check_upstream(
        self, tasks: Sequence[Task], edges: Mapping[str, Sequence[Parent]], numbers: Mapping[str, int]
    ) -> None:
        """Check that tasks refer only to tasks that end before them."""
        upstream = _upstream(tasks)
        before = ended_before(tasks)
        for task in tasks:
            source = self._sources[task.key]
            for no in task.handles:
                if not upstream[task.no] >> no & 1:
                    key = tasks[no].key
                    at = f"{source.pointer}/handles/{source.handles.index(key)}"
                    self._refuse_not_upstream(at, key, task.key)
            if task.when is not None:
                reads = _Reads(f"{source.pointer}/when", task.key, upstream[task.no], before[task.no])
                self._check_reads(task.when, reads, numbers)
            for edge, parent in zip(task.edges, edges[task.key], strict=True):
                if edge.condition is not None:
                    own = 1 << edge.parent
                    at = f"{source.pointer}/depends_on/{parent.position}/if"
                    reads = _Reads(at, parent.key, upstream[edge.parent] | own, before[edge.parent] | own)
                    self._check_reads(edge.condition, reads, numbers)

    def _check_reads(self, condition: Condition, reads: _Reads, numbers: Mapping[str, int]) -> None:
        for key in sorted(condition.reads | condition.verdicts):
            at = place_of(condition.stored, key, reads.pointer)
            no = numbers.get(key)
            if no is None:
                self._refuse_unknown(at, key, numbers)
            elif not reads.upstream >> no & 1:
                self._refuse_not_upstream(at, key, reads.key)
            elif not reads.ended >> no & 1:
                message = f"{key!r} may not have ended when this is evaluated"
                self._refuse(at, message, "a task that has ended by then, in any order of events")

    def _refuse_not_upstream(self, at: str, key: str, reader: str) -> None:
        expected = f"a task that {reader!r} depends on, directly or through others"
        self._refuse(at, f"{key!r} is not upstream of {reader!r}", expected)

    def _refuse_unknown(self, at: str, key: str, known: Collection[str]) -> None:
        self._suggestions += 1
        near = self._suggest(key, known) if self._suggestions <= _MOST_SUGGESTIONS else ""
        self._refuse(at, f"no task has the key {key!r}{near}", "the key of a task")

    def _refuse(self, at: str, message: str, expected: str) -> None:
        self.problems.append(Problem(at, message, expected))


class _Reads(NamedTuple):
    """What a condition may read.

    Attributes:
        pointer: of the condition.
        key: of the task after which, or before which, it is evaluated.
        upstream: bit mask of the tasks upstream of it.
        ended: bit mask of the tasks that have ended when the condition is evaluated, in any order of events.
    """

    pointer: str
    key: str
    upstream: int
    ended: int


def _upstream(tasks: Sequence[Task]) -> list[int]:
    """Return for each task a bit mask of the tasks that it depends on, directly or through others."""
    main = (1 << sum(not task.is_final for task in tasks)) - 1
    found: list[int] = []
    for task in tasks:
        parents = [found[edge.parent] | 1 << edge.parent for edge in task.edges]
        found.append(reduce(or_, parents, main if task.is_final else 0))
    return found
