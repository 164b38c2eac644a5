"""What an apply would change."""

from types import SimpleNamespace

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
from noonmark.cli.submissions.apply_steps import find_step
from noonmark.client import ApiError


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
        ({"name": "a", "cron": "@daily"}, "unknown field; did you mean 'schedule' or 'schedule.cron'?"),
        ({"name": "a", "every_seconds": 5}, "unknown field; did you mean 'schedule.every'?"),
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


class Server:
    """Answers previews as the API does."""

    def __init__(self, refused=(), problems=()):
        self.refused, self.problems = refused, problems

    def request(self, _method, path, **_):
        assert path == "/v1/preview"
        if self.refused:
            raise ApiError(422, errors=self.refused)
        return SimpleNamespace(data={"document": {}, "fires": [], "problems": self.problems})


def test_all_problems_of_a_document_without_a_schedule_are_told():
    one = source(name="a", type="pyhton", payload=7)
    refused = [
        {"pointer": "/document/type", "message": "is 'pyhton'", "expected": "python"},
        {"pointer": "/document/payload", "message": "is a number"},
    ]
    whole, kind, payload = map(str, find_step(Server(refused), one, {}))
    assert whole.startswith("jobs.yaml:1: has no schedule: only recurring jobs can be declared")
    assert kind == "jobs.yaml:1: /type: is 'pyhton'; expected python"
    assert payload == "jobs.yaml:1: /payload: is a number"
    lacks = [{"pointer": "/handler", "message": "no live worker has it"}]
    assert [problem.pointer for problem in find_step(Server(problems=lacks), one, {})] == ["", "/handler"]


def test_a_problem_that_the_server_tells_too_is_told_once():
    refused = [{"pointer": "/document/shedule", "message": "unknown field"}]
    found = find_step(Server(refused), source(name="a", shedule="@daily"), {})
    assert [str(problem) for problem in found] == [
        "jobs.yaml:1: /shedule: unknown field; did you mean 'schedule'?"
    ]
