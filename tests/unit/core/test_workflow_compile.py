"""Tasks become a graph, or are refused with the place and the reason."""

from __future__ import annotations

import random
from collections import deque
from collections.abc import Iterable, Sequence
from time import process_time
from typing import Any

import orjson
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from noonmark.core.workflows.circles import shortest_circle
from noonmark.core.workflows.compile import (
    MOST_EDGES,
    MOST_TASKS,
    Parent,
    ResultPlace,
    TaskSource,
    compile_tasks,
    definition_of,
    graph_of,
)
from noonmark.core.workflows.conditions import parse_condition
from noonmark.core.workflows.definition import Definition, ResultSource, Rule
from noonmark.core.workflows.problems import InvalidWorkflowError, Problem
from noonmark.schemas.problems.suggestions import suggestion

YES = {"at": "/yes", "eq": True}


def source(key: str, *parents: str | tuple[str, object], final: bool = False, **fields: Any) -> TaskSource:
    place = f"/{'finally' if final else 'tasks'}/{key}"
    edges = []
    for position, parent in enumerate(parents):
        name, condition = (parent, None) if isinstance(parent, str) else parent
        parsed = None if condition is None else parse_condition(condition, of_edge=True)
        edges.append(Parent(name, parsed, "" if condition is None else "/task", position))
    if "when" in fields:
        fields["when"] = parse_condition(fields["when"])
    return TaskSource(key, place, edges, is_final=final, **fields)


def refused(*sources: TaskSource, result: ResultPlace | None = None) -> list[tuple[str, str, str]]:
    with pytest.raises(InvalidWorkflowError) as caught:
        compile_tasks(sources, result, suggest=suggestion)
    return [tuple(problem) for problem in caught.value.problems]


def verdict(key: str) -> dict[str, Any]:
    return {"verdict": key, "in": ["failed"]}


def test_parents_come_first_then_keys_decide_and_tasks_of_finally_are_last():
    definition = compile_tasks(
        [
            source("tidy", "report", final=True),
            source("report", final=True, handles=["load"]),
            source("load", ("check", YES), "extract", when=verdict("extract"), may_fail=True),
            source("zebra"),
            source("check", "extract", rule=Rule.NONE_FAILED),
            source("extract", start_deadline_seconds=60.0),
        ],
        ResultPlace("load", "/total"),
    )
    assert [task.key for task in definition.tasks] == ["extract", "zebra", "check", "load", "report", "tidy"]
    assert [task.no for task in definition.tasks] == list(range(6))
    assert definition.main_count == 4
    assert definition.result == ResultSource(3, "/total")
    extract, _, check, load, report, tidy = definition.tasks
    assert extract.start_deadline_seconds == 60
    assert check.rule is Rule.NONE_FAILED
    assert [(edge.parent, edge.choice) for edge in load.edges] == [(2, 0), (0, -1)], "in the document's order"
    assert load.may_fail
    assert report.handles == (3,)
    assert report.is_final
    assert [edge.parent for edge in tidy.edges] == [4]


