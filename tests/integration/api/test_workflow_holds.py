"""Workflow runs are held and released over the API."""

from __future__ import annotations

import threading
from datetime import datetime
from typing import Any
from uuid import uuid4

import psycopg
import pytest
from psycopg import sql
from tests.integration.store.workflow_room import Flows
from tests.integration.store.world import World

from noonmark.core.states import RunState
from noonmark.store.database.hints import ENDED_CHANNEL
from noonmark.store.database.scope import enter_scope

pytestmark = pytest.mark.postgres

CHAIN = {"a": {}, "b": {"depends_on": ["a"]}}


@pytest.fixture
def flows(world: World) -> Flows:
    return Flows(world)


def codes(api: Any, run_id: Any, query: str = "") -> list[str]:
    return [one["code"] for one in api("GET", f"/v1/runs/{run_id}/why{query}", 200).json()["answers"]]


def audited(database: psycopg.Connection, action: str) -> list[Any]:
    return database.execute(
        "select outcome, object, before ->> 'held_at', after ->> 'held_at' from audit_log where action = %s"
        " order by id",
        [action],
    ).fetchall()


def test_a_held_run_starts_no_task_until_it_is_released(api, flows, token):
    run, operator = flows.open(CHAIN), token("operator", "tests")

    held = api("POST", f"/v1/runs/{run}/hold", 200, key=operator, json={}).json()
    flows.end(run, ["a"])
    assert flows.tasks(run) == {"a": "succeeded"}
    released = api("POST", f"/v1/runs/{run}/release", 200, key=operator).json()
    flows.advance()

    assert (held["id"], held["state"]) == (str(run), "running")
    assert datetime.fromisoformat(held["held_at"])
    assert released == {"id": str(run), "state": "running", "held_at": None}
    assert flows.tasks(run) == {"a": "succeeded", "b": "queued"}


def test_a_request_that_is_repeated_gets_the_same_answer(api, flows):
    run = flows.open(CHAIN)

    for order in ("hold", "release"):
        first, again, third = (api("POST", f"/v1/runs/{run}/{order}", 200) for _ in range(3))
        assert first.json() == again.json() == third.json()
        assert first.headers["etag"] == again.headers["etag"]
    key = {"Idempotency-Key": "once"}
    first = api("POST", f"/v1/executions/{run}/hold", 200, headers=key)
    api("POST", f"/v1/executions/{run}/release", 200)
    again = api("POST", f"/v1/executions/{run}/hold", 200, headers=key)
    assert again.json() == first.json()
    assert again.headers["idempotent-replayed"] == "true"
    assert api("GET", f"/v1/runs/{run}", 200).json()["held_at"] is None


def test_a_run_shows_since_when_it_is_held_and_why_says_so(api, flows, database):
    run = flows.open(CHAIN)
    before = api("GET", f"/v1/runs/{run}", 200)

    held = api("POST", f"/v1/runs/{run}/hold", 200)
    shown = api("GET", f"/v1/runs/{run}", 200)

    assert before.json()["held_at"] is None
    assert shown.json()["held_at"] == held.json()["held_at"]
    assert shown.headers["etag"] == held.headers["etag"] != before.headers["etag"]
    assert api("GET", f"/v1/runs/{flows.run_id(run, 'a')}", 200).json()["held_at"] is None
    first = api("GET", f"/v1/runs/{run}/why", 200).json()["answers"][0]
    assert (first["code"], first["blocks"]) == ("held", True)
    assert first["facts"]["held_at"] == held.json()["held_at"]
    assert f"`noonmark run release {run}`" in first["remedy"]
    assert codes(api, run, "?task=b")[0] == "held"
    assert "held" not in codes(api, run, "?task=a")
    api("POST", f"/v1/runs/{run}/cancel", 202)
    assert "held" not in codes(api, run)


def test_who_held_and_released_a_run_is_in_the_audit_log(api, flows, database):
    run = flows.open(CHAIN)
    held_at = api("POST", f"/v1/runs/{run}/hold", 200).json()["held_at"]
    api("POST", f"/v1/runs/{run}/release", 200)

    ((outcome, what, before, after),) = audited(database, "run.hold")
    assert (outcome, what, before) == ("done", f"run:{run}", None)
    assert datetime.fromisoformat(after) == datetime.fromisoformat(held_at)
    assert audited(database, "run.release") == [("done", f"run:{run}", after, None)]


