"""Creates: what is written, what is recognised, what is refused."""

from __future__ import annotations

import threading
import time
from collections import Counter
from datetime import UTC, datetime, timedelta

import pytest
from msgspec import structs
from tests.integration.intake.world import LATER, World, create, event, nightly, open_world

from noonmark.store.jobs.submit import FactCache, Reason, Status

pytestmark = pytest.mark.postgres


def test_a_one_time_job_waits_in_a_timer_that_sql_alone_can_claim(world: World) -> None:
    job_id = world.job_id(create(run_at=LATER, payload={"user": 42}, max_retries=1))

    job, (timer,) = world.job(job_id), world.timers(job_id)
    assert (job["state"], job["version"], job["unique_name"]) == ("active", 1, False)
    assert job["schedule"] == {"run_at": LATER}
    assert job["policy"] is None
    assert job["work"]["payload"] == {"user": 42}
    assert job["work"]["retry"]["max_retries"] == 1
    assert (timer["kind"], timer["shard"], timer["job_version"]) == (0, job["shard"], 1)
    assert timer["fire_at"] == timer["scheduled_for"] == datetime(2100, 1, 1, tzinfo=UTC)


def test_a_recurring_job_is_planned_and_known_by_its_name(world: World) -> None:
    job_id = world.job_id(nightly())

    job, (timer,) = world.job(job_id), world.timers(job_id)
    assert job["unique_name"]
    assert job["policy"] == {"overlap": "skip"}
    assert timer["kind"] == 1
    assert (timer["fire_at"].hour, timer["fire_at"].minute) == (3, 0)
    assert timer["fire_at"] > datetime.now(UTC) - timedelta(minutes=1)


def test_a_job_due_on_arrival_takes_the_short_way_in_one_transaction(world: World) -> None:
    taken = world.taken(create(start_deadline_seconds=60))
    job_id = taken.results[0].job_id
    assert job_id is not None

    run = world.run(job_id)
    assert (run["state"], run["origin"], run["fence"], run["request_id"]) == ("queued", "schedule", 1, "")
    assert run["scheduled_for"] == run["queued_at"] == taken.now
    assert run["start_by"] == taken.now + timedelta(seconds=60)
    assert world.timers(job_id) == []
    (message,) = world.outbox(run["id"])
    assert (message["slice"], message["fence"], message["scheduled_for"]) == (run["shard"], 1, taken.now)
    assert taken.queued
    # What one savepoint takes back, was written in one transaction.
    count = (
        "select count(*) from jobs union all select count(*) from runs union all select count(*) from outbox"
    )
    with world.connection.transaction(force_rollback=True):
        world.taken(create())
        assert [row["count"] for row in world.rows(count)] == [2, 2, 2]
    assert [row["count"] for row in world.rows(count)] == [1, 1, 1]


@pytest.mark.parametrize(
    ("rule", "kind"),
    [
        ({"run_at": LATER}, 0),
        ({"run_at": LATER, "misfire": "fire_all"}, 0),
        ({"run_at": LATER, "misfire": "skip"}, 1),
        ({"run_at": LATER, "start_deadline_seconds": 5}, 1),
        ({"run_at": LATER, "overlap": "skip"}, 1),
        ({"overlap": "skip"}, 1),
    ],
)
def test_a_rule_that_could_hold_a_run_back_needs_planning(
    world: World, rule: dict[str, object], kind: int
) -> None:
    (timer,) = world.timers(world.job_id(create(**rule)))
    assert timer["kind"] == kind


def test_a_run_at_in_the_past_is_a_late_instant_and_goes_through_the_timers(world: World) -> None:
    late = datetime.now(UTC) - timedelta(hours=2)
    taken = world.taken(create(run_at=late.isoformat()))
    job_id = taken.results[0].job_id
    assert job_id is not None
    (timer,) = world.timers(job_id)
    assert timer["fire_at"] == late
    assert taken.due_soon
    assert not taken.queued
    assert world.rows("select from runs") == []


def test_an_event_seen_before_makes_no_second_job(world: World) -> None:
    first = create(event_id="a", run_at=LATER)
    assert [r.status for r in world.take(first, first)] == [Status.ACCEPTED, Status.DUPLICATE]
    other = create(event_id="b", run_at=LATER)
    assert [r.status for r in world.take(other, first)] == [Status.ACCEPTED, Status.DUPLICATE]
    elsewhere = create(event_id="a", source="/elsewhere", run_at=LATER)
    assert world.one(elsewhere).status is Status.ACCEPTED
    assert world.row("select count(*) from jobs")["count"] == 3


