"""Workflows over the API: their document, the tasks and the graph of a run, and why a task has not run."""

from __future__ import annotations

import json
from typing import Any
from uuid import uuid4

import pytest
from tests.integration.store.workflow_room import Flows
from tests.integration.store.world import World
from tests.support.keys import make_token

from noonmark.core.states import RunState

pytestmark = pytest.mark.postgres

DIAMOND = {
    "a": {},
    "b": {"depends_on": ["a"]},
    "c": {"depends_on": ["a"]},
    "d": {"depends_on": ["b", "c"]},
}
CONDITIONAL = {
    "check": {},
    "big": {"depends_on": [{"task": "check", "if": {"at": "/total", "gt": 100}}]},
    "join": {"depends_on": ["big"]},
}
DOCUMENT = {
    "name": "nightly",
    "type": "workflow",
    "namespace": "tests",
    "schedule": "30 2 * * *",
    "deadline_seconds": 3600,
    "tasks": {
        "extract": {"type": "python", "handler": "tests.noop", "retry": {"max_retries": 1}},
        "send": {
            "type": "http",
            "depends_on": [{"task": "extract", "if": {"at": "/rows", "gt": 0}}],
            "payload": {"url": "https://example.com/", "body": {"secret": "hidden-4711"}},
        },
        "report": {"type": "python", "handler": "tests.noop", "depends_on": ["send"], "rule": "all_done"},
    },
    "finally": {"cleanup": {"type": "python", "handler": "tests.noop"}},
    "result": {"result": "extract", "at": "/rows"},
}


@pytest.fixture
def flows(world: World) -> Flows:
    return Flows(world)


def tasks_of(api: Any, run_id: Any, query: str = "") -> list[dict[str, Any]]:
    return api("GET", f"/v1/runs/{run_id}/tasks{query}", 200).json()["items"]


def states_of(api: Any, run_id: Any, query: str = "") -> dict[str, str]:
    return {task["key"]: task["state"] for task in tasks_of(api, run_id, query)}


def first_answer(api: Any, run_id: Any, query: str = "") -> dict[str, Any]:
    return api("GET", f"/v1/runs/{run_id}/why{query}", 200).json()["answers"][0]


# -- the document --------------------------------------------------------------------------------------------


def test_the_document_of_a_workflow_changes_nothing_when_it_is_sent_again(api, flows):
    made = api("POST", "/v1/jobs", 202, json=DOCUMENT).json()

    shown = api("GET", f"/v1/jobs/{made['id']}", 200).json()
    again = api("PUT", f"/v1/jobs/{made['id']}", 200, json=shown["document"]).json()

    document = shown["document"]
    assert (again["version"], again["document"]) == (1, document)
    assert list(document["tasks"]) == ["extract", "send", "report"]
    assert list(document["finally"]) == ["cleanup"]
    assert document["result"] == {"result": "extract", "at": "/rows"}
    assert document["tasks"]["send"]["depends_on"] == DOCUMENT["tasks"]["send"]["depends_on"]
    assert document["tasks"]["report"]["rule"] == "all_done"
    assert not {"handler", "payload", "pool", "retry", "timeout_seconds", "delivery"} & document.keys()


def test_versions_and_their_differences_show_tasks(api, flows):
    made = api("POST", "/v1/jobs", 202, json=DOCUMENT).json()
    document = {
        **DOCUMENT,
        "tasks": {**DOCUMENT["tasks"], "report": {"type": "python", "handler": "tests.noop"}},
    }
    api("PUT", f"/v1/jobs/{made['id']}", 200, json=document)

    versions = api("GET", f"/v1/jobs/{made['id']}/versions", 200).json()["items"]
    diff = api("GET", f"/v1/jobs/{made['id']}/diff?from=1&to=2", 200).json()["changes"]

    assert [version["document"]["tasks"]["report"]["rule"] for version in versions] == [
        "all_succeeded",
        "all_done",
    ]
    assert {change["pointer"] for change in diff} == {"/tasks/report/rule", "/tasks/report/depends_on"}