REFUSED: list[tuple[list[TaskSource], list[tuple[str, str, str]]]] = [
    (
        [source("customers"), source("b", "custmers")],
        [
            (
                "/tasks/b/depends_on/0",
                "no task has the key 'custmers'; did you mean 'customers'?",
                "the key of a task",
            )
        ],
    ),
    (
        [source("a"), source("b", "a", ("x9", YES))],
        [("/tasks/b/depends_on/1/task", "no task has the key 'x9'", "the key of a task")],
    ),
    ([source("a", "a")], [("/tasks/a/depends_on/0", "is the task itself", "another task")]),
    (
        [source("a"), source("b", "a", ("a", YES))],
        [("/tasks/b/depends_on/1/task", "'a' is listed twice", "each task once")],
    ),
    (
        [source("a", "tidy"), source("tidy", final=True)],
        [("/tasks/a/depends_on/0", "'tidy' is of finally and runs after all tasks", "a task of tasks")],
    ),
    (
        [source("a"), source("a", final=True)],
        [("/finally/a", "'a' is also a key in tasks", "another key")],
    ),
    (
        [source("a", "b"), source("b", "c"), source("c", "a"), source("d", "c")],
        [("/tasks/a/depends_on/0", "a → b → c → a is a circle", "")],
    ),
    (
        [source("c", "b", "a"), source("b", "c"), source("a", "x", "c"), source("x")],
        [("/tasks/a/depends_on/1", "a → c → a is a circle", "")],
    ),
    (
        [source("a"), source("y", "z", final=True), source("z", ("y", YES), final=True)],
        [("/finally/y/depends_on/0", "y → z → y is a circle", "")],
    ),
    (
        [source("a", "a", "b"), source("b", "a", "cc"), source("c")],
        [
            ("/tasks/a/depends_on/0", "is the task itself", "another task"),
            ("/tasks/b/depends_on/1", "no task has the key 'cc'; did you mean 'c'?", "the key of a task"),
            ("/tasks/a/depends_on/1", "a → b → a is a circle", ""),
        ],
    ),
    (
        [source("a"), source("b"), source("c", "a", when={"all": [verdict("a"), verdict("b")]})],
        [
            (
                "/tasks/c/when/all/1/verdict",
                "'b' is not upstream of 'c'",
                "a task that 'c' depends on, directly or through others",
            )
        ],
    ),
    (
        [source("a", when={"result": "a", "exists": True})],
        [
            (
                "/tasks/a/when/result",
                "'a' is not upstream of 'a'",
                "a task that 'a' depends on, directly or through others",
            )
        ],
    ),
    (
        [source("stage"), source("b", "stage", when={"result": "stge", "exists": True})],
        [
            (
                "/tasks/b/when/result",
                "no task has the key 'stge'; did you mean 'stage'?",
                "the key of a task",
            )
        ],
    ),
    (
        [source("a"), source("b"), source("c", ("a", {"all": [{"eq": 1}, {"result": "b", "eq": 1}]}), "b")],
        [
            (
                "/tasks/c/depends_on/0/if/all/1/result",
                "'b' is not upstream of 'a'",
                "a task that 'a' depends on, directly or through others",
            )
        ],
    ),
    (
        [source("a"), source("b", "a", when=verdict("tidy")), source("tidy", final=True)],
        [
            (
                "/tasks/b/when/verdict",
                "'tidy' is not upstream of 'b'",
                "a task that 'b' depends on, directly or through others",
            )
        ],
    ),
    *[
        (
            [source("a"), source("b"), source("c", "a", "b", rule=rule, when=verdict("b"))],
            [
                (
                    "/tasks/c/when/verdict",
                    "'b' may not have ended when this is evaluated",
                    "a task that has ended by then, in any order of events",
                )
            ],
        )
        for rule in (Rule.ONE_SUCCEEDED, Rule.ONE_FAILED)
    ],
    (
        [
            source("a"),
            source("b"),
            source("c", "a", "b"),
            source("d", "c", rule=Rule.ALL_DONE, when=verdict("b")),
        ],
        [
            (
                "/tasks/d/when/verdict",
                "'b' may not have ended when this is evaluated",
                "a task that has ended by then, in any order of events",
            )
        ],
    ),
    (
        [source("a"), source("b"), source("c", "a", handles=["a", "b", "x9", "c", "a"])],
        [
            ("/tasks/c/handles/2", "no task has the key 'x9'", "the key of a task"),
            ("/tasks/c/handles/3", "is the task itself", "a task upstream"),
            ("/tasks/c/handles/4", "'a' is listed twice", "each task once"),
            (
                "/tasks/c/handles/1",
                "'b' is not upstream of 'c'",
                "a task that 'c' depends on, directly or through others",
            ),
        ],
    ),
    (
        [source(f"t{no}") for no in range(MOST_TASKS + 1)],
        [("/tasks", "has 5001 tasks", "at most 5000")],
    ),
    (
        [source("a"), source("b", *["a"] * (MOST_EDGES + 1))],
        [("/tasks", "has 100001 dependencies", "at most 100000")],
    ),
]


@pytest.mark.parametrize(("sources", "problems"), REFUSED)
def test_what_cannot_run_as_written_is_refused(
    sources: list[TaskSource], problems: list[tuple[str, str, str]]
):
    assert refused(*sources) == problems


def test_the_result_is_of_a_task_that_exists():
    assert refused(source("stage"), result=ResultPlace("stge", "/x")) == [
        ("/result/result", "no task has the key 'stge'; did you mean 'stage'?", "the key of a task")
    ]


