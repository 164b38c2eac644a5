"""`Idempotency-Key` on every POST that changes something, and what it is refused on."""

from __future__ import annotations

import threading
from datetime import timedelta

import pytest
from tests.integration.api.test_dead_letters import dead

from noonmark.api.app import build_api
from noonmark.api.http.route_list import routes_of
from noonmark.api.requests.routing import needs_of

pytestmark = pytest.mark.postgres

KEY = {"Idempotency-Key": "order-42"}
WITHOUT = {"/v1/runs/{run_id}/complete", "/v1/executions/{run_id}/complete"}
"""The token of a report works once."""


def test_every_post_that_changes_something_takes_a_key():
    missing = {
        path
        for (method, path), route in routes_of(build_api())
        if method == "POST"
        and needs_of(route).action
        and "idempotency-key" not in {field.alias.lower() for field in route.dependant.header_params}
    }
    assert missing == WITHOUT


def orders(world):
    """Orders of each kind, with a body."""
    run = world.put_run()
    (first,) = dead(world)
    (second,) = dead(world, error="another")
    yield f"/v1/runs/{run}/cancel", {"reason": "x"}
    yield "/v1/runs/cancel", {"filter": {"namespace": "tests"}}
    yield f"/v1/runs/{first}/retry", {}
    yield "/v1/dead-letters/redrive", {"filter": {"namespace": "tests", "runs": [first]}}
    yield "/v1/dead-letters/discard", {"filter": {"namespace": "tests", "runs": [second]}}
    yield "/v1/namespaces/tests/pause", {"reason": "moving"}
    yield "/v1/namespaces/tests/resume", {"missed": "skip"}


def test_a_repeat_gets_the_same_answer_and_changes_nothing_again(api, world, database):
    for number, (path, body) in enumerate(orders(world)):
        key = {"Idempotency-Key": f"k{number}"}
        first = api("POST", path, headers=key, json=body)
        world.db.execute("update runs set fence = fence + 1")
        fences = world.column("select fence from runs order by id")

        again = api("POST", path, headers=key, json=body)

        assert first.status_code in (200, 202), path
        assert "idempotent-replayed" not in first.headers
        assert (again.status_code, again.json()) == (first.status_code, first.json()), path
        assert again.headers["idempotent-replayed"] == "true", path
        assert world.column("select fence from runs order by id") == fences, path
        (last,) = database.execute("select after from audit_log order by id desc limit 1").fetchone()
        assert last == {"replayed": True}, path


def test_a_backfill_is_cancelled_once_for_a_key(api, world):
    made = api(
        "POST", "/v1/jobs", 202, json={"name": "n", "type": "python", "handler": "h", "schedule": "0 * * * *"}
    )
    now = world.now()
    body = {"from": (now - timedelta(hours=5)).isoformat(), "until": now.isoformat()}
    backfill = api("POST", f"/v1/jobs/{made.json()['id']}/backfills", 202, json=body).json()["id"]
    first = api("POST", f"/v1/backfills/{backfill}/cancel", 200, headers=KEY, json={})
    again = api("POST", f"/v1/backfills/{backfill}/cancel", 200, headers=KEY, json={})
    assert (again.json(), again.headers["idempotent-replayed"]) == (first.json(), "true")


def test_a_key_of_one_request_is_refused_on_another(api, world):
    one, other = world.put_run(), world.put_run(request_id="2")
    api("POST", f"/v1/runs/{one}/cancel", 202, headers=KEY)
    problem = api("POST", f"/v1/runs/{other}/cancel", 422, headers=KEY).json()
    assert problem["type"].endswith("idempotency-key-reused")
    assert world.run(other)["state"] == "queued"


def test_two_requests_with_one_key_at_once_make_one_change(api, world):
    run, answers = world.put_run(), []

    def order():
        answers.append(api("POST", f"/v1/runs/{run}/cancel", 202, headers=KEY))

    both = [threading.Thread(target=order) for _ in range(2)]
    for one in both:
        one.start()
    for one in both:
        one.join()
    assert sorted("idempotent-replayed" in answer.headers for answer in answers) == [False, True]
    assert answers[0].json() == answers[1].json()


def test_a_refused_request_and_a_dry_run_leave_their_key_free(api, world):
    run = world.put_run("succeeded")
    api("POST", f"/v1/runs/{run}/cancel", 409, headers=KEY)
    everything = {"filter": {"namespace": "tests"}, "dry_run": True}
    api("POST", "/v1/runs/cancel", 200, headers=KEY, json=everything)
    api("POST", "/v1/dead-letters/redrive", 200, headers=KEY, json=everything)
    assert world.count("idempotency") == 0


def test_an_answer_with_a_secret_is_not_kept_so_the_header_is_refused(api, world):
    body = {"name": "ci", "grants": {"tests": "viewer"}}
    problem = api("POST", "/v1/keys", 400, headers=KEY, json=body).json()
    assert "Idempotency-Key is not supported here" in problem["detail"]
    assert world.count("idempotency") == world.count("api_keys", "name = 'ci'") == 0


def test_a_tag_without_its_quotes_is_refused_with_what_is_missing(api, world):
    run = world.put_run()
    for tag in ("abc", '"abc', 'abc, "def"'):
        problem = api("POST", f"/v1/runs/{run}/cancel", 400, headers={"If-Match": tag}).json()
        assert "in its double quotes" in problem["detail"]
    assert world.run(run)["state"] == "queued"
