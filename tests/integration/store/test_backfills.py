"""Backfills: which past instants run after all, step by step, whatever happens in between."""

import time
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from uuid import UUID

import psycopg
import pytest
from tests.integration.store.world import EVERY_SHARD, SHARDS, TOPICS

from noonmark.core.ids import shard_of, uuid7
from noonmark.core.planning.backfill import BackfillError, BackfillRange
from noonmark.core.states import BackfillMode, BackfillState, Lane, Origin, TimerKind
from noonmark.core.zones.zones import zone_data_version
from noonmark.store.backfills import requests as backfill_requests
from noonmark.store.backfills import steps as backfill_steps
from noonmark.store.backfills.steps import StepLimits
from noonmark.store.documents.schedules import ScheduleTexts
from noonmark.store.views import backfills as backfill_views
from noonmark.store.views import paging

HOUR = timedelta(hours=1)
MINUTE = timedelta(minutes=1)
ALLOW = {"overlap": "allow"}
SKIP = {"overlap": "skip"}


def text(at: datetime) -> str:
    return at.astimezone(UTC).isoformat().replace("+00:00", "Z")


@pytest.fixture
def begin(world) -> datetime:
    """A full hour two days ago: the instants of the tests lie after it."""
    at = world.now().astimezone(UTC).replace(minute=0, second=0, microsecond=0) - timedelta(days=2)
    for ahead in range(3):
        world.db.execute("select noonmark_make_day(%s)", [(at + timedelta(days=ahead)).date()])
    return at