@pytest.mark.parametrize(
    "sources",
    [
        # After a join succeeded, all that it waited for has ended.
        [source("a"), source("b"), source("c", "a", "b"), source("d", "c", when=verdict("b"))],
        [
            source("a"),
            source("b"),
            source("c", "a", "b"),
            source("d", "c"),
            source("e", "d", when=verdict("a")),
        ],
        # A skip without a failure waits for all parents, too.
        [
            source("a"),
            source("b"),
            source("c", ("a", YES), "b"),
            source("d", "c", rule=Rule.NONE_FAILED, when=verdict("b")),
        ],
        # What all parents have upstream.
        [
            source("a"),
            source("b", "a"),
            source("c", "a"),
            source("d", "b", "c", rule=Rule.ONE_SUCCEEDED, when=verdict("a")),
        ],
        [source("a"), source("b", "a"), source("c", ("b", {"all": [YES, {"result": "a", "exists": True}]}))],
        [source("a"), source("b"), source("c", "a", "b", rule=Rule.ALL_DONE, when=verdict("a"))],
        # Tasks of `finally` read and handle all main tasks.
        [source("a"), source("b", "a"), source("x", final=True, when=verdict("b"), handles=["a"])],
        [source("a"), source("x", final=True), source("y", "x", "a", final=True, when=verdict("x"))],
    ],
)
def test_what_has_ended_in_any_order_of_events_can_be_read(sources: list[TaskSource]):
    assert len(compile_tasks(sources).tasks) == len(sources)


def test_the_circle_is_the_shortest_and_starts_with_its_smallest_key():
    long = [source(f"t{no:02}", f"t{(no + 1) % 30:02}") for no in range(30)]
    assert refused(*long) == [
        (
            "/tasks/t00/depends_on/0",
            " → ".join(f"t{no:02}" for no in range(19)) + " → … 10 more … → t29 → t00 is a circle",
            "",
        )
    ]
    short = [source("zz", "zy"), source("zy", "zx"), source("zx", "zz")]
    assert refused(*long, *short) == [("/tasks/zx/depends_on/0", "zx → zz → zy → zx is a circle", "")]


def test_a_circle_in_many_tasks_is_named_at_once():
    chain = [source(f"t{no}", *([f"t{no - 1}"] if no else [])) for no in range(1197)]
    tasks = [*chain, source("a", "b", "t9"), source("b", "t1196", "c"), source("c", "a")]
    random.Random(1).shuffle(tasks)
    before = process_time()
    assert refused(*tasks) == [("/tasks/a/depends_on/0", "a → b → c → a is a circle", "")]
    assert process_time() - before < 3, "it takes a hundredth of this"


def test_a_large_graph_is_compiled_in_linear_time():
    rng = random.Random(2)
    names = [f"t{no}" for no in range(MOST_TASKS)]
    sources = [source("t0")]
    for no, name in enumerate(names[1:], start=1):
        parents = rng.sample(names[:no], min(no, 20))
        sources.append(source(name, *parents, when=verdict(parents[0])))
    before = process_time()
    definition = compile_tasks(sources)
    assert len(definition.tasks) == MOST_TASKS
    assert process_time() - before < 20, "it takes a fortieth of this"


def circle_by_search(edges: Sequence[Iterable[int]]) -> int:
    """Return the length of the shortest circle by a search from every vertex; 0 without one."""
    best = 0
    for start in range(len(edges)):
        far = {start: 0}
        waiting = deque([start])
        while waiting:
            vertex = waiting.popleft()
            for end in edges[vertex]:
                if end == start and (not best or far[vertex] + 1 < best):
                    best = far[vertex] + 1
                if end not in far:
                    far[end] = far[vertex] + 1
                    waiting.append(end)
    return best


@st.composite
def graphs(draw: st.DrawFn) -> list[list[int]]:
    size = draw(st.integers(1, 12))
    return [draw(st.lists(st.integers(0, size - 1), max_size=3, unique=True)) for _ in range(size)]


@settings(max_examples=300, deadline=None)
@given(graphs(), st.booleans())
@example([[1], [2], [0, 3], [2]], False)
@example([[0]], True)
def test_a_shortest_circle_is_found_if_there_is_one(edges: list[list[int]], at_once: bool):
    with pytest.MonkeyPatch.context() as patch:
        if at_once:
            patch.setattr("noonmark.core.workflows.circles._WALKS", 0)
        found = shortest_circle(edges)
    assert len(found) == circle_by_search(edges)
    if found:
        assert found[0] == min(found)
        assert len(set(found)) == len(found)
        assert all(end in edges[start] for start, end in zip(found, [*found[1:], found[0]], strict=True))
        assert shortest_circle([list(reversed(ends)) for ends in edges]) == shortest_circle(edges)


