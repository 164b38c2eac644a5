"""The graph of a workflow as JSON: one value for each task, in the table of tasks."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from noonmark.core.workflows.conditions import Condition, parse_condition
from noonmark.core.workflows.definition import Definition, Edge, ResultSource, Rule, Task


def graph_of(definition: Definition) -> list[dict[str, Any]]:
    """Return for each task, by number, what `definition_of` reads again. Absent fields have their defaults.

    The fields: `rule`; `edges`, each the number of the parent, or a list of the number and a condition;
    `when`; `may_fail`; `handles`, numbers of tasks; `final`; `start_deadline_seconds`; `result_at`, of the
    task whose result is that of the workflow, the JSON pointer into it.
    """
    result = definition.result
    graphs = [_graph(task) for task in definition.tasks]
    if result is not None:
        graphs[result.task]["result_at"] = result.at
    return graphs


def definition_of(rows: Iterable[tuple[str, Mapping[str, Any]]]) -> Definition:
    """Return the graph of a version of a workflow.

    Args:
        rows: key and graph of each task, in the order of their numbers.

    Raises:
        ValueError: the rows are not those of a workflow.
    """
    tasks: list[Task] = []
    result: ResultSource | None = None
    choices = 0
    plain: list[Edge] = []  # from each task, shared by all that depend on it
    try:
        for no, (key, graph) in enumerate(rows):
            edges = []
            for edge in graph.get("edges", ()):
                parent, condition = (edge, None) if isinstance(edge, int) else edge
                if not 0 <= parent < no:
                    raise ValueError(f"task {no} has the parent {parent}")
                if condition is None:
                    edges.append(plain[parent])
                    continue
                edges.append(Edge(parent, parse_condition(condition, of_edge=True), choices))
                choices += 1
            tasks.append(_task(no, key, graph, tuple(edges)))
            plain.append(Edge(no))
            if "result_at" in graph:
                result = ResultSource(no, graph["result_at"])
    except (TypeError, AttributeError) as error:
        raise ValueError(f"the tasks of a workflow cannot be read: {error}") from None
    return Definition(tasks, result)


def _task(no: int, key: str, graph: Mapping[str, Any], edges: tuple[Edge, ...]) -> Task:
    when = graph.get("when")
    return Task(
        no,
        key,
        Rule(graph.get("rule", Rule.ALL_SUCCEEDED)),
        edges,
        None if when is None else parse_condition(when),
        bool(graph.get("may_fail", False)),
        tuple(graph.get("handles", ())),
        bool(graph.get("final", False)),
        graph.get("start_deadline_seconds"),
    )


def _graph(task: Task) -> dict[str, Any]:
    stored: dict[str, Any] = {}
    if task.rule is not Rule.ALL_SUCCEEDED:
        stored["rule"] = task.rule.value
    if task.edges:
        stored["edges"] = [_edge(edge.parent, edge.condition) for edge in task.edges]
    if task.when is not None:
        stored["when"] = task.when.stored
    if task.may_fail:
        stored["may_fail"] = True
    if task.handles:
        stored["handles"] = list(task.handles)
    if task.is_final:
        stored["final"] = True
    if task.start_deadline_seconds is not None:
        stored["start_deadline_seconds"] = task.start_deadline_seconds
    return stored


def _edge(parent: int, condition: Condition | None) -> object:
    return parent if condition is None else [parent, condition.stored]