def hourly(world, begin, *, policy=ALLOW, state="active", timer=True, every=HOUR) -> UUID:
    """A job with an instant each hour from `begin` on; its timer stands at the next one in the future."""
    schedule = {"every": every.total_seconds(), "anchor": text(begin)}
    job_id = world.job(schedule=schedule, policy=policy, state=state, recurring=True)
    if timer:
        ahead = begin + ((world.now() - begin) // every + 1) * every
        world.timer(job_id, ahead, kind=TimerKind.PLANNED)
    return job_id


def put(world, job_id, at, state, **columns):
    return world.put_run(state, job_id=job_id, scheduled_for=at, **columns)


def order(world, job_id, begin, hours=5, mode=BackfillMode.MISSING, **more):
    asked = BackfillRange(begin, begin + hours * HOUR)
    return backfill_requests.plan(world.db, job_id, asked, mode, **more)


def start(world, job_id, begin, hours=5, mode=BackfillMode.MISSING) -> UUID:
    return backfill_requests.start(world.db, order(world, job_id, begin, hours, mode), requested_by="me")


def step(world, backfill_id, *, connection=None, texts=None, **limits):
    held_back = limits.pop("held_back", False)
    return backfill_steps.step(
        connection or world.db,
        backfill_id,
        texts or ScheduleTexts(),
        StepLimits(**limits),
        held_back=held_back,
    )


def work_off(world, backfill_id, **limits):
    """Step until it is done or waits; return the last step."""
    for _ in range(200):
        done = step(world, backfill_id, **limits)
        if done.state is not BackfillState.RUNNING or (done.waits_for and not done.examined):
            return done
    raise AssertionError(f"never done: {done}")


def made(world, backfill_id) -> list[datetime]:
    return [
        at.astimezone(UTC)
        for at in world.column(
            "select scheduled_for from runs where origin = 'backfill' and request_id = %s order by 1",
            backfill_id.hex,
        )
    ]


def row(world, backfill_id):
    (found,) = world.rows("select * from backfills where id = %s", backfill_id)
    return found


def test_a_backfill_queues_each_missing_instant_once_in_the_low_lane_under_its_own_key(world, begin):
    job_id = hourly(world, begin)

    backfill_id = start(world, job_id, begin)
    done = work_off(world, backfill_id)

    assert (done.state, done.queued) == (BackfillState.DONE, 5)
    assert made(world, backfill_id) == [begin + n * HOUR for n in range(5)]
    for run in world.runs_of(job_id):
        assert (run["state"], run["lane"], run["fence"]) == ("queued", Lane.LOW, 1)
        assert (run["origin"], run["request_id"]) == (Origin.BACKFILL, backfill_id.hex)
        assert (run["start_by"], run["holds_slot"], run["job_version"]) == (None, False, 1)
        (message,) = world.messages(run["id"])
        assert (message["lane"], message["slice"]) == (Lane.LOW, shard_of(job_id, SHARDS))
    found = row(world, backfill_id)
    assert (found["state"], found["instants"], found["queued"], found["total"]) == ("done", 5, 5, 5)
    assert found["next_at"] is None
    assert found["finished_at"] is not None
    assert found["requested_by"] == "me"


# Of five hours: what the ledger holds of each, and which of them each mode runs.
LEDGER = [
    "succeeded",
    "skipped",
    None,
    "dead",
    "queued",
    "unknown",
    "cancelled",
    "discarded",
    "running",
    "waiting",
]


@pytest.mark.parametrize(
    ("mode", "expected"),
    [
        (BackfillMode.MISSING, [1, 2]),
        (BackfillMode.MISSING_AND_FAILED, [1, 2, 3, 5, 6]),
        (BackfillMode.ALL, list(range(10))),
    ],
)
def test_each_mode_chooses_by_what_became_of_an_instant(world, begin, mode, expected):
    job_id = hourly(world, begin)
    for n, state in enumerate(LEDGER):
        if state is not None:
            put(world, job_id, begin + n * HOUR, state)

    planned = order(world, job_id, begin, len(LEDGER), mode)
    backfill_id = backfill_requests.start(world.db, planned)
    done = work_off(world, backfill_id)

    assert made(world, backfill_id) == [begin + n * HOUR for n in expected]
    assert list(planned.listed) == made(world, backfill_id)
    assert (planned.total, planned.to_run) == (10, len(expected))
    assert done.state is BackfillState.DONE


def test_instants_that_a_range_of_skipped_ones_covers_are_missing(world, begin):
    job_id = hourly(world, begin)
    put(world, job_id, begin, "skipped", reason="look_back", last_scheduled_for=begin + 9 * HOUR, instants=10)
    put(world, job_id, begin + 2 * HOUR, "succeeded", origin="event", request_id="x")

    backfill_id = start(world, job_id, begin, 10)
    work_off(world, backfill_id)

    assert made(world, backfill_id) == [begin + n * HOUR for n in range(10) if n != 2]


def test_the_newest_run_of_an_instant_decides_and_one_that_was_skipped_says_nothing(world, begin):
    job_id = hourly(world, begin)
    put(world, job_id, begin, "dead")
    put(world, job_id, begin, "succeeded", origin="backfill", request_id="earlier")
    put(world, job_id, begin + HOUR, "succeeded")
    put(world, job_id, begin + HOUR, "dead", origin="backfill", request_id="earlier")
    put(world, job_id, begin + 2 * HOUR, "succeeded")
    put(world, job_id, begin + 2 * HOUR, "skipped", reason="overlap", origin="manual", request_id="m")

    backfill_id = start(world, job_id, begin, 3, BackfillMode.MISSING_AND_FAILED)
    work_off(world, backfill_id)

    assert made(world, backfill_id) == [begin + HOUR]


def test_a_step_that_never_committed_leaves_nothing_and_one_that_is_done_twice_adds_nothing(world, begin):
    job_id = hourly(world, begin)
    backfill_id = start(world, job_id, begin, mode=BackfillMode.ALL)

    other = world.another()
    with other.transaction(force_rollback=True):
        assert step(world, backfill_id, connection=other, queue=2).queued == 2
    assert made(world, backfill_id) == []
    assert row(world, backfill_id)["next_at"] == begin

    assert step(world, backfill_id, queue=2).queued == 2
    # As if the place had not been noted: the run key knows what is there.
    world.db.execute("update backfills set next_at = from_at, ended_to = from_at")
    repeated = step(world, backfill_id, queue=2)

    assert (repeated.queued, repeated.examined) == (0, 2)
    assert work_off(world, backfill_id).state is BackfillState.DONE
    assert made(world, backfill_id) == [begin + n * HOUR for n in range(5)]
    assert world.count("outbox", "run_id is not null") == 5


def test_two_triggers_never_work_on_one_backfill_at_once(world, begin):
    backfill_id = start(world, hourly(world, begin), begin)
    other = world.another()

    with other.transaction():
        assert step(world, backfill_id, connection=other, queue=1).queued == 1
        meanwhile = step(world, backfill_id)

    assert (meanwhile.queued, meanwhile.examined, meanwhile.soon) == (0, 0, True)


def test_a_step_takes_a_bite_and_no_more_runs_than_may_be_unfinished(world, begin):
    job_id = hourly(world, begin)
    backfill_id = start(world, job_id, begin, 8)

    assert step(world, backfill_id, queue=3, unfinished=4).queued == 3
    assert step(world, backfill_id, queue=3, unfinished=4).queued == 1
    waiting = step(world, backfill_id, queue=3, unfinished=4)
    assert waiting.queued == 0
    assert waiting.waits_for == "4 of its runs are unfinished, which is the limit"
    assert row(world, backfill_id)["state_reason"] == waiting.waits_for

    world.db.execute(
        "update runs set state = 'dead', finished_at = now() where scheduled_for < %s", [begin + 2 * HOUR]
    )
    assert step(world, backfill_id, queue=3, unfinished=4).queued == 2
    assert row(world, backfill_id)["state_reason"] is None
    assert row(world, backfill_id)["ended_to"] == begin + 2 * HOUR

    world.db.execute("update runs set state = 'succeeded', finished_at = now()")
    assert work_off(world, backfill_id).state is BackfillState.DONE
    assert len(made(world, backfill_id)) == 8


def test_nothing_is_queued_while_the_relay_is_behind(world, begin):
    backfill_id = start(world, hourly(world, begin), begin)

    held = step(world, backfill_id, held_back=True)

    assert (held.queued, held.waits_for) == (0, "the relay of the low lane is behind")
    assert step(world, backfill_id).queued == 5


def test_days_of_the_ledger_that_are_not_there_are_made(world, begin):
    old = begin - timedelta(days=12)
    job_id = hourly(world, old, every=timedelta(days=1))

    backfill_id = start(world, job_id, old, 24 * 5)
    work_off(world, backfill_id)

    assert made(world, backfill_id) == [old + timedelta(days=n) for n in range(5)]


def test_runs_of_a_job_that_must_not_overlap_go_one_after_the_other(world, begin):
    job_id = hourly(world, begin, policy=SKIP)
    backfill_id = start(world, job_id, begin, 3)

    first = step(world, backfill_id)
    assert first.queued == 1
    blocked = step(world, backfill_id)
    assert (blocked.queued, blocked.soon) == (0, True)
    assert blocked.waits_for == "a run of its job is unfinished, and its runs may not overlap"
    (run,) = world.runs_of(job_id)
    assert run["holds_slot"]
    assert world.column("select run_id from slots where key = %s", job_id) == [run["id"]]

    states = []
    for _ in range(2):
        world.db.execute("delete from slots")
        world.db.execute("update runs set state = 'succeeded', finished_at = now()")
        done = step(world, backfill_id)
        assert done.queued == 1
        states.append(done.state)
    assert states == [BackfillState.RUNNING, BackfillState.DONE]


def test_a_slot_is_not_kept_for_a_run_that_was_there_already(world, begin):
    job_id = hourly(world, begin, policy=SKIP)
    backfill_id = start(world, job_id, begin, 1, BackfillMode.ALL)
    put(world, job_id, begin, "succeeded", origin="backfill", request_id=backfill_id.hex)

    assert work_off(world, backfill_id).state is BackfillState.DONE
    assert world.count("slots") == 0


def test_the_slot_is_left_to_an_instant_of_the_schedule_that_is_due(world, begin):
    job_id = hourly(world, begin, policy=SKIP)
    backfill_id = start(world, job_id, begin, 3)
    world.db.execute("update timers set fire_at = now() + interval '3 seconds' where job_id = %s", [job_id])

    waiting = step(world, backfill_id)

    assert (waiting.queued, waiting.soon) == (0, True)
    assert waiting.waits_for == "an instant of the schedule is due, and its runs may not overlap"


def test_instants_that_the_trigger_has_still_to_plan_are_waited_for(world, begin):
    job_id = hourly(world, begin, timer=False)
    world.timer(job_id, begin + 3 * HOUR, kind=TimerKind.PLANNED)
    backfill_id = start(world, job_id, begin, 6)

    assert step(world, backfill_id).queued == 3
    waiting = step(world, backfill_id)
    assert waiting.waits_for == (
        f"the schedule is planned only up to {text(begin + 3 * HOUR)}: the backfill waits for it"
    )
    # The trigger comes back, runs the third and skips the rest of what it had missed.
    put(world, job_id, begin + 3 * HOUR, "queued")
    put(world, job_id, begin + 4 * HOUR, "skipped", reason="coalesced")
    world.db.execute(
        "update timers set scheduled_for = now() + interval '1 hour', fire_at = now() + interval '1 hour'"
    )

    assert work_off(world, backfill_id).state is BackfillState.DONE
    assert made(world, backfill_id) == [begin + n * HOUR for n in (0, 1, 2, 4, 5)]


def test_a_paused_job_is_waited_for_and_a_cancelled_one_ends_the_backfill(world, begin):
    job_id = hourly(world, begin)
    backfill_id = start(world, job_id, begin)

    world.db.execute("update jobs set state = 'paused'")
    assert step(world, backfill_id).waits_for == "its job is paused"
    before = row(world, backfill_id)
    assert (before["state"], before["state_reason"]) == ("running", "its job is paused")
    assert step(world, backfill_id).waits_for == "its job is paused"
    assert row(world, backfill_id) == before, "waiting on writes nothing"

    world.db.execute("update jobs set state = 'active'")
    assert step(world, backfill_id, queue=2).queued == 2
    assert row(world, backfill_id)["state_reason"] is None

    world.db.execute("update jobs set state = 'cancelled'")
    assert step(world, backfill_id).state is BackfillState.CANCELLED
    found = row(world, backfill_id)
    assert (found["state"], found["state_reason"], found["queued"]) == (
        "cancelled",
        "its job was cancelled",
        2,
    )
    assert backfill_steps.running(world.db, EVERY_SHARD) == []


def test_an_edit_of_the_job_changes_nothing_of_a_backfill_under_way(world, begin):
    job_id = hourly(world, begin)
    backfill_id = start(world, job_id, begin, 3)

    world.db.execute(
        "update jobs set version = 2, pool = 'other', schedule = %s",
        [psycopg.types.json.Jsonb({"every": 60, "anchor": text(begin)})],
    )
    work_off(world, backfill_id)

    assert made(world, backfill_id) == [begin + n * HOUR for n in range(3)]
    assert {(run["job_version"], run["pool"]) for run in world.runs_of(job_id)} == {(1, "default")}


def test_cancel_ends_a_backfill_and_with_its_runs_what_is_unfinished(world, begin):
    job_id = hourly(world, begin)
    backfill_id = start(world, job_id, begin)
    step(world, backfill_id, queue=3)
    worker = world.worker()
    first = world.runs_of(job_id)[0]["id"]
    world.start(worker, [first])
    scheduled = put(world, job_id, begin + HOUR, "queued")

    assert backfill_requests.cancel(world.db, backfill_id, reason="not meant") == (True, 0, 0)
    assert backfill_requests.cancel(world.db, backfill_id) == (False, 0, 0)
    done = backfill_requests.cancel(world.db, backfill_id, runs_in=(TOPICS, SHARDS))

    assert done == (False, 2, 1)
    states = [run["state"] for run in world.runs_of(job_id) if run["origin"] == "backfill"]
    assert states == ["cancelling", "cancelled", "cancelled"]
    assert world.run(scheduled)["state"] == "queued"
    assert [one["state"] for one in world.told()] == ["cancelled", "cancelled"]
    assert row(world, backfill_id)["state_reason"] == "not meant"
    assert step(world, backfill_id).queued == 0
    with pytest.raises(BackfillError, match="there is no backfill"):
        backfill_requests.cancel(world.db, uuid7())


def test_a_range_below_the_ledgers_floor_is_refused_also_where_the_floor_rises_later(world, begin):
    job_id = hourly(world, begin)
    backfill_id = start(world, job_id, begin)
    step(world, backfill_id, queue=1)
    world.db.execute("update install set ledger_floor = %s", [begin + 2 * HOUR])

    with pytest.raises(BackfillError, match=r"ledger's floor.*begin there or later"):
        order(world, job_id, begin)
    done = step(world, backfill_id)

    assert done.state is BackfillState.FAILED
    assert "start another backfill from the floor" in row(world, backfill_id)["state_reason"]
    assert made(world, backfill_id) == [begin]


def test_what_cannot_be_backfilled_is_refused_with_what_is_right(world, begin):
    job_id = hourly(world, begin)

    with pytest.raises(BackfillError, match=r"in the future.*end there or earlier"):
        order(world, job_id, begin, 24 * 4)
    with pytest.raises(BackfillError, match=r"which is not after its beginning"):
        BackfillRange(begin, begin)
    with pytest.raises(BackfillError, match=r"the range holds 24 instants; one backfill takes at most 10"):
        order(world, job_id, begin, 24, most=10)
    with pytest.raises(BackfillError, match="is for recurring jobs"):
        order(world, world.job(schedule={"run_at": text(begin)}), begin)
    with pytest.raises(BackfillError, match="is for recurring jobs"):
        order(world, world.job(), begin)
    with pytest.raises(BackfillError, match="there is no job"):
        order(world, uuid7(), begin)
    with pytest.raises(BackfillError, match="is cancelled; a cancelled job runs no more"):
        order(world, hourly(world, begin, state="cancelled"), begin)
    with pytest.raises(BackfillError, match="is broken; correct its schedule"):
        order(world, hourly(world, begin, state="broken"), begin)


def test_a_second_backfill_of_the_same_instants_waits_until_the_first_is_done(world, begin):
    job_id = hourly(world, begin)
    first = start(world, job_id, begin, 4)

    with pytest.raises(BackfillError, match=f"backfill {first} .* is running"):
        start(world, job_id, begin + 3 * HOUR)
    start(world, job_id, begin + 4 * HOUR)
    work_off(world, first)
    again = start(world, job_id, begin, 4)

    assert (work_off(world, again).state, made(world, again)) == (BackfillState.DONE, [])


def test_a_job_that_was_edited_since_the_plan_was_shown_is_planned_anew(world, begin):
    job_id = hourly(world, begin)
    planned = order(world, job_id, begin)
    world.db.execute("update jobs set version = 2")

    with pytest.raises(BackfillError, match="check the plan again"):
        backfill_requests.start(world.db, planned)


def test_a_plan_lists_up_to_a_limit_and_counts_all(world, begin):
    job_id = hourly(world, begin)
    put(world, job_id, begin + HOUR, "succeeded")

    first = order(world, job_id, begin, 6, limit=2)
    second = order(world, job_id, begin, 6, limit=10)

    assert list(first.listed) == [begin, begin + 2 * HOUR]
    assert list(second.listed) == [begin + n * HOUR for n in (0, 2, 3, 4, 5)]
    assert (first.to_run, second.to_run, first.total) == (5, 5, 6)
    assert world.count("backfills") == world.count("runs", "origin = 'backfill'") == 0


def test_a_schedule_that_cannot_be_read_fails_its_backfill_alone(world, begin):
    job_id = hourly(world, begin)
    backfill_id = start(world, job_id, begin)
    world.db.execute("""update backfills set schedule = '{"cron": "nonsense"}'""")

    assert step(world, backfill_id).state is BackfillState.FAILED
    assert row(world, backfill_id)["state_reason"].startswith("cannot be planned: ")


# -- time zones ---------------------------------------------------------------------------------------------


@pytest.fixture
def new_york(world):
    """At 02:30 each day in New York, with the database's clock shortly after the change of March 2026."""
    world.turn_clock(datetime(2026, 3, 12, 12, tzinfo=UTC) - world.value("select now()"))
    world.db.execute("update install set ledger_floor = '2026-03-01T00:00Z'")
    world.db.execute("delete from zone_data")
    world.db.execute("insert into zone_data (version, active) values (%s, true)", [zone_data_version()])
    job_id = world.job(
        schedule={"cron": "30 2 * * *", "timezone": "America/New_York"}, policy=ALLOW, recurring=True
    )
    world.timer(job_id, datetime(2026, 3, 13, 6, 30, tzinfo=UTC), kind=TimerKind.ZONED)
    return job_id


MARCH = BackfillRange(datetime(2026, 3, 6, tzinfo=UTC), datetime(2026, 3, 11, tzinfo=UTC))


def test_wall_clock_schedules_are_backfilled_over_a_change_of_the_clocks(world, new_york):
    planned = backfill_requests.plan(world.db, new_york, MARCH, BackfillMode.MISSING)
    backfill_id = backfill_requests.start(world.db, planned)
    work_off(world, backfill_id)

    expected = [(6, 7, 30), (7, 7, 30), (8, 7, 0), (9, 6, 30), (10, 6, 30)]
    assert made(world, backfill_id) == [datetime(2026, 3, *at, tzinfo=UTC) for at in expected]
    assert list(planned.listed) == made(world, backfill_id)
    zone_data = world.value("select id from zone_data where active")
    assert {run["zone_data"] for run in world.runs_of(new_york)} == {zone_data}


def test_with_other_zone_data_than_the_installations_nothing_is_planned(world, new_york):
    backfill_id = backfill_requests.start(
        world.db, backfill_requests.plan(world.db, new_york, MARCH, BackfillMode.MISSING)
    )
    world.db.execute("update zone_data set version = '1999a'")

    waiting = step(world, backfill_id)
    with pytest.raises(BackfillError, match="the installation plans with 1999a"):
        backfill_requests.plan(world.db, new_york, MARCH, BackfillMode.MISSING)

    assert waiting.waits_for is not None
    assert "the installation plans with 1999a" in waiting.waits_for
    assert made(world, backfill_id) == []


def test_while_the_facts_of_time_are_being_changed_a_step_comes_back_later(world, begin):
    from noonmark.store.schedules.time_facts import change_time_facts  # noqa: PLC0415

    backfill_id = start(world, hourly(world, begin), begin)
    other = world.another()
    with other.transaction():
        change_time_facts(other)
        assert step(world, backfill_id).soon
    assert step(world, backfill_id).queued == 5


# -- looking ------------------------------------------------------------------------------------------------


def test_a_backfill_is_shown_with_its_progress_and_the_states_of_its_runs(world, begin):
    job_id = hourly(world, begin)
    first = start(world, job_id, begin, 4)
    step(world, first, queue=3)
    world.db.execute(
        "update runs set state = 'succeeded', finished_at = now() where scheduled_for = %s", [begin]
    )
    put(world, job_id, begin, "dead", origin="manual", request_id="mine")
    second = start(world, job_id, begin + 4 * HOUR, 1)

    with paging.reader(world.url) as reader:
        shown = backfill_views.show_backfill(reader, first)
        newest = backfill_views.list_backfills(reader, limit=1)
        rest = backfill_views.list_backfills(
            reader, limit=1, before=newest.next, job=job_id, states=["running"]
        )
        nothing = backfill_views.list_backfills(reader, states=["done"])
        assert backfill_views.show_backfill(reader, uuid7()) is None

    assert shown is not None
    assert shown["runs"] == {"queued": 2, "succeeded": 1}
    assert (shown["percent"], shown["queued"], shown["instants"]) == (75.0, 3, 3)
    assert [one["id"] for one in newest.rows] == [second]
    assert [one["id"] for one in rest.rows] == [first]
    assert (rest.next, nothing.rows) == (None, [])


def test_running_backfills_are_found_by_shard_and_page(world, begin):
    ids = [start(world, hourly(world, begin), begin) for _ in range(3)]

    shards = {row["id"]: row["shard"] for row in world.rows("select id, shard from backfills")}
    found = backfill_steps.running(world.db, EVERY_SHARD, limit=2)
    rest = backfill_steps.running(world.db, EVERY_SHARD, after=found[-1][0], limit=2)
    mine = backfill_steps.running(world.db, [shards[ids[0]]])

    assert found + rest == [(one, shards[one]) for one in ids]
    assert {shard for _, shard in mine} == {shards[ids[0]]}


def test_steps_claims_and_orders_about_one_job_end_one_after_the_other(world, begin):
    """All take the timer first, so that none of them can wait for another in a circle."""
    job_id = hourly(world, begin, policy=SKIP, timer=False)
    world.timer(job_id, begin + 40 * HOUR, kind=TimerKind.PLANNED)
    backfill_id = start(world, job_id, begin, 4)
    other = world.another()

    with ThreadPoolExecutor(1) as threads:
        with other.transaction():
            other.execute("select from timers where job_id = %s for update", [job_id])
            waiting = threads.submit(step, world, backfill_id, connection=world.another())
            wait_until_blocked(world, other)
            other.execute("insert into slots values (%s, 0, %s, now())", [job_id, uuid7()])
            other.execute("update jobs set state = 'paused' where id = %s", [job_id])
        assert waiting.result(timeout=30).waits_for == "its job is paused"

    world.db.execute("update jobs set state = 'active'")
    world.db.execute("update timers set fire_at = now() + interval '1 hour'")
    assert (
        step(world, backfill_id).waits_for == "a run of its job is unfinished, and its runs may not overlap"
    )


def wait_until_blocked(world, holder):
    """Wait until some session waits for a lock that another one holds."""
    looker = world.another()
    give_up_at = time.monotonic() + 10
    query = "select count(*) from pg_stat_activity where %s = any (pg_blocking_pids(pid))"
    while looker.execute(query, [holder.info.backend_pid]).fetchone() == (0,):
        assert time.monotonic() < give_up_at
