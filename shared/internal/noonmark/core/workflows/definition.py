"""A compiled workflow: tasks by number, parents before children. It never changes for a version of a job."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum

from noonmark.core.workflows.conditions import Condition


class Rule(StrEnum):
    """When a task runs, by the classes of its edges; see `noonmark.core.workflows.rules`."""

    ALL_SUCCEEDED = "all_succeeded"
    NONE_FAILED = "none_failed"
    ALL_DONE = "all_done"
    ONE_SUCCEEDED = "one_succeeded"
    ONE_FAILED = "one_failed"


@dataclass(frozen=True, slots=True)
class Edge:
    """A dependency of a task.

    Attributes:
        parent: number of the task that it depends on.
        condition: on the parent's result; None: the edge has no condition.
        choice: place of the edge among all conditional edges of the workflow; -1 without a condition.
    """

    parent: int
    condition: Condition | None = None
    choice: int = -1


@dataclass(frozen=True, slots=True)
class Task:
    """What decides whether and when a task runs.

    Attributes:
        no: its number: its place in `Definition.tasks`.
        key: its name in the document.
        edges: its dependencies, in the order of the document.
        when: looked at when the rule says that the task runs.
        may_fail: its failure does not fail the workflow run.
        handles: numbers of tasks whose failure counts as dealt with if this one succeeds.
        is_final: it is one of `finally`: it waits for all other tasks, not only for its parents.
        start_deadline_seconds: it is skipped if it has not started this long after it was due.
    """

    no: int
    key: str
    rule: Rule = Rule.ALL_SUCCEEDED
    edges: tuple[Edge, ...] = ()
    when: Condition | None = None
    may_fail: bool = False
    handles: tuple[int, ...] = ()
    is_final: bool = False
    start_deadline_seconds: float | None = None


@dataclass(frozen=True, slots=True)
class ResultSource:
    """What the result of the workflow run is: the value at a JSON pointer in a task's result."""

    task: int
    at: str = ""


class Definition:
    """The graph of a workflow.

    Attributes:
        tasks: in topological order; those of `finally` come last.
        children: for each task, the numbers of the tasks that depend on it, ascending.
        main_count: how many tasks are not of `finally`; they have the lowest numbers.
        choices: how many edges have a condition.
        conditional_edges: for each task, the edges from it that have a condition.
        result: what the result of a run is; None: it has none.
    """

    __slots__ = ("children", "choices", "conditional_edges", "main_count", "numbers", "result", "tasks")

    def __init__(self, tasks: Sequence[Task], result: ResultSource | None = None) -> None:
        """Keep the tasks; `compile` has checked them."""
        self.tasks = tuple(tasks)
        self.result = result
        self.numbers = {task.key: task.no for task in self.tasks}
        self.main_count = sum(not task.is_final for task in self.tasks)
        children: list[list[int]] = [[] for _ in self.tasks]
        conditional: list[list[Edge]] = [[] for _ in self.tasks]
        for task in self.tasks:
            for edge in task.edges:
                children[edge.parent].append(task.no)
                if edge.condition is not None:
                    conditional[edge.parent].append(edge)
        self.children = tuple(tuple(each) for each in children)
        self.conditional_edges = tuple(tuple(each) for each in conditional)
        self.choices = sum(map(len, conditional))
