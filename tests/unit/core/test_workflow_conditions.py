"""Conditions of workflows: what they mean, that they are total, and what is refused of them."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from noonmark.core.workflows.conditions import (
    MOST_LEVELS,
    MOST_NODES,
    MOST_VALUES,
    NOTHING,
    Condition,
    parse_condition,
    place_of,
)
from noonmark.core.workflows.problems import InvalidWorkflowError

RESULTS: dict[str, object] = {
    "a": {"yes": True, "n": 1, "text": "b", "none": None, "list": [{"x": 1.0}, []], "": {"/~": 7}, "0": "k"},
    "b": "plain",
}
VERDICTS = {"a": "succeeded", "b": "failed", "c": "skipped"}


def holds(condition: object, *, own: object = NOTHING) -> bool:
    parsed = parse_condition(condition, of_edge=own is not NOTHING)
    return parsed.holds(lambda key: RESULTS.get(key, NOTHING), VERDICTS.__getitem__, own)


def of_a(at: str, **test: object) -> dict[str, object]:
    return {"result": "a", "at": at, **{name.rstrip("_"): value for name, value in test.items()}}


@pytest.mark.parametrize(
    ("condition", "expected"),
    [
        (of_a("/yes", eq=True), True),
        (of_a("/yes", eq=1), False),
        (of_a("/n", eq=1), True),
        (of_a("/n", eq=1.0), True),
        (of_a("/n", eq="1"), False),
        (of_a("/n", eq=True), False),
        (of_a("/n", ne="1"), True),
        (of_a("/n", ne=1.0), False),
        (of_a("/none", eq=None), True),
        (of_a("/none", exists=True), True),
        (of_a("/none", lt=1), False),
        (of_a("/list", eq=[{"x": 1}, []]), True),
        (of_a("/list", eq=[{"x": True}, []]), False),
        (of_a("/list/0", eq={"x": 1}), True),
        (of_a("/list/0/x", ge=1), True),
        (of_a("/list/2", exists=False), True),
        (of_a("/list/-", exists=False), True),
        (of_a("/list/00", exists=True), False),
        (of_a("/0", eq="k"), True),
        (of_a("//~1~0", eq=7), True),
        (of_a("/n", lt=2), True),
        (of_a("/n", lt=1), False),
        (of_a("/n", le=1), True),
        (of_a("/n", gt=0.5), True),
        (of_a("/n", ge=1.5), False),
        (of_a("/n", lt="2"), False),
        (of_a("/text", gt="a"), True),
        (of_a("/text", gt=0), False),
        (of_a("/yes", gt=0), False),
        (of_a("/list", gt=""), False),
        (of_a("/n", in_=["1", True, 1]), True),
        (of_a("/n", in_=["1", True]), False),
        *[(of_a("/gone", **{test: 1}), False) for test in ("eq", "ne", "lt", "le", "gt", "ge")],
        (of_a("/gone", in_=[None]), False),
        (of_a("/gone", exists=True), False),
        (of_a("/gone", exists=False), True),
        (of_a("/n/deeper", exists=False), True),
        ({"result": "b", "eq": "plain"}, True),
        ({"result": "b", "at": "", "exists": True}, True),
        ({"result": "c", "exists": False}, True),
        ({"result": "c", "ne": 1}, False),
        ({"verdict": "a", "in": ["succeeded"]}, True),
        ({"verdict": "b", "in": ["succeeded", "skipped"]}, False),
        ({"verdict": "c", "in": ["skipped", "failed"]}, True),
        ({"not": of_a("/gone", eq=1)}, True),
        ({"all": [of_a("/n", eq=1), of_a("/yes", eq=True)]}, True),
        ({"all": [of_a("/n", eq=1), of_a("/yes", eq=False)]}, False),
        ({"any": [of_a("/n", eq=2), {"not": {"verdict": "a", "in": ["failed"]}}]}, True),
        ({"any": [of_a("/n", eq=2)]}, False),
    ],
    ids=json.dumps,
)
def test_a_condition_compares_as_json_does(condition: dict[str, Any], expected: bool):
    assert holds(condition) is expected


def test_a_comparison_of_an_edge_reads_the_parents_result_if_it_names_no_task():
    assert holds({"at": "/yes", "eq": True}, own={"yes": True})
    assert not holds({"at": "/yes", "eq": True}, own={"yes": 1})
    assert holds({"eq": None}, own=None)
    assert holds({"all": [{"eq": 3}, {"result": "b", "eq": "plain"}]}, own=3)
    condition = parse_condition({"exists": False}, of_edge=True)
    assert condition.holds(RESULTS.__getitem__, VERDICTS.__getitem__, NOTHING)


def test_a_condition_names_what_it_reads_and_where():
    written = {
        "all": [
            {"result": "b", "at": "", "eq": 1},
            {"not": {"any": [{"verdict": "a", "in": ["skipped", "succeeded"]}]}},
        ]
    }
    parsed = parse_condition(written)
    assert (parsed.reads, parsed.verdicts) == ({"b"}, {"a"})
    assert parsed.stored == {
        "all": [
            {"result": "b", "eq": 1},
            {"not": {"any": [{"verdict": "a", "in": ["succeeded", "skipped"]}]}},
        ]
    }
    assert place_of(parsed.stored, "a", "/when") == "/when/all/1/not/any/0/verdict"
    assert place_of(parsed.stored, "b", "/when") == "/when/all/0/result"
    assert place_of(parsed.stored, "c", "/when") == ""
    assert place_of({"result": "a", "eq": {"result": "c"}}, "c", "/when") == "", "a value is no condition"


FORMS = "an object with all, any, not, verdict, or a comparison such as {at: /total, gt: 0}"
TESTS = "one of eq, ne, lt, le, gt, ge, in, exists"
FIELDS = "one of result, at, eq, ne, lt, le, gt, ge, in, exists"
LATER = "is not available in this version"


def nested(levels: int) -> dict[str, Any]:
    condition: dict[str, Any] = of_a("/n", eq=1)
    for _ in range(levels - 1):
        condition = {"not": condition}
    return condition


def deep(levels: int) -> object:
    value: object = 1
    for _ in range(levels):
        value = [value]
    return value


@pytest.mark.parametrize(
    ("condition", "problems"),
    [
        (None, [("/when", "is not an object", FORMS)]),
        ("a", [("/when", "is not an object", FORMS)]),
        ([], [("/when", "is not an object", FORMS)]),
        ({}, [("/when/result", "is missing", "the key of a task"), ("/when", "has no test", TESTS)]),
        ({"result": "a"}, [("/when", "has no test", TESTS)]),
        ({"eq": 1}, [("/when/result", "is missing", "the key of a task")]),
        (of_a("/n", eq=1, ne=2), [("/when", "has eq and ne", TESTS)]),
        ({"result": "A", "eq": 1}, [("/when/result", "is not the key of a task", "the key of a task")]),
        ({"result": 1, "eq": 1}, [("/when/result", "is not the key of a task", "the key of a task")]),
        ({"result": "a\n", "eq": 1}, [("/when/result", "is not the key of a task", "the key of a task")]),
        (
            of_a("n", eq=1),
            [
                (
                    "/when/at",
                    "is not a JSON pointer: a pointer is empty or begins with a slash, as in /status",
                    "a JSON pointer such as /total",
                )
            ],
        ),
        (
            of_a("/~2", eq=1),
            [
                (
                    "/when/at",
                    "is not a JSON pointer: a pointer writes ~ as ~0 and / as ~1",
                    "a JSON pointer such as /total",
                )
            ],
        ),
        (of_a("/n", exists=1), [("/when/exists", "is not a boolean", "true or false")]),
        (of_a("/n", lt=True), [("/when/lt", "has no order", "a number or a string")]),
        (of_a("/n", ge=None), [("/when/ge", "has no order", "a number or a string")]),
        (of_a("/n", in_=[]), [("/when/in", "is not a list of values", "a list of 1 to 100 values")]),
        (of_a("/n", in_="ab"), [("/when/in", "is not a list of values", "a list of 1 to 100 values")]),
        (
            of_a("/n", in_=[1] * (MOST_VALUES + 1)),
            [("/when/in", "is not a list of values", "a list of 1 to 100 values")],
        ),
        (of_a("/n", eq=deep(34)), [("/when/eq", "is nested too deeply", "at most 32 levels of nesting")]),
        (of_a("/n", eq=1, **{"x/~": 1}), [("/when/x~1~0", "unknown field", FIELDS)]),
        ({"run": "scheduled_for", "eq": 1}, [("/when/run", LATER, "no such field")]),
        ({"input": "/a", "exists": True}, [("/when/input", LATER, "no such field")]),
        ({"item": "/a", "eq": 1}, [("/when/item", LATER, "no such field")]),
        ({"all": []}, [("/when/all", "is not a list of conditions", "a list of 1 to 49 conditions")]),
        ({"any": {}}, [("/when/any", "is not a list of conditions", "a list of 1 to 49 conditions")]),
        ({"all": [1]}, [("/when/all/0", "is not an object", FORMS)]),
        ({"all": [{}], "any": [{}]}, [("/when", "has all and any", "one of them")]),
        (
            {"all": [of_a("/n", eq=1)], "eq": 1},
            [("/when/eq", "unknown field", "one of all")],
        ),
        ({"not": [of_a("/n", eq=1)]}, [("/when/not", "is not an object", FORMS)]),
        ({"verdict": "a"}, [("/when/in", "is missing", "a list of succeeded, failed, skipped")]),
        (
            {"verdict": "a", "in": ["dead"]},
            [("/when/in", "is not a list of verdicts", "a list of succeeded, failed, skipped")],
        ),
        (
            {"verdict": "a", "in": []},
            [("/when/in", "is not a list of verdicts", "a list of succeeded, failed, skipped")],
        ),
        (
            {"verdict": "a", "in": "failed", "at": "/x"},
            [
                ("/when/at", "unknown field", "one of verdict, in"),
                ("/when/in", "is not a list of verdicts", "a list of succeeded, failed, skipped"),
            ],
        ),
        (
            {"verdict": None, "in": ["failed"]},
            [("/when/verdict", "is not the key of a task", "the key of a task")],
        ),
        (
            nested(MOST_LEVELS + 1),
            [("/when" + "/not" * MOST_LEVELS, "is nested too deeply", "at most 10 levels of conditions")],
        ),
        (
            {"all": [of_a("/n", eq=1)] * MOST_NODES},
            [("/when", "has more than 50 conditions", "a task whose result is the decision")],
        ),
        (
            {"all": [{"any": [of_a("/n", eq=1)] * 10}] * 100_000},
            [("/when", "has more than 50 conditions", "a task whose result is the decision")],
        ),
    ],
    ids=lambda value: json.dumps(value)[:60] if not isinstance(value, list) else "",
)
def test_what_is_no_condition_is_refused_with_its_place(
    condition: object, problems: list[tuple[str, str, str]]
):
    with pytest.raises(InvalidWorkflowError) as refused:
        parse_condition(condition, "/when")
    assert list(refused.value.problems) == problems
    assert str(refused.value).startswith(problems[0][0])


def test_the_bounds_themselves_are_within():
    assert holds(nested(MOST_LEVELS)) is (MOST_LEVELS % 2 == 1)
    assert holds({"all": [of_a("/n", eq=1)] * (MOST_NODES - 1)})
    assert holds(of_a("/n", in_=[1] * MOST_VALUES))
    assert not holds(of_a("/n", eq=deep(32)))


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=3),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=2), inner, max_size=3),
    max_leaves=10,
)
POINTERS = st.sampled_from(["", "/", "/a", "/0", "/1/a", "/~0", "/-", "/a/0/b"])
KEYS = st.sampled_from(["a", "b", "c"])
ORDERED = st.sampled_from(["lt", "le", "gt", "ge"])


def comparisons() -> st.SearchStrategy[dict[str, Any]]:
    def made(key: str | None, at: str, test: dict[str, Any]) -> dict[str, Any]:
        return {**({} if key is None else {"result": key}), "at": at, **test}

    tests = (
        st.fixed_dictionaries({"eq": JSON})
        | st.fixed_dictionaries({"ne": JSON})
        | st.builds(
            lambda name, value: {name: value}, ORDERED, st.integers() | st.floats() | st.text(max_size=2)
        )
        | st.fixed_dictionaries({"in": st.lists(JSON, min_size=1, max_size=3)})
        | st.fixed_dictionaries({"exists": st.booleans()})
    )
    return st.builds(made, st.none() | KEYS, POINTERS, tests)


CONDITIONS = st.recursive(
    comparisons()
    | st.fixed_dictionaries(
        {"verdict": KEYS, "in": st.lists(st.sampled_from(list(VERDICTS.values())), min_size=1, unique=True)}
    ),
    lambda inner: (
        st.builds(
            lambda name, parts: {name: parts},
            st.sampled_from(["all", "any"]),
            st.lists(inner, min_size=1, max_size=3),
        )
        | st.builds(lambda part: {"not": part}, inner)
    ),
    max_leaves=6,
)


@settings(max_examples=150, deadline=None)
@given(CONDITIONS, st.dictionaries(KEYS, JSON), JSON)
@example({"at": "/a", "lt": 10**400}, {}, {"a": 1.5})
@example({"at": "/a", "ge": 0.5}, {}, {"a": 10**400})
@example({"eq": "\ud800"}, {}, "\ud800")
@example({"at": "/a", "lt": "\ud800"}, {}, {"a": "b"})
def test_a_condition_is_true_or_false_whatever_the_results_are(
    condition: dict[str, Any], results: dict[str, object], own: object
):
    parsed = parse_condition(condition, of_edge=True)

    def evaluate(one: Condition) -> bool:
        return one.holds(lambda key: results.get(key, NOTHING), VERDICTS.__getitem__, own)

    held = evaluate(parsed)
    assert isinstance(held, bool)
    assert evaluate(parse_condition({"not": parsed.stored}, of_edge=True)) is not held
    again = parse_condition(parsed.stored, of_edge=True)
    assert repr(again) == repr(parsed), "the canonical form is read as it is"


@settings(max_examples=150, deadline=None)
@given(
    JSON
    | st.dictionaries(st.sampled_from(["all", "any", "not", "verdict", "in", "result", "at", "eq"]), JSON)
)
def test_any_json_is_a_condition_or_refused(value: object):
    try:
        parsed = parse_condition(value, of_edge=True)
    except InvalidWorkflowError as error:
        problems = error.problems
    else:
        problems = ()
        assert parsed.holds(lambda _: NOTHING, lambda _: "failed", value) in {True, False}
    assert all(where == "" or where.startswith("/") for where, _, _ in problems)
