"""How jobs are shown."""

from datetime import UTC, datetime

import pytest

from noonmark.cli.jobs.commands import due_text, job_fields, next_due_text, schedule_text

JOB = {
    "id": "j", "namespace": "shop", "name": "a", "state": "paused", "state_reason": None, "paused_by": "job",
    "paused_at": "2026-06-01T09:00:00Z", "version": 1, "created_at": "2026-06-01T08:00:00.5Z", "next_run_at": None,
    "last_run_at": None, "held_instants": 3, "payload_hidden": False,
    "document": {"name": "a", "namespace": "shop", "payload": {"user": 7}, "schedule": {"every": 60}, "run_at": None},
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


def test_a_job_is_shown_with_how_it_stands_and_then_its_document():
    shown = job_fields(JOB)
    assert list(shown)[:4] == ["id", "namespace", "name", "state"]
    assert list(shown)[-4:] == ["payload", "schedule", "run_at", "held_instants"]
    assert (shown["held_instants"], shown["payload"], shown["version"]) == (3, {"user": 7}, 1)
    assert shown["paused_at"] == datetime(2026, 6, 1, 9, tzinfo=UTC)


def test_what_a_pause_does_not_hold_is_not_told_and_what_may_not_be_read_is_said_to_be_hidden():
    hidden = {**JOB, "held_instants": None, "payload_hidden": True, "document": {"payload": None}}
    shown = job_fields(hidden)
    assert "held_instants" not in shown
    assert shown["payload"] == "(hidden: the key may not read payloads)"


def test_a_one_time_job_is_listed_with_its_instant():
    assert due_text({"run_at": "2026-06-01T09:00:00Z", "schedule": None}) == "at 2026-06-01T09:00:00Z"
    assert due_text({"run_at": None, "schedule": None}) == "now"
    assert due_text({"run_at": None, "schedule": {"every": 60}}) == "every 60 s"


def test_a_job_whose_calendars_leave_nothing_has_no_next_instant_rather_than_an_unknown_one():
    none = {"next_run_at": None, "state_reason": "no next instant: its calendars leave none"}
    assert next_due_text(none) == "none"
    assert next_due_text({"next_run_at": None, "state_reason": None}) == "-"
