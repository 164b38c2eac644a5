"""How jobs are shown."""

import pytest

from noonmark.cli.jobs import document, next_due_text, schedule_text
from noonmark.core.schedule import load_schedule

ROW = {
    "id": "j", "namespace": "default", "name": "a", "state": "active", "state_reason": None, "next_due_at": None,
    "paused_at": None, "paused_by": None, "version": 1, "created_at": None, "updated_at": None, "kind": "python", "handler": "mails.send",
    "schedule": None, "work": {"payload": {}, "timeout_seconds": 3600, "retry": {"max_retries": 3}}, "policy": None,
    "lane": "normal", "pool": "default", "labels": None, "idempotency_key": None, "description": None, "owner": None,
}  # fmt: skip


@pytest.mark.parametrize(
    ("schedule", "shown"),
    [
        (None, "now"),
        ({"cron": "0 9 * * 1"}, "0 9 * * 1"),
        ({"every": 2.0}, "every 2 s"),
        ({"every": "PT15M"}, "every PT15M"),
        ({"run_at": "2026-06-01T09:00:00Z"}, "at 2026-06-01T09:00:00Z"),
        ({"cron": "0 9 * * 1", "timezone": "Asia/Tokyo"}, "0 9 * * 1 Asia/Tokyo"),
        ({"rrule": "RRULE:FREQ=DAILY", "timezone": "Asia/Tokyo"}, "FREQ=DAILY Asia/Tokyo"),
        (
            {"rrule": "FREQ=DAILY;" + "BYDAY=MO," * 9, "timezone": "Asia/Tokyo"},
            "FREQ=DAILY;BYDAY=MO,BYDAY=MO,BYDAY=MO,BYDAY=MO,BYDAY=MO,BYD… Asia/Tokyo",
        ),
        (
            {"any": [{"every": 60}, {"cron": "0 9 * * 1", "timezone": "Asia/Tokyo"}]},
            "every 60 s; 0 9 * * 1 Asia/Tokyo",
        ),
        ({"any": [{"cron": "0 9 * * 1", "timezone": "UTC"}]}, "0 9 * * 1"),
        ({"every": 60, "timezone": "Asia/Tokyo"}, "every 60 s"),
    ],
)
def test_a_schedule_is_told_in_a_few_words(schedule, shown):
    assert schedule_text(schedule) == shown


def test_a_stored_job_is_shown_in_the_vocabulary_of_submissions():
    once = {"run_at": "2026-06-01T09:00:00Z"}
    shown = document({**ROW, "schedule": once}, load_schedule(once))
    assert (shown["type"], shown["priority"], shown["run_at"]) == ("python", "normal", "2026-06-01T09:00:00Z")
    assert shown["schedule"] is None
    assert shown["retry"] == {"max_retries": 3}
    assert shown["misfire"] == {"policy": "fire_latest", "grace_seconds": 60.0, "look_back_seconds": None}
    assert shown["overlap"] == "allow"


def test_the_rhythm_of_an_interval_is_its_start():
    every = {"every": "P2D", "anchor": "2026-06-01T09:00:00Z"}
    shown = document({**ROW, "schedule": every, "policy": {"overlap": "skip"}}, load_schedule(every))
    assert (shown["schedule"]["every"], shown["schedule"]["start"]) == (172_800, "2026-06-01T09:00:00Z")
    assert "anchor" not in shown["schedule"]
    assert shown["misfire"]["look_back_seconds"] == 172_800
    assert shown["overlap"] == "skip"


def test_a_schedule_that_cannot_be_read_is_shown_as_it_is_stored():
    damaged = {"cron": "61 * * * *"}
    shown = document({**ROW, "schedule": damaged, "state": "broken"})
    assert shown["schedule"] == damaged
    assert shown["misfire"]["look_back_seconds"] is None


def test_a_job_whose_calendars_leave_nothing_has_no_next_instant_rather_than_an_unknown_one():
    assert next_due_text({"no_next_instant": True, "next_due_at": None}) == "none"
    assert next_due_text({"no_next_instant": False, "next_due_at": None}) == "-"
