"""Records of the lifecycle topic: ours are read, others are refused, whatever their bytes are."""

import json
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from noonmark.core.ids import uuid7
from noonmark.observer.event_parsing import read_event
from noonmark.schemas.events.lifecycle import dead_event
from noonmark.schemas.events.settled import SettledRun, settled_event

AT = datetime(2026, 6, 1, 9, 0, tzinfo=UTC)
TOLD = AT + timedelta(minutes=1)


def settled(finished_at: datetime | None = AT) -> SettledRun:
    return SettledRun(
        *(uuid7(), uuid7(), "tests", AT, "schedule", "retrying", None, 1, 2, "normal", "default"),
        *(AT - timedelta(seconds=2), finished_at, "ValueError: x"),
    )


def test_an_event_is_read_with_all_its_outcomes():
    runs = [settled(), settled(None)]

    event = read_event(settled_event("tests", runs), TOLD)

    assert event is not None
    assert [one.run_id for one in event.outcomes] == [one.run_id for one in runs]
    first, second = event.outcomes
    assert (first.state, first.error, first.at, first.seconds) == ("retrying", "ValueError: x", AT, 2.0)
    assert (second.at, second.seconds) == (TOLD, None)


def test_an_event_of_another_type_is_left_out():
    value = dead_event(
        run_id=uuid7(), job_id=uuid7(), namespace="tests", scheduled_for=AT, origin="schedule", reason=None,
        attempts=1, fence=1, lane="normal", pool="default", finished_at=AT, error=None,
    )  # fmt: skip

    assert read_event(value, TOLD) is None


@pytest.mark.parametrize("value", [None, b"", b"{", b"[]", b"1", b'{"type": "noonmark.runs.settled.v1"}'])
def test_what_is_no_event_is_refused(value):
    with pytest.raises(ValueError, match="not a noonmark"):
        read_event(value, TOLD)


@pytest.mark.parametrize(
    "change",
    [
        {"started_at": "0001-01-01T00:00:00+14:00"},
        {"finished_at": "9999-12-31T23:59:59-14:00"},
        {"namespace": "a\0b"},
        {"namespace": "n" * 256},
        {"state": ["dead"]},
        {"error": {"a": 1}},
        {"reason": 7},
    ],
)
def test_what_postgres_would_not_take_is_refused(change):
    event = json.loads(settled_event("tests", [settled()]))
    event["data"]["outcomes"][0].update(change)

    with pytest.raises(ValueError, match="not a noonmark"):
        read_event(json.dumps(event).encode(), TOLD)


def test_of_an_error_as_much_is_kept_as_counts_and_no_null_character():
    event = json.loads(settled_event("tests", [settled()]))
    event["data"]["outcomes"][0]["error"] = "a\0" + "b" * 100_000

    read = read_event(json.dumps(event).encode(), TOLD)

    assert read is not None
    assert read.outcomes[0].error == "a�" + "b" * 3998


def test_an_event_without_an_id_is_refused():
    event = json.loads(settled_event("tests", [settled()]))
    del event["id"]

    with pytest.raises(ValueError, match="has no id"):
        read_event(json.dumps(event).encode(), TOLD)


@given(st.binary(max_size=200))
def test_no_bytes_raise_anything_else(value):
    with pytest.raises(ValueError, match="not a noonmark"):
        read_event(value, TOLD)
