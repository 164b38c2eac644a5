"""Claims of schedules with a number of runs, jitter, zones, calendars and several rules."""

from datetime import UTC, datetime, timedelta

import orjson
import pytest
from tests.integration.store.test_planned_claims import claim, every, next_at, recurring, verdicts

from noonmark.core.planning.jitter import Jitter
from noonmark.core.schedules.schedule import load_schedule, parse_schedule
from noonmark.core.states import NO_NEXT_INSTANT, TimerKind
from noonmark.core.zones.zones import zone_data_version
from noonmark.store.claims.planner import Planner
from noonmark.store.documents.columns import NEVER
from noonmark.store.schedules.time_facts import change_time_facts
from noonmark.store.views import paging


def zoned(world, due, **document):
    """A job in a zone, its timer at `due`, everything before it settled."""
    schedule = parse_schedule(
        {"timezone": "America/New_York", **document}, created_at=due - timedelta(days=400)
    )
    job_id = world.job(schedule=schedule.spec(), recurring=True)
    world.timer(job_id, due, kind=TimerKind.ZONED)
    return job_id


def test_a_limited_job_ends_with_its_last_run(world):
    due = world.now() - timedelta(minutes=4, seconds=10)
    job_id = recurring(world, due=due, policy={"misfire": {"policy": "fire_all"}})
    world.db.execute("update timers set runs_left = 3 where job_id = %s", [job_id])

    assert claim(world).queued == 3

    assert verdicts(world, job_id) == [("queued", None)] * 3
    assert world.value("select state from jobs where id = %s", job_id) == "completed"
    assert world.count("timers") == 0


def test_an_instant_that_did_not_run_does_not_count_as_one_of_a_limited_jobs_runs(world):
    worker = world.worker()
    due = world.now() - timedelta(seconds=5)
    job_id = recurring(world, due=due, policy={"overlap": "skip"})
    world.db.execute("update timers set runs_left = 2 where job_id = %s", [job_id])
    claim(world)
    world.start(worker, [world.runs_of(job_id)[0]["id"]])

    world.turn_clock(timedelta(seconds=60))
    assert claim(world).skipped == {"overlap": 1}

    assert world.value("select runs_left from timers where job_id = %s", job_id) == 1
    assert world.value("select state from jobs where id = %s", job_id) == "active"


def test_a_jittered_job_is_claimed_at_its_moved_start_and_known_by_its_instant(world):
    due = world.now() - timedelta(seconds=30)
    spec = {**every("PT1H", due), "jitter_seconds": 600}
    job_id = world.job(schedule=spec, recurring=True)
    world.timer(job_id, due, kind=TimerKind.PLANNED)
    jitter = Jitter(load_schedule(spec), job_id.bytes)
    early = jitter.fire_at(due) > world.now()

    claim(world)
    if early:
        assert verdicts(world, job_id) == []
        assert next_at(world, job_id) == jitter.fire_at(due)
        world.turn_clock(timedelta(seconds=600))
        claim(world)

    (run,) = world.runs_of(job_id)
    assert (run["scheduled_for"], run["state"]) == (due, "queued")
    assert next_at(world, job_id) == jitter.fire_at(due + timedelta(hours=1))
    assert world.value("select scheduled_for from timers") == due + timedelta(hours=1)


def test_a_zoned_timer_moves_with_its_last_settled_instant_and_the_offset_of_that(world):
    due = world.now().replace(second=0, microsecond=0)
    job_id = zoned(world, due, cron="* * * * *")

    assert claim(world).claimed == 0, "plain planning leaves zoned timers alone"
    assert claim(world, kind=TimerKind.ZONED).queued == 1

    (timer,) = world.rows("select * from timers where job_id = %s", job_id)
    assert timer["scheduled_for"] == timer["fire_at"] == due + timedelta(minutes=1)
    assert (timer["after_at"], timer["after_offset"]) in [(due, -18000), (due, -14400)]
    (run,) = world.runs_of(job_id)
    assert world.value("select version from zone_data where id = %s", run["zone_data"]) == zone_data_version()


def test_a_planner_with_other_zone_data_claims_no_zoned_timer(world):
    due = world.now().replace(second=0, microsecond=0)
    zoned(world, due, cron="* * * * *")
    planner = Planner(catch_up_cap=100, ledger_cap=1000)
    planner.zone_data = "1999z"

    assert claim(world, plan=planner, kind=TimerKind.ZONED).claimed == 0

    assert claim(world, kind=TimerKind.ZONED).claimed == 1