def test_payloads_of_tasks_are_hidden_like_those_of_jobs(api, flows, database):
    made = api("POST", "/v1/jobs", 202, json=DOCUMENT).json()
    changed = {
        **DOCUMENT["tasks"]["send"],
        "payload": {"url": "https://example.com/", "body": {"secret": "hidden-4712"}},
    }
    api(
        "PUT",
        f"/v1/jobs/{made['id']}",
        200,
        json={**DOCUMENT, "tasks": {**DOCUMENT["tasks"], "send": changed}},
    )
    viewer = make_token(database, "viewer", "tests")

    for path in ("", "/versions", "/versions/1", "/diff?from=1&to=2"):
        answer = api("GET", f"/v1/jobs/{made['id']}{path}", 200, key=viewer)
        assert "hidden-471" not in answer.text, path
    diff = api("GET", f"/v1/jobs/{made['id']}/diff?from=1&to=2", 200, key=viewer).json()["changes"]

    assert diff == [{"pointer": "/tasks/send/payload", "before": None, "after": None}]
    logged = [row[0] for row in database.execute("select concat(before, after) from audit_log")]
    assert not any("hidden-471" in text for text in logged)


def test_a_preview_shows_the_document_of_a_workflow(api, flows):
    found = api("POST", "/v1/preview", 200, json={"document": DOCUMENT, "count": 1}).json()

    assert list(found["document"]["tasks"]) == ["extract", "send", "report"]
    assert "payload" not in found["document"]


def test_listings_leave_tasks_out(api, flows):
    api("POST", "/v1/jobs", 202, json=DOCUMENT)

    (job,) = api("GET", "/v1/jobs?namespace=tests", 200).json()["items"]

    assert job["document"]["type"] == "workflow"
    assert "tasks" not in job["document"]


# -- tasks ---------------------------------------------------------------------------------------------------


def test_the_tasks_of_a_run_are_listed_with_their_states(api, flows):
    run = flows.open(DIAMOND)
    flows.end(run, ["a"])
    flows.end(run, ["b"], RunState.DEAD)

    found = tasks_of(api, run)

    assert [(task["no"], task["key"], task["state"]) for task in found] == [
        (0, "a", "succeeded"),
        (1, "b", "dead"),
        (2, "c", "queued"),
        (3, "d", "skipped"),
    ]
    dead, skipped = found[1], found[3]
    assert (dead["type"], dead["generation"], dead["attempt"], dead["error"]) == ("python", 1, 1, "boom")
    assert dead["run_id"] == str(flows.run_id(run, "b"))
    assert (skipped["reason"], skipped["started_at"]) == ("upstream_failed", None)
    assert all(dead[name] for name in ("due_at", "started_at", "finished_at"))


def test_a_task_without_a_run_is_undecided(api, flows):
    run = flows.open(DIAMOND)

    found = tasks_of(api, run)

    assert [task["state"] for task in found] == ["queued", *["undecided"] * 3]
    assert {found[3][name] for name in ("run_id", "generation", "attempt", "due_at")} == {None}


def test_tasks_are_filtered_and_those_that_failed_can_be_first(api, flows):
    run = flows.open(DIAMOND)
    flows.end(run, ["a"])
    flows.end(run, ["b"], RunState.DEAD)

    assert states_of(api, run, "?state=undecided&state=queued") == {"c": "queued"}
    assert list(states_of(api, run, "?task=a&task=d&task=nobody")) == ["a", "d"]
    assert list(states_of(api, run, "?failed_first=true")) == ["b", "a", "c", "d"]
    assert list(states_of(api, run, "?generation=1")) == ["a", "b", "c", "d"]
    assert states_of(api, run, "?generation=2") == {}
    api("GET", f"/v1/runs/{run}/tasks?state=lost", 400)


