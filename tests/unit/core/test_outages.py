"""How much one step of the planner may do."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from noonmark.core.planning.plan import Caps, Misfire, MisfirePolicy, PauseWindow, plan
from noonmark.core.schedules.schedule import parse_schedule
from noonmark.core.states import ResumeChoice


def utc(text):
    return datetime.fromisoformat(text).astimezone(UTC)


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
    held = PauseWindow(now, choice) if choice else None
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
