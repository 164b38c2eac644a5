"""How jobs are shown."""

import pytest

from noonmark.cli.jobs import document, schedule_text

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
    ],
)
def test_a_schedule_is_told_in_a_few_words(schedule, shown):
    assert schedule_text(schedule) == shown


def test_a_stored_job_is_shown_in_the_vocabulary_of_submissions():
    shown = document({**ROW, "schedule": {"run_at": "2026-06-01T09:00:00Z"}})
    assert (shown["type"], shown["priority"], shown["run_at"]) == ("python", "normal", "2026-06-01T09:00:00Z")
    assert shown["schedule"] is None
    assert shown["retry"] == {"max_retries": 3}
    assert shown["misfire"] == {"policy": "fire_latest", "grace_seconds": 60.0, "look_back_seconds": 3600.0}
    assert shown["overlap"] == "allow"


def test_the_rhythm_of_an_interval_is_its_start():
    every = {"every": "P2D", "anchor": "2026-06-01T09:00:00Z"}
    shown = document({**ROW, "schedule": every, "policy": {"overlap": "skip"}})
    assert shown["schedule"] == {"every": "P2D", "start": "2026-06-01T09:00:00Z"}
    assert shown["misfire"]["look_back_seconds"] == 172_800
    assert shown["overlap"] == "skip"
