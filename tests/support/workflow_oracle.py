"""How the tasks of a workflow end, from how each of them ends if it runs: no code of the product decides.

It waits for all parents, never decides early, and repeats over all tasks until nothing changes.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from noonmark.core.workflows.definition import Definition, Task
from noonmark.core.workflows.progress import TaskProgress as P

_TABLE = """
               -    S    SF   SK   F    FK   K    SFK
all_succeeded  run  run  uf   us   uf   uf   us   uf
none_failed    run  run  uf   run  uf   uf   us   uf
all_done       run  run  run  run  run  run  run  run
one_succeeded  run  run  run  run  uf   uf   us   run
one_failed     run  nn   run  nn   run  run  nn   run
"""
_SKIPS = {"uf": "upstream_failed", "us": "upstream_skipped", "nn": "not_needed", "when": "condition"}
_VERDICTS = {P.SUCCEEDED: "succeeded", P.FAILED: "failed", P.CANCELLED: "failed"}


def table() -> dict[tuple[str, frozenset[str]], str]:
    """Return what each rule says, by the classes that the edges have."""
    header, *rows = (line.split() for line in _TABLE.strip().splitlines())
    columns = [frozenset(column.strip("-")) for column in header]
    return {
        (rule, column): cell for rule, *cells in rows for column, cell in zip(columns, cells, strict=True)
    }


_RULES = table()


class TaskEnd(NamedTuple):
    """How a task ends, and why it was skipped by a rule or its `when`; None: it ran."""

    end: P
    skipped: str | None = None


def outcome(
    definition: Definition, ends: Mapping[int, P], results: Mapping[int, object]
) -> dict[int, TaskEnd]:
    """Return how every task ends.

    Args:
        definition: of the workflow.
        ends: how each task ends if it runs.
        results: of each task if it succeeds.
    """
    known: dict[int, TaskEnd] = {}
    while len(known) < len(definition.tasks):
        before = len(known)
        for task in reversed(definition.tasks):
            if task.no in known or any(edge.parent not in known for edge in task.edges):
                continue
            if task.is_final and any(not one.is_final and one.no not in known for one in definition.tasks):
                continue
            known[task.no] = _end_of(definition, task, ends, results, known)
        assert len(known) > before, "a circle"
    return known


def verdict(definition: Definition, found_ends: Mapping[int, TaskEnd]) -> str:
    """Return how the workflow run ends that no one stopped, with all tasks that are the cause."""
    forgiven = {task.no for task in definition.tasks if task.may_fail}
    for task in definition.tasks:
        if found_ends[task.no].end is P.SUCCEEDED:
            forgiven.update(task.handles)
    bad = [
        task
        for task in definition.tasks
        if task.no not in forgiven
        and found_ends[task.no].skipped is None
        and found_ends[task.no].end is not P.SUCCEEDED
    ]
    main = [task.key for task in bad if not task.is_final]
    if main:
        return " ".join(["dead task_failed", *main[:5]])
    return " ".join(["dead finally_failed", *(task.key for task in bad[:5])]) if bad else "succeeded"


def classes(task: Task, known: Mapping[int, TaskEnd], results: Mapping[int, object]) -> str:
    """Return the class of each edge: S, F or K."""
    found = ""
    for edge in task.edges:
        end = known[edge.parent].end
        if end is P.SUCCEEDED:
            own = results[edge.parent]
            holds = edge.condition is None or edge.condition.holds(_unread, _unread, own)
            found += "S" if holds else "K"
        else:
            found += "K" if end is P.SKIPPED else "F"
    return found


def _end_of(
    definition: Definition,
    task: Task,
    ends: Mapping[int, P],
    results: Mapping[int, object],
    known: Mapping[int, TaskEnd],
) -> TaskEnd:
    word = _RULES[task.rule.value, frozenset(classes(task, known, results))]
    if word == "run" and task.when is not None:

        def result(key: str) -> object:
            no = definition.numbers[key]
            return results[no] if known[no].end is P.SUCCEEDED else None

        def said(key: str) -> str:
            return _VERDICTS.get(known[definition.numbers[key]].end, "skipped")

        word = "run" if task.when.holds(result, said) else "when"
    if word == "run":
        return TaskEnd(ends[task.no])
    return TaskEnd(P.SKIPPED_BY_FAILURE if word == "uf" else P.SKIPPED, _SKIPS[word])


def _unread(key: str) -> str:
    raise AssertionError(f"the condition of an edge read {key}")