def test_after_the_budget_of_work_any_circle_is_named(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("noonmark.core.workflows.circles._WALKS", 0)
    monkeypatch.setattr("noonmark.core.workflows.circles._STEPS", 0)
    ring = [[(no + 1) % 50] for no in range(50)]
    assert shortest_circle(ring) == list(range(50))


@st.composite
def workflows(draw: st.DrawFn) -> list[TaskSource]:
    size, last = draw(st.integers(1, 8)), draw(st.integers(0, 3))
    keys = draw(st.permutations([f"k{no}" for no in range(size + last)]))
    made = []
    for no, key in enumerate(keys):
        final = no >= size
        others = draw(st.lists(st.sampled_from(keys[: None if final else size]), max_size=3, unique=True))
        earlier = [other for other in others if other != key]
        if draw(st.integers(0, 5)):
            earlier = [other for other in earlier if other in keys[:no]]
        edges = [(other, {"at": "/x", "gt": no}) if draw(st.booleans()) else other for other in earlier]
        fields: dict[str, Any] = {"rule": draw(st.sampled_from(Rule)), "may_fail": draw(st.booleans())}
        if edges and draw(st.booleans()):
            fields["handles"] = [earlier[0]]
        if len(edges) == 1 and draw(st.booleans()):
            fields["when"] = {
                "any": [verdict(earlier[0]), {"result": earlier[0], "at": "/y", "in": [1, None]}]
            }
        if draw(st.booleans()):
            fields["start_deadline_seconds"] = draw(st.sampled_from([1.0, 2.5]))
        made.append(source(key, *edges, final=final, **fields))
    return made


def compiled(sources: Sequence[TaskSource], result: ResultPlace | None = None) -> Definition | list[Problem]:
    try:
        return compile_tasks(sources, result)
    except InvalidWorkflowError as error:
        return list(error.problems)


@settings(max_examples=200, deadline=None)
@given(workflows(), st.randoms(use_true_random=False))
def test_a_graph_is_accepted_if_it_has_no_circle_and_its_numbers_are_topological(
    sources: list[TaskSource], rng: random.Random
):
    numbers = {one.key: no for no, one in enumerate(sources)}
    has_circle = circle_by_search([[numbers[p.key] for p in one.parents] for one in sources]) > 0
    found = compiled(sources)
    shuffled = list(sources)
    rng.shuffle(shuffled)
    again = compiled(shuffled)
    if isinstance(found, list):
        assert has_circle
        assert again == found, "whatever the order"
        return
    assert not has_circle
    assert not isinstance(again, list)
    assert again.tasks == found.tasks
    for task in found.tasks:
        assert all(edge.parent < task.no for edge in task.edges)
        assert [found.tasks[edge.parent].key for edge in task.edges] == [
            parent.key for parent in sources[numbers[task.key]].parents
        ]
    finals = [task.is_final for task in found.tasks]
    assert finals == sorted(finals)
    choices = [edge.choice for task in found.tasks for edge in task.edges if edge.condition is not None]
    assert choices == list(range(found.choices))


@settings(max_examples=200, deadline=None)
@given(workflows(), st.sampled_from([None, "", "/a"]))
def test_a_stored_graph_is_read_back_as_it_was(sources: list[TaskSource], at: str | None):
    definition = compiled(sources, None if at is None else ResultPlace(sources[0].key, at))
    if isinstance(definition, list):
        return
    stored = orjson.loads(orjson.dumps(graph_of(definition)))
    again = definition_of([(task.key, graph) for task, graph in zip(definition.tasks, stored, strict=True)])
    assert again.tasks == definition.tasks
    assert again.result == definition.result
    assert (again.children, again.choices) == (definition.children, definition.choices)


def test_the_stored_graph_has_only_what_is_not_the_default():
    definition = compile_tasks(
        [
            source("a"),
            source("b", "a", ("c", YES), handles=["a"], when=verdict("c"), may_fail=True),
            source("c"),
        ],
        ResultPlace("a"),
    )
    assert graph_of(definition) == [
        {"result_at": ""},
        {},
        {
            "edges": [0, [1, {"at": "/yes", "eq": True}]],
            "when": {"verdict": "c", "in": ["failed"]},
            "may_fail": True,
            "handles": [0],
        },
    ]


@pytest.mark.parametrize(
    "graph",
    [
        None,
        [],
        {"edges": [0]},
        {"edges": [[0, {}]]},
        {"edges": ["a"]},
        {"edges": 1},
        {"rule": "always"},
        {"when": {}},
        {"handles": 1},
        {"when": {"eq": 1}},
    ],
)
def test_a_graph_that_was_changed_outside_noonmark_is_an_error_that_can_be_handled(graph: Any):
    with pytest.raises(ValueError, match=r"\w"):
        definition_of([("a", graph)])