def test_an_idempotency_key_names_the_job_made_before(world: World) -> None:
    job_id = world.job_id(create(idempotency_key="order-7", run_at=LATER))
    again, twin, other = world.take(
        create(idempotency_key="order-7", run_at=LATER),
        create(idempotency_key="order-7", run_at=LATER),
        create(idempotency_key="order-7", namespace="else", run_at=LATER),
    )
    assert (again.status, again.job_id) == (Status.DUPLICATE, job_id)
    assert (twin.status, twin.job_id) == (Status.DUPLICATE, job_id)
    assert other.status is Status.ACCEPTED
    assert len(world.rows("select from timers")) == 2


def test_two_creates_with_one_key_in_one_batch_make_one_job(world: World) -> None:
    first, second = world.take(create(idempotency_key="k"), create(idempotency_key="k"))
    assert (first.status, second.status) == (Status.ACCEPTED, Status.DUPLICATE)
    assert second.job_id == first.job_id
    assert len(world.rows("select from runs")) == 1


def test_a_key_that_another_process_is_writing_is_waited_for(world: World) -> None:
    results = []
    with open_world(world.url) as rival:
        with world.connection.transaction():
            world.take(create(idempotency_key="k", run_at=LATER))
            thread = threading.Thread(
                target=lambda: results.append(rival.one(create(idempotency_key="k", run_at=LATER)))
            )
            thread.start()
            _wait_for_a_blocked_session(world)
        thread.join(20)
    assert results[0].status is Status.DUPLICATE


def test_the_name_of_a_recurring_job_is_taken_once_per_namespace(world: World) -> None:
    job_id = world.job_id(nightly())
    second, elsewhere = world.take(nightly(), nightly(namespace="else"))
    assert (second.status, second.reason, second.job_id) == (Status.REJECTED, Reason.CONFLICT, job_id)
    assert second.refused is not None
    (problem,) = second.refused.errors
    assert problem.pointer == "/name"
    assert "an update of that job" in problem.expected
    assert elsewhere.status is Status.ACCEPTED


def test_one_time_jobs_may_share_a_name(world: World) -> None:
    results = world.take(create(name="mail", run_at=LATER), create(name="mail"), nightly("mail"))
    assert [r.status for r in results] == [Status.ACCEPTED] * 3


def test_a_create_that_is_older_than_the_job_is_stale(world: World) -> None:
    job_id = world.job_id(nightly(sequence=5))
    older, same, newer = world.take(nightly(sequence=4), nightly(sequence=5), nightly(sequence=6))
    assert (older.status, older.job_id) == (Status.STALE, job_id)
    assert same.status is Status.STALE
    assert (newer.status, newer.reason) == (Status.REJECTED, Reason.CONFLICT)


def test_a_cancel_that_came_first_stops_an_older_create_only(world: World) -> None:
    cancelled = world.one(event("cancel", name="nightly", sequence=7))
    assert (cancelled.status, cancelled.job_id) == (Status.ACCEPTED, None)

    assert world.one(nightly(sequence=6)).status is Status.STALE
    assert world.one(event("cancel", name="nightly", sequence=3)).status is Status.STALE
    assert world.one(nightly(sequence=8)).status is Status.ACCEPTED


def test_a_cancelled_name_is_free_but_not_for_what_came_before_the_cancel(world: World) -> None:
    world.take(nightly(sequence=1), event("cancel", name="nightly", sequence=3))
    older, newer = world.take(nightly(sequence=2), nightly(sequence=4))
    assert (older.status, newer.status) == (Status.STALE, Status.ACCEPTED)


def test_a_cancel_and_an_older_create_in_two_processes_do_not_miss_each_other(world: World) -> None:
    results = []
    with open_world(world.url) as rival:
        with world.connection.transaction():
            world.take(nightly(sequence=1))
            thread = threading.Thread(
                target=lambda: results.append(rival.one(event("cancel", name="nightly", sequence=2)))
            )
            thread.start()
            _wait_for_a_blocked_session(world)
        thread.join(20)
    assert results[0].status is Status.ACCEPTED
    assert world.row("select state from jobs")["state"] == "cancelled"
    assert world.rows("select from timers") == []