@pytest.mark.parametrize("query", ["?limit=2", "?limit=1&failed_first=true"])
def test_pages_of_tasks_follow_each_other(api, flows, query):
    run = flows.open(DIAMOND)
    flows.end(run, ["a"], RunState.DEAD)
    found, cursor = [], ""
    while True:
        page = api("GET", f"/v1/runs/{run}/tasks{query}{cursor}", 200).json()
        found += [task["key"] for task in page["items"]]
        if page["next_cursor"] is None:
            break
        cursor = f"&cursor={page['next_cursor']}"

    assert found == ["a", "b", "c", "d"]


def test_only_workflow_runs_have_tasks(api, world, flows):
    run = flows.open(DIAMOND)
    plain, task = world.put_run(), flows.run_id(run, "a")

    for path in ("tasks", "graph"):
        assert "is not of a workflow" in api("GET", f"/v1/runs/{plain}/{path}", 404).json()["detail"]
        assert str(run) in api("GET", f"/v1/runs/{task}/{path}", 404).json()["detail"]
        api("GET", f"/v1/runs/{uuid4()}/{path}", 404)


def test_who_may_not_read_payloads_sees_no_errors_of_tasks(api, flows, database):
    run = flows.open(DIAMOND)
    flows.end(run, ["a"], RunState.DEAD, error="the card hidden-4711 was declined")
    viewer = make_token(database, "viewer", "tests")
    stranger = make_token(database, "admin", "elsewhere")

    found = api("GET", f"/v1/runs/{run}/tasks", 200, key=viewer)

    assert "hidden-4711" not in found.text
    assert found.json()["items"][0]["error_hidden"] is True
    for task in (run, flows.run_id(run, "a"), flows.run_id(run, "d")):
        assert "hidden-4711" not in api("GET", f"/v1/runs/{task}/why", 200, key=viewer).text
    api("GET", f"/v1/runs/{run}/tasks", 404, key=stranger)
    api("GET", f"/v1/runs/{run}/graph", 404, key=stranger)


# -- the graph -----------------------------------------------------------------------------------------------


def test_the_graph_has_the_dependencies_and_the_states(api, flows):
    run = flows.open(DIAMOND)
    flows.end(run, ["a"])

    answer = api("GET", f"/v1/runs/{run}/graph", 200)
    found = answer.json()

    assert {task["key"]: task["depends_on"] for task in found["tasks"]} == {
        "a": [],
        "b": ["a"],
        "c": ["a"],
        "d": ["b", "c"],
    }
    assert found["states"] == {"succeeded": 1, "queued": 2, "undecided": 1}
    assert (found["state"], found["generation"]) == ("running", 1)
    tag = {"If-None-Match": answer.headers["etag"]}
    api("GET", f"/v1/runs/{run}/graph", 304, headers=tag)
    flows.end(run, ["b"])
    assert api("GET", f"/v1/runs/{run}/graph", 200, headers=tag).headers["etag"] != answer.headers["etag"]


@pytest.mark.parametrize("total", [5, 500])
def test_the_graph_says_whether_a_condition_holds_also_after_the_run_has_ended(api, flows, total):
    run = flows.open(CONDITIONAL)

    def holds() -> object:
        tasks = api("GET", f"/v1/runs/{run}/graph", 200).json()["tasks"]
        return next(task["conditions"] for task in tasks if task["key"] == "big")["check"]

    assert holds() is None
    flows.end(run, ["check"], result=json.dumps({"total": total}))
    assert holds() is (total > 100)
    if total > 100:
        flows.end(run, ["big"])
        flows.end(run, ["join"])
    assert api("GET", f"/v1/runs/{run}", 200).json()["state"] == "succeeded"
    assert holds() is (total > 100)


# -- listings and single runs --------------------------------------------------------------------------------


