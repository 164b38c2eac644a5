"""Dead letters over the API: listed, grouped, redriven and discarded by filter."""

from __future__ import annotations

from uuid import uuid4

import pytest
from tests.integration.store.world import TOPICS, outcome

from noonmark.core.states import RunState
from noonmark.store.runs import finish

pytestmark = pytest.mark.postgres

HERE = "/v1/dead-letters?namespace=tests"


def dead(world, count=1, *, error="boom", job_id=None, reason="retries_exhausted"):
    """Runs that have died one after the other; their ids, the oldest first."""
    worker = world.worker()
    job = job_id or world.job()
    made = []
    for _ in range(count):
        run_id = world.put_run(job_id=job, request_id=uuid4().hex)
        (run,) = world.start(worker, [run_id])
        with world.db.transaction():
            ended = outcome(run, RunState.DEAD, reason=reason, error=error)
            finish.record(world.db, worker, TOPICS, [ended], [run.batch_id], shards=4)
        made.append(str(run_id))
    return made


def order(api, verb, status=200, *, namespace="tests", key=None, **body):
    body["filter"] = {"namespace": namespace, **body.pop("filter", {})}
    return api("POST", f"/v1/dead-letters/{verb}", status, key=key, json=body).json()


def test_what_to_change_is_said_and_nothing_else_means_all(api, world):
    dead(world)
    for verb in ("redrive", "discard"):
        for body in ({}, {"filter": {}}, {"all": False}):
            (error,) = api("POST", f"/v1/dead-letters/{verb}", 422, json=body).json()["errors"]
            assert (error["pointer"], error["expected"]) == (
                "/filter",
                "a filter with a field, or `all`: true",
            )
            # A look does no harm.
            api("POST", f"/v1/dead-letters/{verb}", 200, json={**body, "dry_run": True})
        api("POST", f"/v1/dead-letters/{verb}", 200, json={"all": True})
    assert world.count("dead_letters") == 1
    assert order(api, "redrive", all=True)["runs"] == {"queued": 1}


def test_they_are_listed_by_their_death_page_by_page(api, world):
    made = dead(world, 5)

    first = api("GET", f"{HERE}&limit=3", 200).json()
    second = api("GET", f"{HERE}&limit=3&cursor={first['next_cursor']}", 200).json()

    assert [one["run_id"] for one in first["items"] + second["items"]] == made[::-1]
    assert second["next_cursor"] is None


def test_the_next_page_is_there_though_the_last_letter_is_gone(api, world):
    made = dead(world, 3)
    first = api("GET", f"{HERE}&limit=2", 200).json()
    order(api, "discard", filter={"runs": [first["items"][-1]["run_id"]]})

    second = api("GET", f"{HERE}&limit=2&cursor={first['next_cursor']}", 200).json()

    assert [one["run_id"] for one in second["items"]] == made[:1]


def test_causes_are_counted_and_narrow_a_listing_down(api, world, token):
    dead(world, 3, error="timeout after 31 s")
    (other,) = dead(world, error="KeyError: name")

    groups = api("GET", "/v1/dead-letters/groups?namespace=tests", 200).json()["items"]

    assert [(one["runs"], one["error"]) for one in groups] == [
        (3, "timeout after 31 s"),
        (1, "KeyError: name"),
    ]
    found = api("GET", f"{HERE}&fingerprint={groups[1]['fingerprint']}", 200).json()["items"]
    assert [one["run_id"] for one in found] == [other]
    letter = api("GET", f"/v1/dead-letters/{other}", 200).json()
    assert [one["error"] for one in letter["history"]] == ["KeyError: name"]
    viewer = token("viewer", "tests")
    for path in (HERE, "/v1/dead-letters/groups?namespace=tests", f"/v1/dead-letters/{other}"):
        seen = api("GET", path, 200, key=viewer)
        assert "KeyError" not in seen.text
        assert '"error_hidden":true' in seen.text


def test_a_dry_run_counts_and_changes_nothing(api, world, database):
    made = dead(world, 3)

    told = order(api, "redrive", dry_run=True)

    assert (told["matched"], told["first"]) == (3, sorted(made))
    assert world.count("dead_letters") == 3
    assert database.execute("select count(*) from audit_log").fetchone() == (0,)


def test_an_order_works_through_a_filter_in_steps_and_is_audited_with_its_counts(api, world, database):
    made = dead(world, 5)
    dead(world, error="another cause")
    cause = api("GET", f"/v1/dead-letters/{made[0]}", 200).json()["fingerprint"]

    first = order(api, "redrive", filter={"fingerprint": cause}, limit=3)
    second = order(api, "redrive", filter={"fingerprint": cause}, limit=3, after=first["next_after"])

    assert (first["runs"], first["remaining"]) == ({"queued": 3}, 2)
    assert (second["runs"], second["remaining"], second["next_after"]) == ({"queued": 2}, 0, None)
    assert world.count("dead_letters") == 1
    kept = database.execute("select outcome, namespace, before, after from audit_log order by id").fetchall()
    assert [(row[0], row[1], row[3]["runs"]) for row in kept] == [
        ("done", "tests", {"queued": 3}),
        ("done", "tests", {"queued": 2}),
    ]
    assert kept[0][2]["filter"]["fingerprint"] == cause


def test_what_cannot_run_is_refused_and_does_not_stand_in_the_way(api, world):
    gone = world.job()
    dead(world, 2, job_id=gone)
    world.db.execute("update jobs set state = 'cancelled' where id = %s", [gone])
    (fit,) = dead(world)

    first = order(api, "redrive", limit=2)
    second = order(api, "redrive", limit=2, after=first["next_after"])

    assert (first["runs"], first["refused"]) == ({}, {"job_cancelled": 2})
    assert second["runs"] == {"queued": 1}
    assert world.run(fit)["state"] == "queued"


def test_discarded_runs_keep_the_reason_given(api, world):
    (run,) = dead(world)

    told = order(api, "discard", reason="target was decommissioned")

    assert told["runs"] == {"discarded": 1}
    assert (world.run(run)["state"], world.run(run)["reason"]) == ("discarded", "target was decommissioned")
    assert order(api, "discard")["matched"] == 0


def test_an_order_reaches_its_own_namespace_only(api, world, token):
    (run,) = dead(world)
    stranger = token("admin", "elsewhere")

    theirs = order(api, "discard", namespace="elsewhere", key=stranger, filter={"runs": [run]})
    nobodys = order(api, "discard", namespace="elsewhere", key=stranger, filter={"runs": [str(uuid4())]})

    assert theirs["refused"] == nobodys["refused"] == {"not_dead": 1}
    order(api, "discard", 404, key=stranger)
    order(api, "discard", 403, key=token("viewer", "tests"))
    assert world.run(run)["state"] == "dead"


def test_a_filter_that_is_none_is_refused_with_its_place(api):
    problem = order(api, "redrive", 422, filter={"fingerprint": "xyz", "jobs": 1})
    assert {error["pointer"] for error in problem["errors"]} == {"/filter/fingerprint", "/filter/jobs"}