def test_an_unknown_pool_is_named_with_the_known_ones_until_it_is_made(world: World) -> None:
    wanted = create(pool="gpu", run_at=LATER, event_id="again")
    refused = world.one(wanted)
    assert refused.reason is Reason.UNKNOWN_POOL
    assert refused.refused is not None
    assert "'gpu'" in refused.refused.errors[0].message
    assert "default" in refused.refused.errors[0].expected

    world.connection.execute("insert into pools (name) values ('gpu')")
    assert world.one(wanted).status is Status.ACCEPTED, "a refused event is not remembered"


def test_one_bad_job_among_a_thousand_fails_alone(world: World) -> None:
    world.connection.execute("alter table jobs add constraint no_bad_names check (name not like 'bad%')")
    names = [f"good-{i}" for i in range(1000)]
    names[617] = "bad-one"
    results = world.take(*[create(name=name) for name in names])

    assert Counter(r.status for r in results) == {Status.ACCEPTED: 999, Status.REJECTED: 1}
    assert results[617].reason is Reason.INVALID
    for table in ("jobs", "runs", "outbox"):
        assert world.row(f"select count(*) from {table}")["count"] == 999


@pytest.mark.parametrize("expected", [False, True])
def test_what_is_there_already_is_found_whether_a_conflict_was_expected_or_not(
    world: World, expected: bool
) -> None:
    once = event("create", event_id="e-1", type="python", handler="tests.noop", idempotency_key="key")
    accepted = [world.one(once), world.one(nightly())]
    world.known = FactCache()
    if expected:
        world.known.note_conflict("insert_inbox")
        world.known.note_conflict("insert_jobs")

    results = world.take(create(), once, create(idempotency_key="key"), nightly(), create(), nightly("other"))

    assert [each.status for each in accepted] == [Status.ACCEPTED, Status.ACCEPTED]
    assert [each.status for each in results] == [
        Status.ACCEPTED,
        Status.DUPLICATE,
        Status.DUPLICATE,
        Status.REJECTED,
        Status.ACCEPTED,
        Status.ACCEPTED,
    ]
    assert results[2].job_id == accepted[0].job_id
    assert results[3].reason is Reason.CONFLICT
    for table, count in (("jobs", 5), ("inbox", 6), ("timers", 2), ("runs", 3)):
        assert world.row(f"select count(*) from {table}")["count"] == count, table


def test_a_name_with_half_a_surrogate_pair_that_slipped_through_fails_alone(world: World) -> None:
    sound, unfit = create(name="sound"), create(name="unfit")
    spec = unfit.submission.spec
    structs.force_setattr(spec, "name", "half \ud800")
    nul = create(name="nul")
    structs.force_setattr(nul.submission.spec, "name", "nul \x00")
    results = world.take(sound, unfit, nul)
    assert [r.status for r in results] == [Status.ACCEPTED, Status.REJECTED, Status.REJECTED]


def test_the_order_of_events_of_one_job_is_kept_within_a_batch(world: World) -> None:
    results = world.take(
        nightly(),
        create(name="other", run_at=LATER),
        event("pause", name="nightly"),
        nightly("second"),
        event("cancel", name="nightly"),
        nightly(),
    )
    assert [r.status for r in results] == [Status.ACCEPTED] * 6
    states = {
        str(row["id"]): row["state"]
        for row in world.rows("select id, state from jobs where name = 'nightly'")
    }
    assert states == {str(results[0].job_id): "cancelled", str(results[5].job_id): "active"}


def test_a_day_that_the_ledger_lacks_is_made_for_a_job_due_now(world: World) -> None:
    world.connection.execute(
        "create or replace function noonmark_now() returns timestamptz language sql stable"
        " as $$select timestamptz '2099-07-01 12:00+00' + (statement_timestamp() - transaction_timestamp())$$"
    )
    first, second = world.one(create()), world.one(create())
    assert (first.status, second.status) == (Status.ACCEPTED, Status.ACCEPTED)
    days = world.rows("select tableoid::regclass::text as day from runs")
    assert [row["day"] for row in days] == ["runs_20990701"] * 2


def _wait_for_a_blocked_session(world: World) -> None:
    """Wait until another session of this database waits for a lock."""
    deadline = time.monotonic() + 20
    query = "select from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock'"
    with open_world(world.url) as watcher:
        while not watcher.rows(query):
            assert time.monotonic() < deadline, "nobody waits for a lock"
