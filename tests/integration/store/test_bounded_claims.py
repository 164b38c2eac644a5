"""What a claim does at most, whatever stood still before it; and rows that somebody damaged."""

import json
from datetime import timedelta

import pytest
from tests.integration.store.test_planned_claims import claim, recurring, verdicts
from tests.integration.store.world import Planned

from noonmark.core.states import RunState, TimerKind
from noonmark.store.claims import claims
from noonmark.store.claims.planned_runs import PlannedRun, TimerPlan
from noonmark.store.documents.schedules import ScheduleTexts
from noonmark.store.maintenance.housekeeping import drop_day
from noonmark.store.schedules.time_facts import read_time_facts
from noonmark.store.schedules.zone_data import activate

DAMAGED = [
    '{"every": 2, "anchor": "2026-01-01T00:00:00Z", "calendars": null}',
    '{"cron": "* * * * *", "calendars": {"exclude": [["hol"]]}}',
    '{"cron": "* * * * *", "calendars": {"exclude": null}}',
    '{"cron": "* * * * *", "calendars": [1]}',
    '["calendars"]',
    '{"any": null, "calendars": 1}',
    '{"any": [1], "calendars": {}}',
]


def test_a_claim_ends_when_it_has_enough_rows_and_the_next_one_goes_on(world, monkeypatch):
    monkeypatch.setattr(claims, "_ROWS_AT_ONCE", 100)
    due = world.now() - timedelta(minutes=49, seconds=10)
    first = recurring(world, due=due)
    jobs = [first, *world.copies(first, 9)]

    sizes = []
    while result := claim(world).claimed:
        sizes.append(result)

    assert sizes == [2] * 5, "fifty rows each"
    assert all(len(verdicts(world, job_id)) == 50 for job_id in jobs)


def test_a_claim_ends_when_planning_takes_long_and_has_done_something(world, monkeypatch):
    monkeypatch.setattr(claims, "_PLANNING_SECONDS", 0.0)
    due = world.now() - timedelta(seconds=5)
    first = recurring(world, due=due)
    world.copies(first, 4)
    world.db.execute("update timers set runs_left = 9")  # each is planned by itself

    assert [claim(world).claimed for _ in range(6)] == [1, 1, 1, 1, 1, 0]


@pytest.mark.parametrize("schedule", DAMAGED)
def test_a_damaged_schedule_breaks_its_own_job_and_no_other(world, schedule):
    due = world.now() - timedelta(seconds=5)
    bad, good = recurring(world, due=due), recurring(world, due=due)
    world.db.execute("update jobs set schedule = %s where id = %s", [schedule, bad])

    result = claim(world)

    assert [job_id for job_id, _ in result.broken] == [bad]
    assert verdicts(world, good) == [("queued", None)]


@pytest.mark.parametrize("schedule", DAMAGED)
def test_a_damaged_schedule_does_not_keep_zone_data_from_being_activated(world, schedule):
    bad = recurring(world, due=world.now() + timedelta(hours=1))
    world.db.execute("update jobs set schedule = %s where id = %s", [schedule, bad])
    world.db.execute("update timers set kind = 3, after_at = now(), after_offset = 0")

    activate(world.db)


def test_a_damaged_calendar_is_nobody_elses_trouble(world):
    world.db.execute(
        "insert into calendar_contents (digest, body) values ('bad', '[1]'), ('good', %s)",
        [json.dumps({"weekdays": ["SAT"]})],
    )
    world.db.execute(
        "insert into calendars (namespace, name, digest) values ('shop', 'bad', 'bad'), ('shop', 'good', 'good')"
    )
    assert list(read_time_facts(world.db).calendars_of("shop")) == ["good"]
    texts = ScheduleTexts()
    texts.learn(world.db, ['{"cron":"* * * * *","calendars":{"exclude":[["bad","bad"]]}}'])


def test_what_a_cancel_left_over_is_worked_off_up_to_the_cancel(world):
    cancelled_at = world.now() - timedelta(minutes=2)
    due = cancelled_at - timedelta(minutes=3, seconds=10)
    job_id = recurring(world, due=due, state="cancelled")
    world.db.execute("update jobs set updated_at = %s where id = %s", [cancelled_at, job_id])

    claim(world)

    assert verdicts(world, job_id) == [("skipped", "cancelled")] * 4
    assert world.count("timers") == 0


def test_nothing_is_planned_below_the_ledger_floor(world):
    due = world.now() - timedelta(days=3)
    job_id = recurring(world, due=due, period="P1D", policy={"misfire": {"policy": "fire_all"}})
    world.db.execute("update install set ledger_floor = %s", [due + timedelta(hours=1)])

    while claim(world).claimed:
        pass

    first = world.value("select min(scheduled_for) from runs where job_id = %s", job_id)
    assert first == due + timedelta(days=1)


def test_a_day_stays_while_a_summary_in_it_tells_of_later_instants(world):
    old = world.now() - timedelta(days=1)
    job_id = world.job(recurring=True)
    world.timer(job_id, old, kind=TimerKind.PLANNED)
    gap = PlannedRun(
        old, RunState.SKIPPED, "paused", last_scheduled_for=world.now() + timedelta(seconds=1), instants=9
    )
    claim(world, plan=Planned(lambda _timer: TimerPlan([gap])))
    world.db.execute("update install set ledger_floor = %s", [world.now()])
    day = f"runs_{old:%Y%m%d}"

    assert not drop_day(world.db, day)
    world.db.execute("update install set ledger_floor = %s", [world.now() + timedelta(minutes=1)])
    assert drop_day(world.db, day)