def test_listings_leave_runs_of_tasks_out_unless_asked(api, flows):
    run = flows.open(DIAMOND)
    flows.end(run, ["a"])
    tasks = {str(flows.run_id(run, key)) for key in "abc"}
    job = api("GET", f"/v1/runs/{run}", 200).json()["job_id"]

    def listed(path: str) -> set[str]:
        return {item["id"] for item in api("GET", path, 200).json()["items"]}

    for path in (
        "/v1/runs?namespace=tests",
        f"/v1/jobs/{job}/runs?limit=50",
        f"/v1/runs?namespace=tests&job_id={job}",
    ):
        assert listed(path) == {str(run)}, path
        assert listed(f"{path}&tasks=true") == {str(run)} | tasks, path
    assert listed("/v1/runs?namespace=tests&origin=task") == tasks
    assert listed(f"/v1/runs?namespace=tests&workflow_id={run}") == tasks
    assert listed(f"/v1/runs?namespace=tests&workflow_id={run}&state=succeeded") == {
        str(flows.run_id(run, "a"))
    }
    assert listed(f"/v1/runs?namespace=tests&workflow_id={uuid4()}") == set()


def test_a_listing_of_a_workflows_runs_has_pages_and_names_the_tasks(api, flows):
    run = flows.open(DIAMOND)
    flows.end(run, ["a"])
    path = f"/v1/runs?namespace=tests&workflow_id={run}&limit=2"

    first = api("GET", path, 200).json()
    second = api("GET", f"{path}&cursor={first['next_cursor']}", 200).json()

    found = first["items"] + second["items"]
    assert sorted(item["task"] for item in found) == ["a", "b", "c"]
    assert {item["workflow_id"] for item in found} == {str(run)}
    assert {(item["type"], item["handler"]) for item in found} == {("python", "tests.noop")}


def test_the_run_of_a_task_says_which_task_of_which_workflow_run_it_is(api, flows):
    run = flows.open(DIAMOND)

    task = api("GET", f"/v1/runs/{flows.run_id(run, 'a')}", 200).json()
    own = api("GET", f"/v1/runs/{run}", 200).json()

    assert (task["workflow_id"], task["task"], task["generation"]) == (str(run), "a", 1)
    assert (task["type"], task["handler"], task["origin"]) == ("python", "tests.noop", "task")
    assert task["due_at"] is not None
    assert (own["workflow_id"], own["task"], own["type"]) == (None, None, "workflow")


def test_the_last_run_of_a_workflow_job_is_not_that_of_a_task(api, flows, world):
    run = flows.open(DIAMOND)
    world.db.execute("update runs set started_at = started_at + interval '1 hour' where origin = 'task'")
    flows.end(run, ["a"])
    own = api("GET", f"/v1/runs/{run}", 200).json()

    assert api("GET", f"/v1/jobs/{own['job_id']}", 200).json()["last_run_at"] == own["started_at"]
    (job,) = api("GET", "/v1/jobs?namespace=tests&type=workflow", 200).json()["items"]
    assert job["last_run_at"] == own["started_at"]


# -- why -----------------------------------------------------------------------------------------------------


def test_why_follows_a_skipped_task_to_the_first_task_that_failed(api, flows):
    run = flows.open({"a": {}, "b": {"depends_on": ["a"]}, "c": {"depends_on": ["b"]}, "x": {}})
    flows.end(run, ["a"], RunState.DEAD, error="no such table")

    found = first_answer(api, flows.run_id(run, "c"))

    assert found["code"] == "upstream_failed"
    assert "b is skipped (upstream_failed); the first cause is task a, dead since" in found["sentence"]
    assert found["sentence"].endswith("no such table")
    facts = found["facts"]
    assert (facts["path"], facts["cause"], facts["cause_run"]) == (
        ["c", "b", "a"],
        "a",
        str(flows.run_id(run, "a")),
    )
    assert [(one["task"], one["counts_as"]) for one in facts["parents"]] == [("b", "failed")]


def test_why_says_that_the_condition_of_a_dependency_does_not_hold(api, flows):
    run = flows.open(CONDITIONAL)
    flows.end(run, ["check"], result=json.dumps({"total": 5}))

    big, join = (first_answer(api, flows.run_id(run, key)) for key in ("big", "join"))

    assert "check succeeded, but the condition of this dependency does not hold" in big["sentence"]
    assert big["facts"]["parents"][0]["condition"] is False
    assert join["facts"]["path"] == ["join", "big"] or join["facts"]["path"] == ["join", "big", "check"]


