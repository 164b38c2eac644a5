"""The event of a dead run: its history, bounded in bytes."""

from __future__ import annotations

from datetime import UTC, datetime

import orjson
import pytest

from noonmark.core.ids import uuid7
from noonmark.schemas.events.envelope import parse_event
from noonmark.schemas.events.lifecycle import PastAttempt, RunDead, dead_event, read_published

NOW = datetime(2026, 6, 1, 9, tzinfo=UTC)


def attempt(number: int, error: str | None = "boom") -> PastAttempt:
    return PastAttempt(number, number, "failed", error, 7, NOW, NOW)


def event(*history: PastAttempt, **more: object) -> bytes:
    said = {
        "run_id": uuid7(),
        "job_id": uuid7(),
        "namespace": "n",
        "scheduled_for": NOW,
        "origin": "schedule",
        "reason": "retries_exhausted",
        "attempts": len(history),
        "fence": 1,
        "lane": "low",
        "pool": "default",
        "finished_at": NOW,
        "error": "boom",
        "history": history,
    }
    return dead_event(**{**said, **more})  # type: ignore[arg-type]


def read(value: bytes) -> RunDead:
    found = read_published(parse_event(value, None))
    assert isinstance(found, RunDead)
    return found


def test_a_consumer_reads_cause_and_history():
    told = read(event(attempt(1), attempt(2), kind="http", job_name="x", fingerprint="ab"))

    assert (told.kind, told.job_name, told.fingerprint) == ("http", "x", "ab")
    assert [(one.number, one.outcome, one.worker, one.started_at) for one in told.history] == [
        (1, "failed", 7, NOW),
        (2, "failed", 7, NOW),
    ]
    assert told.history_omitted == 0


def test_an_older_event_without_these_is_read_as_well():
    data = orjson.loads(event())
    for name in ("kind", "job_name", "fingerprint", "history", "history_omitted"):
        del data["data"][name]

    told = read(orjson.dumps(data))
    assert (told.history, told.fingerprint) == ([], None)


@pytest.mark.parametrize("char", ["x", "ä", "\x01", '"', "\ud800"])
def test_of_a_history_that_is_too_large_the_newest_attempts_are_kept(char):
    history = [attempt(number, char * 4000) for number in range(1, 101)]
    value = event(*history, history_omitted=5)
    told = read(value)

    assert len(value) < 300_000
    assert told.history[-1].number == 100
    assert 5 < len(told.history) < 100
    assert [one.number for one in told.history] == list(range(101 - len(told.history), 101))
    assert told.history_omitted == 105 - len(told.history)


def test_an_error_is_cut_in_the_history_as_well():
    assert len(read(event(attempt(1, "x" * 9000))).history[0].error or "") == 4000
