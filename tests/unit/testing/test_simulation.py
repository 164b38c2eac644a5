"""`simulate` lets virtual time pass and plans as the trigger does."""

from datetime import UTC, datetime, timedelta

import pytest

from noonmark.core.calendars.calendar import Calendar
from noonmark.schemas.problems.refusal import Refused
from noonmark.testing import simulate

START = datetime(2030, 1, 7, tzinfo=UTC)  # a Monday
JOB = {"name": "report", "type": "python", "handler": "reports.build"}


def at(day: int, hour: int, minute: int = 0) -> datetime:
    return datetime(2030, 1, day, hour, minute, tzinfo=UTC)


def test_every_instant_runs_while_somebody_plans():
    found = simulate({**JOB, "schedule": "0 9 * * *"}, START, START + timedelta(days=3))
    assert found.runs == [at(7, 9), at(8, 9), at(9, 9)]
    assert found.skipped == {}
    assert found.next_at == at(10, 9)


def test_after_an_outage_the_misfire_policy_decides():
    down = [(at(7, 8, 30), at(7, 11, 30))]
    hourly = {**JOB, "schedule": "0 * * * *"}
    end = at(7, 13)
    latest = simulate(hourly, at(7, 8), end, outages=down)
    assert latest.runs == [at(7, 11), at(7, 12), at(7, 13)]
    assert latest.skipped == {at(7, 9): "look_back", at(7, 10): "look_back"}
    assert latest.instants[2].at == at(7, 11, 30)

    every = {**hourly, "misfire": {"policy": "fire_all", "look_back_seconds": 86_400}, "overlap": "allow"}
    assert simulate(every, at(7, 8), end, outages=down).runs == [at(7, h) for h in (9, 10, 11, 12, 13)]
    skips = simulate({**hourly, "misfire": "skip"}, at(7, 8), end, outages=down)
    assert skips.runs == [at(7, 12), at(7, 13)]
    assert skips.skipped[at(7, 11)] == "misfired"


def test_max_runs_ends_the_job():
    schedule = {"cron": "0 * * * *", "max_runs": 2}
    found = simulate({**JOB, "schedule": schedule}, START, START + timedelta(days=1))
    assert found.runs == [at(7, 1), at(7, 2)]
    assert found.next_at is None


def test_a_job_of_one_instant_runs_once_and_late_if_it_was_late():
    once = {"type": "python", "handler": "x", "run_at": "2030-01-07T09:00:00Z"}
    assert simulate(once, START, START + timedelta(days=1)).runs == [at(7, 9)]
    assert simulate({"type": "python", "handler": "x"}, START, START + timedelta(days=1)).runs == [START]


def test_zones_and_calendars_are_those_of_the_test():
    job = {**JOB, "schedule": {"cron": "0 9 * * *", "calendars": {"exclude": ["off"]}}}
    found = simulate(
        job,
        START,
        START + timedelta(days=3),
        calendars={"off": Calendar.parse({"dates": ["2030-01-08"]})},
        default_zone="Europe/Berlin",
    )
    assert found.runs == [at(7, 8), at(9, 8)]


def test_a_bad_document_is_refused_and_too_long_a_time_too():
    with pytest.raises(Refused, match="max_retires"):
        simulate({**JOB, "max_retires": 1}, START, START)
    with pytest.raises(ValueError, match="simulate a shorter time"):
        simulate({**JOB, "schedule": {"every": 1}}, START, START + timedelta(days=3))