@pytest.mark.parametrize("order", ["hold", "release"])
def test_only_open_workflow_runs_are_held_and_released(api, flows, world, order):
    run = flows.open(CHAIN)
    task, plain, unopened = flows.run_id(run, "a"), world.put_run(), flows.create(CHAIN, name="other")
    flows.claim()
    flows.end(run, ["a"], RunState.DEAD)

    def refusal(run_id: Any) -> str:
        return api("POST", f"/v1/runs/{run_id}/{order}", 409).json()["detail"]

    assert refusal(run) == f"run {run} is dead: it has already ended"
    assert f"hold or release its workflow run {run}" in refusal(task)
    assert "pause its job" in refusal(plain)
    assert "is queued, so none of its tasks has started: pause its job" in refusal(flows.run_of(unopened))
    api("POST", f"/v1/runs/{uuid4()}/{order}", 404)


def test_a_run_that_is_being_stopped_is_not_held(api, flows, world):
    run = flows.open(CHAIN)
    worker = world.worker()
    world.start(worker, [flows.run_id(run, "a")])
    api("POST", f"/v1/runs/{run}/cancel", 202)

    assert "it is being cancelled" in api("POST", f"/v1/runs/{run}/hold", 409).json()["detail"]
    api("POST", f"/v1/runs/{run}/release", 200)
    world.db.execute("update runs set state = 'running' where id = %s", [run])
    world.db.execute("update workflows set stopping = 'deadline'")
    assert "its deadline has passed" in api("POST", f"/v1/runs/{run}/hold", 409).json()["detail"]


def test_viewers_and_strangers_hold_no_run(api, flows, token):
    run = flows.open(CHAIN)

    for order in ("hold", "release"):
        api("POST", f"/v1/runs/{run}/{order}", 403, key=token("viewer", "tests"))
        api("POST", f"/v1/runs/{run}/{order}", 404, key=token("admin", "elsewhere"))
    assert api("GET", f"/v1/runs/{run}", 200).json()["held_at"] is None


@pytest.mark.parametrize("order", ["hold", "release"])
def test_what_changes_while_an_order_waits_for_the_workflow_is_seen_by_its_if_match(api, world, flows, order):
    run = flows.open(CHAIN)
    seen = api("GET", f"/v1/runs/{run}", 200).headers["etag"]
    answers: list[int] = []

    def ask() -> None:
        answers.append(api("POST", f"/v1/runs/{run}/{order}", headers={"If-Match": seen}).status_code)

    asking, other = threading.Thread(target=ask), world.another()
    with other.transaction():
        other.execute("update workflows set held_at = now()")
        asking.start()
        while not world.value(
            "select count(*) from pg_stat_activity where wait_event_type = 'Lock' and datname = current_database()"
        ):
            pass
    asking.join()

    assert answers == [412]
    api("POST", f"/v1/runs/{run}/{order}", 200, headers={"If-Match": "*"})


def test_a_release_wakes_the_triggers(api, flows, database):
    run = flows.open(CHAIN)
    api("POST", f"/v1/runs/{run}/hold", 200)
    database.execute(sql.SQL("listen {}").format(sql.Identifier(ENDED_CHANNEL)))

    api("POST", f"/v1/runs/{run}/release", 200)

    assert [one.channel for one in database.notifies(timeout=10, stop_after=1)] == [ENDED_CHANNEL]


def test_the_role_of_the_api_changes_nothing_of_a_workflow_but_whether_it_is_held(flows, database):
    run = flows.open(CHAIN)

    def touched(namespace: str, column: str) -> int:
        with database.transaction(force_rollback=True):
            enter_scope(database, [namespace])
            change = sql.SQL("update workflows set {0} = {0} where run_id = %s").format(
                sql.Identifier(column)
            )
            return database.execute(change, [run]).rowcount

    assert touched("tests", "held_at") == 1
    assert touched("elsewhere", "held_at") == 0
    for column in ("progress", "choices", "generation", "stopping"):
        with pytest.raises(psycopg.errors.InsufficientPrivilege):
            touched("tests", column)


def test_a_graph_that_was_read_before_is_gone_with_its_job(api, flows, world):
    run = flows.open(CHAIN)
    assert len(api("GET", f"/v1/runs/{run}/graph", 200).json()["tasks"]) == 2
    world.db.execute("delete from jobs where id = (select job_id from runs where id = %s)", [run])

    api("GET", f"/v1/runs/{run}/graph", 404)
