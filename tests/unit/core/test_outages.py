"""The planner stepped through a change of clocks, and how much one step of it may do."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from noonmark.core.planning import Caps, Held, Misfire, MisfirePolicy, ResumeChoice, plan
from noonmark.core.schedule import parse_schedule

STEP = timedelta(milliseconds=250)


def utc(text):
    return datetime.fromisoformat(text).astimezone(UTC)


def stepped(schedule, begin, end):
    """Plan as a trigger does whose clock goes on by a quarter of a second at a time."""
    now, due, runs, most = utc(begin), schedule.next(utc(begin)), [], 0
    while now < utc(end):
        step = plan(schedule, Misfire(), due=due, now=now)
        assert all(instant.skipped is None for instant in step.runs)
        assert not step.summary
        runs += [instant.scheduled_for for instant in step.runs]
        most = max(most, len(step.runs))
        due = step.next_at
        now += STEP
    return [f"{at:%H:%M:%S}" for at in runs], most


@pytest.mark.parametrize(
    ("cron", "rules", "expected"),
    [
        ("30 1 * * *", {}, ["05:30:00"]),
        ("30 1 * * *", {"dst_overlap": "last"}, ["06:30:00"]),
        ("30 1 * * *", {"dst_overlap": "both"}, ["05:30:00", "06:30:00"]),
        ("*/30 1 * * *", {}, ["05:30:00", "06:00:00", "06:30:00"]),
        ("*/30 1 * * *", {"dst_overlap": "first"}, ["05:30:00"]),
    ],
)
def test_a_repeated_hour_in_quarters_of_a_second_plans_each_instant_once(cron, rules, expected):
    """43,200 steps; a periodic job was once dispatched thousands of times there."""
    begin, end = "2026-11-01T05:00:00Z", "2026-11-01T08:00:00Z"
    schedule = parse_schedule({"cron": cron, "timezone": "America/New_York", **rules}, created_at=utc(begin))

    assert stepped(schedule, begin, end) == (expected, 1)


@pytest.mark.parametrize(
    ("cron", "rules", "expected"),
    [
        ("30 2 * * *", {}, ["07:00:00"]),
        ("0,15,30 2 * * *", {}, ["07:00:00"]),
        ("30 2 * * *", {"dst_gap": "shift"}, ["07:30:00"]),
        ("30 2 * * *", {"dst_gap": "skip"}, []),
        ("*/30 2 * * *", {}, []),
    ],
)
def test_a_missing_hour_in_quarters_of_a_second_plans_each_instant_once(cron, rules, expected):
    begin, end = "2026-03-08T06:00:00Z", "2026-03-08T09:00:00Z"
    schedule = parse_schedule({"cron": cron, "timezone": "America/New_York", **rules}, created_at=utc(begin))

    assert stepped(schedule, begin, end) == (expected, min(1, len(expected)))


SCHEDULES = (
    {"cron": "* * * * *"},
    {"cron": "*/5 * * * * *"},
    {"every": 1},
    {"rrule": "FREQ=MINUTELY", "dtstart": "2026-01-01T00:00:00", "timezone": "Australia/Lord_Howe"},
    {"any": ["* * * * *", {"every": 45}], "timezone": "Europe/Dublin"},
    {"cron": "* * * * *", "jitter_seconds": 50},
)


@pytest.mark.parametrize("schedule", SCHEDULES, ids=str)
@pytest.mark.parametrize("policy", list(MisfirePolicy))
@pytest.mark.parametrize("choice", [None, *ResumeChoice])
def test_no_step_plans_more_than_its_caps_and_every_step_goes_on(schedule, policy, choice):
    """Three days of missed instants, for each policy and way to resume: the breaker of a planner that runs wild."""
    created, now = utc("2026-03-01T00:00:00Z"), utc("2026-03-04T00:00:30Z")
    parsed = parse_schedule(schedule, created_at=created)
    caps = Caps(runs=40, rows=200)
    held = Held(now, choice) if choice else None
    misfire = Misfire(policy, look_back_seconds=7200)
    due, last = parsed.next(created), created
    for _ in range(400):
        step = plan(parsed, misfire, due=due, now=now, held=held, caps=caps)
        ran = [instant for instant in step.runs if instant.skipped is None]
        assert len(ran) <= caps.runs
        assert len(step.runs) - len(ran) <= caps.rows
        assert len(step.summary) <= 4
        assert step.planned_to is not None
        assert step.planned_to > last
        assert step.next_at is not None
        assert step.next_at > step.planned_to
        due, last = step.next_at, step.planned_to
        if due > now:
            return
    pytest.fail(f"still at {due} after 400 steps")
