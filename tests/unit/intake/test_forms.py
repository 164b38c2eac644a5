"""What a checked job looks like in the tables."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID

import orjson
import pytest

from noonmark.core.states import TimerKind
from noonmark.schemas.jobs.job import JobSpec, parse_job
from noonmark.store.database.columns import folded
from noonmark.store.documents.columns import NEVER, Due, first_due, labels_text, policy_text, work_text

NOW = datetime(2026, 6, 1, 12, tzinfo=UTC)


JOB = UUID("0191e0a0-0000-7000-8000-000000000001")


def due_of(job: JobSpec, *, paused: bool = False, zone_data_is_active: bool = True) -> Due:
    return first_due(job, JOB, NOW, zone_data_is_active=zone_data_is_active, paused=paused)


def spec(**data: Any) -> JobSpec:
    document = {"name": "job", "type": "python", "handler": "a.b", **data}
    return parse_job(document, now=NOW, ledger_floor=NOW - timedelta(days=30))


def test_rows_of_plain_one_time_jobs_are_small() -> None:
    plain = spec(run_at="2026-07-01T00:00:00Z")
    assert policy_text(plain) is None
    assert labels_text(plain) is None
    assert due_of(plain).schedule == '{"run_at":"2026-07-01T00:00:00Z"}'


def test_the_work_is_the_payload_as_sent_with_limits_and_retries() -> None:
    work = orjson.loads(work_text(spec(payload={"a": [1, None]}, max_retries=2, timeout_seconds=5)))
    assert work["payload"] == {"a": [1, None]}
    assert work["timeout_seconds"] == 5
    assert work["retry"] == {
        "max_retries": 2, "delay_seconds": 60, "factor": 2, "max_delay_seconds": 3600, "jitter": "full"
    }  # fmt: skip


@pytest.mark.parametrize(
    ("data", "stored"),
    [
        ({"schedule": "0 9 * * 1"}, {"overlap": "skip"}),
        ({"schedule": "0 9 * * 1", "overlap": "allow"}, None),
        ({"start_deadline_seconds": 9}, {"overlap": "allow", "start_deadline_seconds": 9}),
        (
            {"misfire": "skip"},
            {
                "overlap": "allow",
                "misfire": {"policy": "skip", "grace_seconds": 60, "look_back_seconds": None},
            },
        ),
    ],
)
def test_the_policy_holds_what_differs_from_the_defaults(data: dict[str, Any], stored: object) -> None:
    text = policy_text(spec(**data))
    assert (orjson.loads(text) if text else None) == stored


def test_a_recurring_job_is_first_due_after_now() -> None:
    due = due_of(spec(schedule="0 9 * * *"))
    assert due.fire_at == datetime(2026, 6, 2, 9, tzinfo=UTC)
    assert (due.kind, due.now, due.after_at) == (TimerKind.PLANNED, False, None)


def test_a_zoned_job_keeps_from_where_its_instant_was_found() -> None:
    job = spec(schedule={"cron": "0 9 * * *", "timezone": "Europe/Berlin"})
    due = due_of(job)
    assert (due.at, due.kind) == (datetime(2026, 6, 2, 7, tzinfo=UTC), TimerKind.ZONED)
    assert (due.after_at, due.after_offset) == (NOW, 7200)
    elsewhere = due_of(job, zone_data_is_active=False)
    assert elsewhere.at == elsewhere.after_at == elsewhere.fire_at == NOW, "a place, to be planned from"


def test_a_jittered_job_starts_after_its_instant_and_a_limited_one_counts_its_runs() -> None:
    due = due_of(spec(schedule={"every": 3600, "jitter_seconds": 600, "max_runs": 3}))
    assert due.at == NOW + timedelta(hours=1)
    assert due.fire_at is not None
    assert due.at < due.fire_at < due.at + timedelta(minutes=10)
    assert due.runs_left == 3


def test_of_a_job_that_begins_paused_what_recurs_waits_and_one_instant_is_planned() -> None:
    recurring = due_of(spec(schedule="0 9 * * *"), paused=True)
    assert (recurring.at, recurring.fire_at) == (datetime(2026, 6, 2, 9, tzinfo=UTC), NEVER)
    once = due_of(spec(), paused=True)
    assert (once.at, once.fire_at, once.kind, once.now) == (NOW, NOW, TimerKind.PLANNED, False)


def test_a_job_due_on_arrival_has_no_timer() -> None:
    due = due_of(spec(start_deadline_seconds=30))
    assert (due.fire_at, due.now, due.start_by) == (None, True, NOW + timedelta(seconds=30))


def test_equal_values_travel_once() -> None:
    assert folded({"a": ["x", "x"], "b": [1, 2], "c": [None, None]}) == {
        "a": None, "a_all": "x", "b": [1, 2], "b_all": None, "c": None, "c_all": None
    }  # fmt: skip
