"""What is done to runs over the API: cancelled, retried, reported on."""

from __future__ import annotations

import threading
from uuid import uuid4

import pytest
from tests.integration.api.test_runs import failed
from tests.integration.store.world import outcome

from noonmark.core.states import AttemptOutcome, RunState
from noonmark.store.outcomes.callback_rows import Expected, NewCallback, open_callbacks
from noonmark.store.outcomes.extras import OutcomeExtras

pytestmark = pytest.mark.postgres

TOKEN = "t" * 43


def audited(database, action):
    return database.execute(
        "select outcome, object, namespace, after from audit_log where action = %s order by id", [action]
    ).fetchall()


def test_a_cancelled_run_keeps_who_and_why(api, world, database, token):
    run = world.put_run()
    operator = token("operator", "tests")

    answer = api("POST", f"/v1/runs/{run}/cancel", 202, key=operator, json={"reason": "target is down"})

    key_id = operator.split("_")[1]
    assert answer.json() == {
        "id": str(run),
        "state": "cancelled",
        "reason": f"by key:{key_id} (test operator): target is down",
    }
    assert world.told("noonmark.lifecycle")[0]["reason"] == f"by key:{key_id} (test operator): target is down"
    read = api("GET", f"/v1/runs/{run}", 200)
    assert read.json()["reason"] == answer.json()["reason"]
    assert read.headers["etag"] == answer.headers["etag"]
    ((state, what, where, after),) = audited(database, "run.cancel")
    assert (state, what, where) == ("done", f"run:{run}", "tests")
    assert after["state"] == "cancelled"
    # Once more changes nothing.
    assert api("POST", f"/v1/executions/{run}/cancel", 202).json()["reason"] == answer.json()["reason"]


def test_a_run_with_a_worker_is_asked_to_stop_and_keeps_the_reason_when_it_has(api, world):
    worker = world.worker()
    runs = world.started(worker, 2)

    for run in runs:
        api("POST", f"/v1/runs/{run.id}/cancel", 202, json={"reason": "enough"})
    # One reports plainly, the other with an error.
    world.record(
        worker,
        [
            outcome(runs[0]),
            outcome(runs[1], RunState.CANCELLED, attempt_outcome=AttemptOutcome.CANCELLED, error="x"),
        ],
    )

    for run in runs:
        row = world.run(run.id)
        assert row["state"] == "cancelled"
        assert row["reason"].endswith("(test platform): enough")


def test_a_run_that_has_ended_cannot_be_cancelled(api, world, database):
    run = world.put_run("succeeded")

    problem = api("POST", f"/v1/runs/{run}/cancel", 409).json()

    assert problem["detail"] == f"run {run} is succeeded: it has already finished"
    assert [row[0] for row in audited(database, "run.cancel")] == ["failed"]


def test_a_change_of_a_run_that_has_moved_on_is_refused(api, world):
    run = world.put_run()
    seen = api("GET", f"/v1/runs/{run}", 200).headers["etag"]
    world.db.execute("update runs set fence = fence + 1 where id = %s", [run])

    api("POST", f"/v1/runs/{run}/cancel", 412, headers={"If-Match": seen})
    assert world.run(run)["state"] == "queued"
    api("POST", f"/v1/runs/{run}/cancel", 202, headers={"If-Match": "*"})


@pytest.mark.parametrize("order", ["cancel", "retry"])
def test_what_changes_while_an_order_waits_for_the_run_is_seen_by_its_if_match(api, world, order):
    run = failed(world).id if order == "retry" else world.put_run()
    seen = api("GET", f"/v1/runs/{run}", 200).headers["etag"]
    state, answers = world.run(run)["state"], []

    def ask():
        answers.append(api("POST", f"/v1/runs/{run}/{order}", headers={"If-Match": seen}).status_code)

    asking, other = threading.Thread(target=ask), world.another()
    with other.transaction():
        other.execute("update runs set fence = fence + 1 where id = %s", [run])
        asking.start()
        while not world.value(
            "select count(*) from pg_stat_activity where wait_event_type = 'Lock' and datname = current_database()"
        ):
            pass
    asking.join()

    assert answers == [412]
    assert world.run(run)["state"] == state