def test_why_says_what_an_undecided_task_waits_for(api, flows):
    run = flows.open(DIAMOND)
    flows.end(run, ["a"])

    answer = api("GET", f"/v1/runs/{run}/why?task=d", 200).json()

    assert (answer["task"], answer["workflow_id"], answer["state"]) == ("d", str(run), "undecided")
    codes = {one["code"]: one for one in answer["answers"]}
    waits = codes["waits_for_tasks"]
    assert waits["blocks"] is True
    assert waits["sentence"].startswith("task d waits for b (queued since ")
    assert [one["task"] for one in waits["facts"]["waits_for"]] == ["b", "c"]
    assert "trigger_stopped" in codes


def test_why_of_a_task_by_its_key_is_that_of_its_run(api, flows):
    run = flows.open(DIAMOND)

    by_key = api("GET", f"/v1/runs/{run}/why?task=a", 200).json()

    assert (by_key["id"], by_key["task"], by_key["workflow_id"]) == (
        str(flows.run_id(run, "a")),
        "a",
        str(run),
    )
    api("GET", f"/v1/runs/{run}/why?task=nobody", 404)
    api("GET", f"/v1/runs/{flows.run_id(run, 'a')}/why?task=a", 404)


def test_why_of_an_open_workflow_run_counts_its_tasks(api, flows):
    run = flows.open(DIAMOND)
    flows.end(run, ["a"])

    answers = api("GET", f"/v1/runs/{run}/why", 200).json()["answers"]

    found = next(one for one in answers if one["code"] == "waits_for_tasks")
    assert "1 of 4 tasks have ended (2 queued, 1 succeeded, 1 undecided)" in found["sentence"]
    assert "it waits for b (queued since" in found["sentence"]
    assert found["facts"]["tasks"] == {"succeeded": 1, "queued": 2, "undecided": 1}


def test_why_of_a_dead_workflow_run_names_the_tasks_that_failed(api, flows, database):
    run = flows.open(DIAMOND)
    flows.end(run, ["a"], RunState.DEAD, error="no such table")

    found = first_answer(api, run)
    viewer = make_token(database, "viewer", "tests")
    hidden = api("GET", f"/v1/runs/{run}/why", 200, key=viewer).json()["answers"][0]

    assert found["code"] == "dead"
    assert found["sentence"].endswith("(task_failed): task a failed; a: no such table")
    assert hidden["sentence"].endswith("(task_failed): task a failed")
    assert (found["facts"]["tasks"], found["facts"]["cause"]) == (["a"], "a")
    assert f"`noonmark why {flows.run_id(run, 'a')}`" in found["remedy"]
    assert f"`noonmark dead redrive {run}`" in found["remedy"]


def test_why_of_a_workflow_job_is_about_the_tasks_of_its_run(api, flows):
    run = flows.open(DIAMOND)
    flows.end(run, ["a"])
    job = api("GET", f"/v1/runs/{run}", 200).json()["job_id"]

    def first() -> dict[str, Any]:
        answers = api("GET", f"/v1/jobs/{job}/why", 200).json()["answers"]
        return next(one for one in answers if one["code"] in {"waits_for_tasks", "dead"})

    assert "1 of 4 tasks have ended" in first()["sentence"]
    flows.end(run, ["b", "c"], RunState.DEAD)
    assert first()["facts"]["tasks"] == ["b", "c"]


def test_no_answer_about_a_workflow_asks_for_workers_that_run_it(api, flows):
    job = flows.create(DIAMOND, schedule="0 9 * * 1")

    codes = {one["code"] for one in api("GET", f"/v1/jobs/{job}/why", 200).json()["answers"]}

    assert not codes & {"no_such_pool", "no_worker", "no_worker_for_kind"}
