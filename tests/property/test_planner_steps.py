"""The planner stepped through a change of clocks."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from noonmark.core.planning.plan import Misfire, plan
from noonmark.core.schedules.schedule import parse_schedule

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
