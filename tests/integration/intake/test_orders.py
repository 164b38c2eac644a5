"""Orders about existing jobs: pause, resume, cancel, update, trigger, with runs in every state."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID, uuid4

import orjson
import pytest
from tests.integration.intake.world import LATER, SHARDS, World, create, event, nightly

from noonmark.core.ids import uuid7
from noonmark.core.states import Lane, RunState
from noonmark.store.claims import claims
from noonmark.store.jobs.submit import Reason, Request, Status
from noonmark.store.outbox.relay import Parked, park, read
from noonmark.store.runs.starts import StartRequest, start

pytestmark = pytest.mark.postgres

ALL_SHARDS = list(range(SHARDS))


def by_id(kind: str, job_id: UUID, **data: Any) -> Request:
    return event(kind, job_id=str(job_id), **data)


def queued(world: World) -> UUID:
    return world.job_id(create())


def running(world: World) -> UUID:
    job_id = queued(world)
    world.start(job_id)
    return job_id


def retrying(world: World) -> UUID:
    job_id = queued(world)
    world.end(world.start(job_id), RunState.RETRYING)
    return job_id


def parked(world: World) -> UUID:
    job_id = queued(world)
    rows = [row for row in read(world.connection, ALL_SHARDS, 100) if row.job_id == job_id]
    (row,) = rows
    assert row.run_id is not None
    assert row.scheduled_for is not None
    assert row.fence is not None
    reason = Parked(row.run_id, row.scheduled_for, row.fence, "no such topic")
    park(world.connection, rows, [reason], retry_seconds=3600)
    return job_id


def succeeded(world: World) -> UUID:
    job_id = queued(world)
    world.end(world.start(job_id))
    return job_id


# -- pause ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("made", [queued, retrying, parked])
def test_pause_makes_unstarted_runs_wait_and_resume_queues_them_again(world: World, made: Any) -> None:
    job_id = made(world)
    before = world.run(job_id)

    assert world.one(by_id("pause", job_id, reason="maintenance")).status is Status.ACCEPTED
    job, held = world.job(job_id), world.run(job_id)
    assert (job["state"], job["state_reason"]) == ("paused", "maintenance")
    assert (held["state"], held["reason"], held["fence"]) == ("waiting", "paused", before["fence"] + 1)
    wait = world.row("select * from waits where job_id = %s", job_id)
    assert (wait["run_id"], wait["reason"]) == (held["id"], "paused")
    assert world.outbox(held["id"]) == [], "a run that waits has no message"
    assert world.timers(job_id) == [], "no retry comes due in a pause"
    assert not start(
        world.connection,
        world.worker,
        "default",
        [StartRequest(held["id"], held["scheduled_for"], before["fence"])],
    )[0]

    taken = world.taken(by_id("resume", job_id))
    assert taken.queued
    job, again = world.job(job_id), world.run(job_id)
    assert (job["state"], job["state_reason"]) == ("active", None)
    assert (again["state"], again["reason"], again["fence"]) == ("queued", None, before["fence"] + 2)
    assert [row["fence"] for row in world.outbox(again["id"])] == [before["fence"] + 2]
    assert world.rows("select from waits") == []
    assert world.start(job_id).id == again["id"]


@pytest.mark.parametrize("made", [running, succeeded])
def test_pause_leaves_runs_that_have_started_alone(world: World, made: Any) -> None:
    job_id = made(world)
    before = world.run(job_id)
    world.one(by_id("pause", job_id))
    assert world.run(job_id) == before
    world.one(by_id("resume", job_id))
    assert world.run(job_id) == before


def test_a_paused_one_time_job_is_planned_not_claimed_in_sql(world: World) -> None:
    job_id = world.job_id(create(run_at=LATER))
    world.one(by_id("pause", job_id))
    assert [timer["kind"] for timer in world.timers(job_id)] == [1]


def test_a_retry_recorded_while_the_job_was_paused_is_held_by_nobody_twice(world: World) -> None:
    job_id = running(world)
    run = world.run(job_id)
    world.one(by_id("pause", job_id))
    assert world.run(job_id)["state"] == "running"
    again = world.one(by_id("pause", job_id))
    assert again.status is Status.ACCEPTED
    assert world.run(job_id) == run


def test_a_completed_or_cancelled_job_cannot_be_paused(world: World) -> None:
    job_id = world.job_id(nightly())
    world.connection.execute("update jobs set state = 'completed'")
    refused = world.one(by_id("pause", job_id))
    assert (refused.reason, refused.job_id) == (Reason.CONFLICT, job_id)
    assert refused.refused is not None
    assert "is completed and cannot be paused" in str(refused.refused)
    assert "expected a job that is active or paused" in str(refused.refused)
    world.one(by_id("cancel", job_id))
    assert world.one(by_id("resume", job_id)).reason is Reason.CONFLICT


def test_a_refusal_quotes_the_reason_that_was_given_after_what_it_says(world: World) -> None:
    job_id = world.job_id(nightly())
    world.one(by_id("cancel", job_id, reason="moved"))
    for verb in ("pause", "trigger", "resume"):
        refused = world.one(by_id(verb, job_id)).refused
        assert refused is not None
        done = {"pause": "paused", "trigger": "triggered", "resume": "resumed"}[verb]
        assert f'is cancelled and cannot be {done} (reason given: "moved"); expected a job' in str(refused)


# -- cancel --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("made", [queued, retrying, parked])
def test_cancel_ends_unstarted_runs_and_tells_of_them(world: World, made: Any) -> None:
    job_id = made(world)
    before = world.run(job_id)
    taken = world.taken(by_id("cancel", job_id, reason="not wanted"))

    run = world.run(job_id)
    assert world.job(job_id)["state"] == "cancelled"
    assert (run["state"], run["fence"]) == ("cancelled", before["fence"] + 1)
    assert run["finished_at"] == taken.now or run["finished_at"] > taken.now
    assert world.timers(job_id) == []
    assert world.outbox(run["id"]) == []
    assert world.rows("select from waits") == []
    told = world.rows("select value from outbox where topic = 't.lifecycle'")
    outcomes = [o for row in told for o in orjson.loads(row["value"])["data"]["outcomes"]]
    last = [o for o in outcomes if o["run_id"] == str(run["id"])][-1]
    assert (last["state"], last["fence"]) == ("cancelled", before["fence"] + 1)


def test_cancel_asks_a_running_run_to_stop_and_its_outcome_ends_it(world: World) -> None:
    job_id = queued(world)
    run = world.start(job_id)
    world.one(by_id("cancel", job_id))
    assert (world.run(job_id)["state"], world.run(job_id)["fence"]) == ("cancelling", 1)
    assert world.one(by_id("cancel", job_id)).status is Status.ACCEPTED, "asking twice is not an error"

    world.end(run)
    assert world.run(job_id)["state"] == "cancelled"


def test_cancel_leaves_finished_runs_alone(world: World) -> None:
    job_id = succeeded(world)
    before = world.run(job_id)
    world.one(by_id("cancel", job_id))
    assert world.run(job_id) == before


def test_cancel_ends_a_held_run_and_frees_its_slot(world: World) -> None:
    job_id = world.job_id(nightly())
    world.one(event("trigger", name="nightly"))
    world.one(event("pause", name="nightly"))
    assert len(world.rows("select from slots")) == 1
    world.one(event("cancel", name="nightly"))
    assert world.run(job_id)["state"] == "cancelled"
    assert world.rows("select from slots") == world.rows("select from waits") == []


def test_a_cancelled_job_is_due_no_more(world: World) -> None:
    job_id = world.job_id(create(run_at=LATER))
    world.one(by_id("cancel", job_id))
    assert world.timers(job_id) == []
    assert world.one(by_id("trigger", job_id)).reason is Reason.CONFLICT
    assert (
        world.one(event("update", job_id=str(job_id), type="python", handler="a.b")).reason is Reason.CONFLICT
    )


# -- update --------------------------------------------------------------------------------------------


def test_update_replaces_the_document_and_the_next_instant(world: World) -> None:
    job_id = world.job_id(nightly(payload={"v": 1}, labels={"team": "a"}))
    (old,) = world.timers(job_id)
    result = world.one(
        event(
            "update",
            name="nightly",
            type="python",
            handler="new.one",
            schedule={"every": 60},
            payload={"v": 2},
            priority="high",
        )
    )
    assert (result.status, result.job_id) == (Status.ACCEPTED, job_id)

    job, (timer,) = world.job(job_id), world.timers(job_id)
    assert (job["version"], job["handler"], job["work"]["payload"]) == (2, "new.one", {"v": 2})
    assert job["labels"] is None, "what an update leaves out returns to its default"
    assert (timer["job_version"], timer["lane"]) == (2, int(Lane.HIGH))
    assert timer["fire_at"] < old["fire_at"] or timer["fire_at"] - datetime.now(UTC) < timedelta(minutes=1)
    kept = world.row("select * from job_versions")
    assert (kept["job_id"], kept["version"], kept["handler"], kept["work"]["payload"]) == (
        job_id,
        1,
        "tests.noop",
        {"v": 1},
    )


def test_an_update_without_start_keeps_the_rhythm_of_an_interval(world: World) -> None:
    job_id = world.job_id(nightly(schedule={"every": 600}))
    (before,) = world.timers(job_id)
    for payload in ({"v": 2}, {"v": 3}):
        order = {"type": "python", "handler": "a.b", "schedule": {"every": 600}, "payload": payload}
        world.one(event("update", name="nightly", **order))
    (after,) = world.timers(job_id)
    assert (after["fire_at"], after["job_version"]) == (before["fire_at"], 3)


def test_a_cancel_gives_instants_that_had_come_due_their_verdict(world: World) -> None:
    world.job_id(nightly(schedule={"every": 1, "start": "2026-11-01T00:00:00Z"}))
    world.connection.execute(
        "update timers set fire_at = fire_at - interval '5 s', scheduled_for = fire_at - interval '5 s'"
    )
    (timer,) = world.rows("select scheduled_for from timers")
    world.one(event("cancel", name="nightly"))

    runs = world.rows("select scheduled_for, state, reason from runs order by 1")
    assert [run["scheduled_for"] - timer["scheduled_for"] for run in runs][:4] == [
        timedelta(seconds=n) for n in range(4)
    ]
    assert {(run["state"], run["reason"]) for run in runs} == {("skipped", "cancelled")}


def test_a_cancel_of_a_one_time_job_that_was_due_says_so_in_the_ledger(world: World) -> None:
    job_id = world.job_id(create(run_at="2100-01-01T00:00:00Z"))
    world.connection.execute("update timers set fire_at = now(), scheduled_for = now()")
    world.one(by_id("cancel", job_id))
    (run,) = world.rows("select state, reason from runs")
    assert (run["state"], run["reason"]) == ("skipped", "cancelled")


def test_an_update_settles_what_had_come_due_by_the_document_that_was_in_force(world: World) -> None:
    job_id = world.job_id(nightly(schedule={"every": 600}, payload={"v": 1}))
    world.connection.execute("update timers set scheduled_for = scheduled_for - interval '600 s'")
    world.connection.execute("update timers set fire_at = scheduled_for")
    (before,) = world.timers(job_id)
    order = event("update", name="nightly", type="python", handler="a.b", schedule={"cron": "0 5 * * *"})
    assert world.taken(order).queued
    run, (after,) = world.run(job_id), world.timers(job_id)
    assert (run["scheduled_for"], run["state"], run["job_version"]) == (before["scheduled_for"], "queued", 1)
    assert (after["scheduled_for"].hour, after["kind"], after["job_version"]) == (5, 1, 2)


def test_an_update_of_a_job_that_is_far_behind_waits_for_the_trigger(world: World) -> None:
    schedule = {"every": 1, "start": (datetime.now(UTC) - timedelta(days=1)).isoformat()}
    misfire = {"policy": "fire_all", "look_back_seconds": 86_400}
    job_id = world.job_id(nightly(schedule=schedule, misfire=misfire))
    world.connection.execute("update timers set scheduled_for = scheduled_for - interval '1 h'")
    world.connection.execute("update timers set fire_at = scheduled_for")
    order = event("update", name="nightly", type="python", handler="a.b", schedule={"cron": "0 5 * * *"})
    refused = world.one(order)
    assert (refused.reason, refused.job_id) == (Reason.CONFLICT, job_id)
    assert "has instants that came due before this update" in str(refused.refused)
    assert (world.job(job_id)["version"], world.rows("select from runs")) == (1, [])


def test_update_keeps_the_version_of_runs_and_their_retries(world: World) -> None:
    job_id = world.job_id(nightly(overlap="allow", payload={"v": 1}))
    world.one(event("trigger", name="nightly"))
    world.end(world.start(job_id), RunState.RETRYING)
    world.one(event("trigger", name="nightly"))
    world.one(
        event(
            "update", name="nightly", type="python", handler="new.one", schedule="0 4 * * *", overlap="allow"
        )
    )

    assert {run["job_version"] for run in world.rows("select job_version from runs")} == {1}
    assert sorted(timer["kind"] for timer in world.timers(job_id)) == [1, 2]
    run = world.start(job_id)
    assert (run.job_version, run.handler) == (1, "tests.noop")
    assert run.work is not None
    assert orjson.loads(run.work)["payload"] == {"v": 1}


def test_update_moves_a_one_time_job_that_is_named_by_its_id(world: World) -> None:
    job_id = world.job_id(create(run_at=LATER, name="mail"))
    world.one(
        event("update", job_id=str(job_id), type="python", handler="a.b", run_at="2101-01-01T00:00:00Z")
    )
    (timer,) = world.timers(job_id)
    assert (timer["fire_at"], timer["kind"], timer["job_version"]) == (datetime(2101, 1, 1, tzinfo=UTC), 0, 2)
    assert world.job(job_id)["name"] == "mail"


def test_update_of_a_paused_job_leaves_it_paused_and_planned(world: World) -> None:
    job_id = world.job_id(create(run_at=LATER))
    world.take(
        by_id("pause", job_id),
        event("update", job_id=str(job_id), type="python", handler="a.b", run_at=LATER),
    )
    assert world.job(job_id)["state"] == "paused"
    assert [timer["kind"] for timer in world.timers(job_id)] == [1]


def test_update_repairs_a_broken_job(world: World) -> None:
    job_id = world.job_id(nightly())
    world.connection.execute("update jobs set state = 'broken', state_reason = 'no such zone'")
    world.connection.execute("delete from timers")
    assert world.one(event("pause", name="nightly")).reason is Reason.CONFLICT
    world.one(event("update", name="nightly", type="python", handler="a.b", schedule="0 5 * * *"))
    assert (world.job(job_id)["state"], world.job(job_id)["state_reason"]) == ("active", None)
    assert len(world.timers(job_id)) == 1


def test_an_update_that_forgot_the_schedule_does_not_run_the_job_now(world: World) -> None:
    job_id = world.job_id(nightly())
    refused = world.one(event("update", name="nightly", type="python", handler="a.b"))
    assert refused.refused is not None
    assert (refused.reason, refused.refused.errors[0].pointer) == (Reason.INVALID, "/schedule")
    assert world.job(job_id)["version"] == 1
    assert world.rows("select from runs") == []


def test_an_update_to_a_taken_name_or_an_unknown_pool_changes_nothing(world: World) -> None:
    job_id = world.job_id(nightly("a"))
    world.one(nightly("b"))
    document = {"type": "python", "handler": "a.b", "schedule": "0 1 * * *"}
    taken = world.one(event("update", job_id=str(job_id), name="b", **document))
    assert (taken.reason, str(taken.refused).startswith("/name")) == (Reason.CONFLICT, True)
    assert world.one(event("update", name="a", pool="gpu", **document)).reason is Reason.UNKNOWN_POOL
    assert (world.job(job_id)["name"], world.job(job_id)["version"]) == ("a", 1)
    assert len(world.timers(job_id)) == 1


# -- trigger -------------------------------------------------------------------------------------------


def test_trigger_runs_a_job_once_beside_its_schedule(world: World) -> None:
    job_id = world.job_id(nightly(overlap="allow"))
    order = event("trigger", name="nightly")
    taken = world.taken(order)
    run = world.run(job_id)
    assert taken.queued
    assert taken.results[0].run_id == run["id"]
    assert order.event is not None
    assert (run["state"], run["origin"], run["request_id"]) == ("queued", "manual", order.event.key.hex())
    assert run["scheduled_for"] == taken.now
    assert len(world.outbox(run["id"])) == 1
    assert len(world.timers(job_id)) == 1
    assert world.one(order).status is Status.DUPLICATE


def test_trigger_is_skipped_while_a_run_of_the_job_is_unfinished(world: World) -> None:
    job_id = world.job_id(nightly())
    first = world.one(event("trigger", name="nightly"))
    assert world.row("select run_id, key from slots") == {"run_id": first.run_id, "key": job_id}
    second = world.one(event("trigger", name="nightly"))
    run = world.row("select * from runs where id = %s", second.run_id)
    assert (run["state"], run["reason"]) == ("skipped", "overlap")
    told = world.row("select value from outbox where topic = 't.lifecycle'")
    assert orjson.loads(told["value"])["data"]["outcomes"][0]["reason"] == "overlap"

    world.end(world.start(job_id))
    third = world.one(event("trigger", name="nightly"))
    assert world.row("select state from runs where id = %s", third.run_id)["state"] == "queued"


def test_trigger_of_a_paused_job_waits_for_its_resume(world: World) -> None:
    job_id = world.job_id(nightly())
    world.take(event("pause", name="nightly"), event("trigger", name="nightly"))
    run = world.run(job_id)
    assert (run["state"], run["reason"]) == ("waiting", "paused")
    assert world.outbox(run["id"]) == []
    world.one(event("resume", name="nightly"))
    assert (world.run(job_id)["state"], len(world.outbox(run["id"]))) == ("queued", 1)


# -- who is meant, and when ----------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["cancel", "pause", "resume", "trigger"])
def test_an_order_about_no_job_is_refused_with_what_was_looked_for(world: World, kind: str) -> None:
    world.one(create(name="one-time", run_at=LATER))
    for request in (event(kind, name="one-time"), by_id(kind, uuid7()), by_id(kind, uuid4())):
        refused = world.one(request)
        assert refused.reason is Reason.NOT_FOUND
        assert refused.refused is not None
        assert refused.refused.errors[0].pointer in ("/name", "/job_id")


def test_of_orders_with_a_sequence_the_newest_wins_whatever_came_last(world: World) -> None:
    job_id = world.job_id(nightly(sequence=1))
    assert world.one(event("pause", name="nightly", sequence=5)).status is Status.ACCEPTED
    late = world.one(event("resume", name="nightly", sequence=4))
    assert (late.status, late.job_id) == (Status.STALE, job_id)
    update = event("update", name="nightly", type="python", handler="a.b", schedule="0 1 * * *", sequence=5)
    assert world.one(update).status is Status.STALE
    assert (world.job(job_id)["state"], world.job(job_id)["event_sequence"]) == ("paused", 5)

    assert world.one(event("trigger", name="nightly", sequence=6)).status is Status.ACCEPTED
    assert world.one(event("cancel", name="nightly", sequence=6)).status is Status.STALE
    assert world.one(event("resume", name="nightly")).status is Status.ACCEPTED, (
        "without a sequence, arrival decides"
    )
    assert (world.job(job_id)["state"], world.job(job_id)["event_sequence"]) == ("active", 6)


def test_an_order_that_fails_in_the_database_fails_alone(world: World) -> None:
    world.take(nightly("a"), nightly("b"))
    world.connection.execute(
        "alter table jobs add constraint never_paused check (state_reason is distinct from 'bad')"
    )
    results = world.take(
        event("pause", name="a", reason="bad"), event("pause", name="b", reason="good"), create(run_at=LATER)
    )
    assert [r.status for r in results] == [Status.REJECTED, Status.ACCEPTED, Status.ACCEPTED]
    states = {
        row["name"]: row["state"] for row in world.rows("select name, state from jobs where name is not null")
    }
    assert states == {"a": "active", "b": "paused"}


# -- beside the trigger --------------------------------------------------------------------------------


def test_a_claim_waits_for_no_order_and_takes_nothing_of_a_paused_job(world: World) -> None:
    late = (datetime.now(UTC) - timedelta(minutes=1)).isoformat()
    job_id = world.job_id(create(run_at=late))
    world.one(by_id("pause", job_id))
    result = claims.claim_once(world.connection, Lane.NORMAL, ALL_SHARDS, 100)
    assert result.claimed == 0
    world.one(by_id("cancel", job_id))
    assert world.rows("select from timers") == []


def test_a_retry_that_fires_after_a_pause_or_a_cancel_queues_nothing(world: World) -> None:
    job_id = retrying(world)
    (timer,) = world.timers(job_id)
    world.one(by_id("pause", job_id))
    # A claim had this timer in hand when the job was paused, so the pause left it to it.
    world.connection.execute(
        """insert into timers (fire_at, scheduled_for, job_id, run_id, job_version, shard, lane, kind, namespace, pool)
           values (now() - interval '1 s', %(scheduled_for)s, %(job_id)s, %(run_id)s, 1, %(shard)s, 1, 2, 'default', 'default')""",
        timer,
    )
    assert claims.claim_retries(world.connection, Lane.NORMAL, ALL_SHARDS, 100).queued == 0
    assert world.run(job_id)["state"] == "waiting"
