"""Runs cancelled by a filter over the API: counted, in steps, audited, and nothing else."""

from __future__ import annotations

from datetime import timedelta
from uuid import uuid4

import pytest
from tests.integration.api.test_run_orders import audited

pytestmark = pytest.mark.postgres


def order(api, status=200, *, path="/v1/runs/cancel", namespace="tests", key=None, **body):
    body["filter"] = {"namespace": namespace, **body.pop("filter", {})}
    return api("POST", path, status, key=key, json=body).json()


def queued(world, count, *, job_id=None, state="queued"):
    """Unfinished runs of one job, the oldest first."""
    job = job_id or world.job()
    return [str(world.put_run(state, job_id=job, request_id=uuid4().hex)) for _ in range(count)]


def states(world, runs):
    return [world.run(run)["state"] for run in runs]


def test_a_dry_run_counts_and_changes_nothing(api, world, database):
    runs = queued(world, 3)

    told = order(api, dry_run=True)

    assert (told["matched"], told["first"], told["next_after"]) == (3, runs[::-1], None)
    assert states(world, runs) == ["queued"] * 3
    assert database.execute("select count(*) from audit_log").fetchone() == (0,)


def test_an_order_works_through_a_filter_in_steps_and_is_audited_with_its_counts(api, world, database):
    runs = queued(world, 5)

    first = order(api, limit=3, reason="target is down")
    second = order(api, limit=3, reason="target is down", after=first["next_after"])

    assert (first["matched"], first["runs"]) == (3, {"cancelled": 3})
    assert states(world, runs) == ["cancelled"] * 5
    assert (second["runs"], second["next_after"]) == ({"cancelled": 2}, None)
    assert world.run(runs[0])["reason"].endswith("(test platform): target is down")
    kept = audited(database, "run.cancel")
    assert [(row[0], row[1], row[2], row[3]["runs"]) for row in kept] == [
        ("done", "runs", "tests", {"cancelled": 3}),
        ("done", "runs", "tests", {"cancelled": 2}),
    ]
    assert order(api)["matched"] == 0


def test_the_same_call_twice_does_nothing_twice(api, world):
    queued(world, 3)
    first = order(api, limit=2)
    second, again = (order(api, limit=2, after=first["next_after"]) for _ in range(2))
    assert (second["runs"], again["runs"]) == ({"cancelled": 1}, {})


def test_what_runs_is_asked_to_stop_and_what_has_ended_stays(api, world):
    worker = world.worker()
    (running,) = world.started(worker)
    ended = world.put_run("succeeded")

    told = order(api, path="/v1/executions/cancel")

    assert (told["runs"], told["stopping"]) == ({"cancelling": 1}, [str(running.id)])
    assert states(world, [running.id, ended]) == ["cancelling", "succeeded"]


def test_every_field_of_a_filter_narrows_the_order_down(api, world):
    other = world.job()
    world.db.execute(
        """update jobs set name = 'invoices', unique_name = true, labels = '{"team": "a"}' where id = %s""",
        [other],
    )
    (meant,) = queued(world, 1, job_id=other, state="retrying")
    queued(world, 2)
    due = world.run(meant)["scheduled_for"]
    within = {
        "since": due.isoformat(),
        "until": (due + timedelta(seconds=1)).isoformat(),
        "origin": world.run(meant)["origin"],
        "pool": world.run(meant)["pool"],
    }

    chosen = (
        {"job_id": str(other)},
        {"job_name": "invoices"},
        {"labels": {"team": "a"}},
        {"state": ["retrying"]},
    )
    for one in chosen:
        assert order(api, dry_run=True, filter={**within, **one})["first"] == [meant], one
    for one in ({"pool": "none"}, {"priority": ["low"]}, {"until": due.isoformat()}, {"origin": "backfill"}):
        assert order(api, dry_run=True, filter=one)["matched"] == 0, one


def test_an_order_reaches_its_own_namespace_only(api, world, token):
    runs = queued(world, 2)
    stranger = token("admin", "elsewhere")

    assert order(api, namespace="elsewhere", key=stranger)["matched"] == 0
    order(api, 404, key=stranger)
    order(api, 403, key=token("viewer", "tests"))
    assert states(world, runs) == ["queued"] * 2


def test_what_is_no_filter_is_refused_with_its_place(api):
    problem = order(api, 422, filter={"state": ["dead"], "jobs": 1})
    assert {error["pointer"] for error in problem["errors"]} == {"/filter/state/0", "/filter/jobs"}
    # Everything in a namespace is not what an empty body means.
    assert api("POST", "/v1/runs/cancel", 422, json={}).json()["errors"][0]["pointer"] == "/filter"


def test_the_place_of_one_filter_is_none_of_another(api, world):
    queued(world, 2)
    after = order(api, limit=1)["next_after"]
    order(api, 400, after=after, filter={"state": ["queued"]})
