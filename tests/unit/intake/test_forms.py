"""What a checked job looks like in the tables."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import orjson
import pytest

from noonmark.core.words import TimerKind
from noonmark.schemas.job import JobSpec, parse_job
from noonmark.store.columns import folded
from noonmark.store.job_forms import first_due, labels_text, policy_text, work_text

NOW = datetime(2026, 6, 1, 12, tzinfo=UTC)


def spec(**data: Any) -> JobSpec:
    document = {"name": "job", "type": "python", "handler": "a.b", **data}
    return parse_job(document, now=NOW, ledger_floor=NOW - timedelta(days=30))


def test_rows_of_plain_one_time_jobs_are_small() -> None:
    plain = spec(run_at="2026-07-01T00:00:00Z")
    assert policy_text(plain) is None
    assert labels_text(plain) is None
    assert first_due(plain, NOW).schedule == '{"run_at":"2026-07-01T00:00:00Z"}'


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
    due = first_due(spec(schedule="0 9 * * *"), NOW)
    assert due.fire_at == datetime(2026, 6, 2, 9, tzinfo=UTC)
    assert (due.kind, due.now) == (TimerKind.PLANNED, False)


def test_a_job_due_on_arrival_has_no_timer() -> None:
    due = first_due(spec(start_deadline_seconds=30), NOW)
    assert (due.fire_at, due.now, due.start_by) == (None, True, NOW + timedelta(seconds=30))


def test_equal_values_travel_once() -> None:
    assert folded({"a": ["x", "x"], "b": [1, 2], "c": [None, None]}) == {
        "a": [], "a_all": "x", "b": [1, 2], "b_all": None, "c": [], "c_all": None
    }  # fmt: skip
