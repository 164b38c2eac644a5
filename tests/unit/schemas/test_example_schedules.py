"""The jobs of examples/schedules.jsonl run when they say."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import orjson
import pytest
from tests.unit.schemas.job_cases import NOW, parse

from noonmark.core.instants import format_instant

FILE = Path(__file__).parents[3] / "examples" / "schedules.jsonl"
JOBS: dict[str, dict[str, Any]] = {
    job["name"]: job for job in map(orjson.loads, FILE.read_bytes().splitlines())
}


def fires(name: str, after: str, hours: float) -> list[str]:
    schedule = parse(JOBS[name]).schedule
    assert schedule is not None
    begin = datetime.fromisoformat(after).replace(tzinfo=UTC)
    return [format_instant(at) for at in schedule.between(begin, begin + timedelta(hours=hours), 100)]


@pytest.mark.parametrize("name", JOBS)
def test_an_example_is_taken(name: str):
    spec = parse(JOBS[name])
    assert spec.schedule is not None
    assert spec.schedule.next(NOW) is not None


@pytest.mark.parametrize(
    ("name", "after", "hours", "expected"),
    [
        ("billing", "2027-03-13", 48, ["2027-03-13T07:30:00Z", "2027-03-14T07:00:00Z"]),
        ("billing-twice", "2026-11-01", 24, ["2026-11-01T05:30:00Z", "2026-11-01T06:30:00Z"]),
        ("month-end", "2026-05-20", 24 * 15, ["2026-05-29T18:00:00Z"]),
        ("second-tuesday", "2026-06-01", 24 * 28, ["2026-06-09T07:00:00Z"]),
        ("payday", "2026-12-01", 24 * 30, ["2026-12-23T08:00:00Z"]),
        ("every-other-week", "2026-06-01", 24 * 14, ["2026-06-08T02:30:00Z", "2026-06-11T02:30:00Z"]),
        ("poll", "2026-06-01", 0.4, ["2026-06-01T00:05:00Z", "2026-06-01T00:20:00Z"]),
        ("opening-hours", "2099-12-24", 9, ["2099-12-24T08:00:00Z"]),
    ],
)
def test_an_example_runs_when_it_says(name: str, after: str, hours: float, expected: list[str]):
    assert fires(name, after, hours) == expected


def test_a_spread_out_job_runs_once_a_night():
    found = fires("spread-out", "2026-06-01", 24 * 7)
    assert len(found) == 7
    assert {at[11:] for at in found} == {found[0][11:]}
    assert "01:00" <= found[0][11:16] < "06:00"