def test_while_zone_data_change_zoned_timers_wait_and_plain_ones_do_not(world):
    due = world.now().replace(second=0, microsecond=0)
    zoned(world, due, cron="* * * * *")
    recurring(world, due=due)
    other = world.another()

    with other.transaction():
        change_time_facts(other)
        assert claim(world, kind=TimerKind.ZONED).claimed == 0
        assert claim(world).claimed == 1

    assert claim(world, kind=TimerKind.ZONED).claimed == 1


def test_a_timer_that_is_only_a_place_gets_the_next_instant_and_no_verdict(world):
    place = world.now().replace(second=0, microsecond=0) - timedelta(minutes=2)
    job_id = zoned(world, place, cron="* * * * *")
    world.db.execute(
        "update timers set after_at = scheduled_for, after_offset = -18000, fire_at = noonmark_now()"
    )

    claim(world, kind=TimerKind.ZONED)

    assert verdicts(world, job_id) == []
    assert next_at(world, job_id) > place
    claim(world, kind=TimerKind.ZONED)
    assert len(verdicts(world, job_id)) >= 1, "what came due since is planned next"


def test_a_calendar_keeps_its_days_off_and_is_read_by_its_content(world):
    due = datetime.combine(world.today(), datetime.min.time(), UTC)
    spec = {
        "cron": "0 0 * * *",
        "timezone": "UTC",
        "calendars": {"exclude": [["closed", "d1"]]},
    }
    body = {"dates": [str(world.today() + timedelta(days=1))]}
    world.db.execute(
        "insert into calendar_contents (digest, body) values ('d1', %s)", [orjson.dumps(body).decode()]
    )
    job_id = world.job(schedule=spec, recurring=True)
    world.timer(job_id, due, kind=TimerKind.PLANNED)

    claim(world)

    assert next_at(world, job_id) == due + timedelta(days=2)
    assert world.value("select after_at from timers") is not None


def test_a_schedule_whose_calendar_runs_out_waits_for_the_calendars_change(world):
    due = datetime.combine(world.today(), datetime.min.time(), UTC)
    spec = {"cron": "0 0 * * *", "timezone": "UTC", "calendars": {"include": [["open", "d2"]]}}
    body = {"dates": [str(world.today())]}
    world.db.execute(
        "insert into calendar_contents (digest, body) values ('d2', %s)", [orjson.dumps(body).decode()]
    )
    job_id = world.job(schedule=spec, recurring=True)
    world.timer(job_id, due, kind=TimerKind.PLANNED)

    claim(world)

    assert next_at(world, job_id) == NEVER
    assert world.value("select state from jobs where id = %s", job_id) == "active"
    assert world.value("select scheduled_for = after_at from timers")
    with paging.reader(world.url) as connection:
        (shown,) = paging.find_jobs(connection, job=job_id)
    assert (shown["state"], shown["next_due_at"]) == ("active", None)
    assert (shown["state_reason"], shown["no_next_instant"]) == (NO_NEXT_INSTANT, True)


def test_a_calendar_whose_content_is_gone_breaks_its_job_and_no_other(world):
    due = world.now() - timedelta(seconds=5)
    spec = {"cron": "* * * * *", "timezone": "UTC", "calendars": {"exclude": [["closed", "gone"]]}}
    broken = world.job(schedule=spec, recurring=True)
    world.timer(broken, due, kind=TimerKind.PLANNED)
    sound = recurring(world, due=due)

    result = claim(world)

    assert [job_id for job_id, _ in result.broken] == [broken]
    assert "the content gone of calendar closed" in result.broken[0][1]
    assert verdicts(world, sound) == [("queued", None)]


@pytest.mark.parametrize(
    "document", [{"any": ["*/7 * * * *", {"every": 300}]}, {"rrule": "FREQ=MINUTELY;INTERVAL=5"}]
)
def test_schedules_that_are_walked_are_claimed_like_others(world, document):
    if "rrule" in document:
        document["dtstart"] = "2026-01-01T00:00:00"
    now = world.now()
    schedule = parse_schedule(document, created_at=now - timedelta(hours=1))
    due = schedule.next(now - timedelta(minutes=40))
    job_id = world.job(schedule=schedule.spec(), policy={"misfire": {"policy": "fire_all"}}, recurring=True)
    world.timer(job_id, due, kind=TimerKind.PLANNED)

    claim(world)

    assert [run["scheduled_for"] for run in world.runs_of(job_id)] == schedule.between(
        now - timedelta(minutes=40), now, 1000
    )