def test_a_dead_run_gets_another_life(api, world, database):
    run = failed(world)

    answer = api("POST", f"/v1/runs/{run.id}/retry", 202).json()

    assert answer["state"] == "queued"
    assert len(world.messages(run.id)) == 1
    assert [row[0] for row in audited(database, "run.retry")] == ["done"]
    problem = api("POST", f"/v1/runs/{run.id}/retry", 409).json()
    assert problem["detail"] == f"run {run.id} is queued, not dead: it is already queued"


def test_a_run_that_is_not_dead_is_not_retried_and_the_answer_says_what_can_be_done(api, world):
    for state, instead in {
        "succeeded": "trigger its job",
        "cancelled": "trigger its job, or run a backfill",
        "skipped": "run a backfill",
        "unknown": "its outcome is unknown",
        "discarded": "trigger its job",
        "waiting": "it waits",
    }.items():
        run = world.put_run(state, reason="paused" if state == "waiting" else None, request_id=state)
        assert instead in api("POST", f"/v1/runs/{run}/retry", 409).json()["detail"]


def called(world):
    """A run whose target has answered 202."""
    worker = world.worker()
    (run,) = world.started(worker)
    open_callbacks(world.db, *worker, [NewCallback(run.id, run.scheduled_for, 1, TOKEN)])
    waits = outcome(
        run,
        RunState.RUNNING,
        attempt_outcome=AttemptOutcome.SUCCEEDED,
        extras=OutcomeExtras(callback=Expected(60.0)),
    )
    world.record(worker, [waits], [run.batch_id])
    return run


def report(server, run_id, status, token=TOKEN, **more):
    answer = server.post(f"/v1/runs/{run_id}/complete", json={"token": token, "outcome": "succeeded", **more})
    assert answer.status_code == status, answer.text
    return answer.json()


def test_a_target_reports_with_its_token_and_no_credential(server, world, database):
    run = called(world)

    assert report(server, run.id, 200, result={"sent": 3})["state"] == "succeeded"

    row = world.run(run.id)
    assert (row["state"], row["result"]) == ("succeeded", {"sent": 3})
    ((state, what, where, _),) = audited(database, "run.complete")
    assert (state, what, where) == ("done", f"run:{run.id}", "tests")


def test_a_report_is_answered_with_the_reason_of_the_state(server, world):
    run = called(world)

    answer = report(server, run.id, 200, outcome="failed", error="no such account", retryable=False)

    assert (answer["state"], answer["reason"]) == ("dead", world.run(run.id)["reason"])
    assert answer["reason"]


def test_a_wrong_a_late_and_a_repeated_report_are_answered_alike(server, world):
    first, second = called(world), called(world)
    report(server, first.id, 200)

    answers = [
        report(server, first.id, 409),
        report(server, second.id, 409, token="x" * 43),
        report(server, uuid4(), 409),
    ]

    assert len({(one["type"], one["detail"]) for one in answers}) == 1
    assert world.run(second.id)["state"] == "running"
    report(server, second.id, 200, outcome="failed", error="no disk", retryable=False)
    assert world.run(second.id)["state"] == "dead"


def test_tokens_cannot_be_guessed_at_speed(server, world, database):
    run = called(world)
    for n in range(10):
        report(server, run.id, 409, token=f"{n:043}")

    answer = server.post(f"/v1/runs/{run.id}/complete", json={"token": TOKEN, "outcome": "succeeded"})

    assert answer.status_code == 429
    assert int(answer.headers["retry-after"]) >= 1
    assert len(audited(database, "run.complete")) == 10


def test_a_report_that_cannot_be_one_is_told_without_its_token(server, world):
    run = called(world)
    secret = "s3cr3t" + "a" * 37

    answer = server.post(f"/v1/runs/{run.id}/complete", json={"token": secret, "outcome": "done"})

    assert answer.status_code == 422
    assert [error["pointer"] for error in answer.json()["errors"]] == ["/outcome"]
    assert secret not in answer.text
    short = server.post(f"/v1/runs/{run.id}/complete", json={"token": "x", "outcome": "succeeded"})
    assert [error["pointer"] for error in short.json()["errors"]] == ["/token"]


def test_a_change_that_fails_before_its_object_was_read_is_audited_in_its_namespace(api, world, database):
    job = world.job(recurring=True, schedule={"cron": "* * * * *"})

    api("POST", f"/v1/jobs/{job}/backfills", 422, json={"from": 7})
    api("POST", f"/v1/jobs/{job}/backfills", 422, json={"from": "never", "dry_run": True})

    ((state, _, where, _),) = audited(database, "backfill.create")
    assert (state, where) == ("failed", "tests")
