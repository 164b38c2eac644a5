"""What an apply would change."""

import pytest

from noonmark.cli.submissions.apply_files import Source
from noonmark.cli.submissions.apply_plan import (
    MISSING,
    SET_LABEL,
    Action,
    Change,
    Step,
    changes,
    declared,
    doubles,
    unfit,
)


def source(line=1, **document):
    return Source("jobs.yaml", line, document)


@pytest.mark.parametrize(
    ("old", "new", "found"),
    [
        ({"a": 1}, {"a": 1}, []),
        ({"a": 1}, {"a": 1.0}, []),
        ({"a": 1}, {"a": True}, [Change("a", 1, True)]),
        ({"a": 1}, {"a": 2}, [Change("a", 1, 2)]),
        ({"a": {"b": 1, "c": 2}}, {"a": {"b": 1, "c": 3}}, [Change("a.c", 2, 3)]),
        ({"a": {}}, {"a": {"x": "y"}}, [Change("a.x", MISSING, "y")]),
        ({"a": {"x": "y"}}, {"a": {}}, [Change("a.x", "y", MISSING)]),
        ({"a": None}, {"a": {"b": 1}}, [Change("a", None, {"b": 1})]),
        ({"a": [1, 2]}, {"a": [2, 1]}, [Change("a", [1, 2], [2, 1])]),
        ({"a": [1, {"b": 0}]}, {"a": [1.0, {"b": 0}]}, []),
        ({"a": [1]}, {"a": [True]}, [Change("a", [1], [True])]),
        ({"a": [{"b": 0}]}, {"a": [{"b": False}]}, [Change("a", [{"b": 0}], [{"b": False}])]),
    ],
)
def test_fields_that_differ_are_named(old, new, found):
    assert list(changes(old, new)) == found


def test_a_document_gets_the_namespace_and_label_of_its_apply():
    assert declared(source(name="a"), "shop", None) == {"name": "a", "namespace": "shop"}
    assert declared(source(name="a", namespace="x", labels={"team": "b"}), "shop", "s") == {
        "name": "a", "namespace": "x", "labels": {"team": "b", SET_LABEL: "s"}
    }  # fmt: skip
    assert declared(source(name="a", labels=7), None, "s") == {"name": "a", "labels": 7}


@pytest.mark.parametrize(
    ("document", "told"),
    [
        ({"schedule": "@daily"}, "has no name"),
        ({"schedule": "@daily", "name": 7}, "has no name"),
        ({"name": "a", "run_at": "2026-01-01T00:00:00Z"}, "has no schedule"),
        ({"name": "a", "shedule": "@daily"}, "unknown field; did you mean 'schedule'?"),
        ({"nmae": "a", "schedule": "@daily"}, "unknown field; did you mean 'name'?"),
        ({"name": "a", "qqqq": 1}, "has no schedule"),
        ({"name": "a", "schedule": "@daily"}, None),
    ],
)
def test_declared_jobs_are_those_that_are_found_again(document, told):
    problem = unfit(source(**document))
    assert (problem is None) if told is None else (told in problem.message)


def test_a_job_is_declared_once():
    places = [(1, "default"), (5, "default"), (9, "x")]
    steps = [Step(Action.CREATED, namespace, "a", source(line, name="a")) for line, namespace in places]
    found = list(doubles([*steps, Step(Action.ENDED, "default", "a")]))
    assert [str(one) for one in found] == ["jobs.yaml:5: /name: 'a' is already declared in jobs.yaml:1"]
