"""What noonmark publishes, as producers write it and consumers read it."""

from __future__ import annotations

import base64
import dataclasses
from collections.abc import Callable
from datetime import UTC, datetime, timedelta, timezone
from typing import Any, TypeVar
from uuid import UUID

import orjson
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from noonmark.schemas import lifecycle
from noonmark.schemas.envelope import Event, parse_event
from noonmark.schemas.lifecycle import (
    RunDead,
    RunOutcome,
    RunsSettled,
    SettledRun,
    SubmissionRejected,
    dead_event,
    read_published,
    rejection_event,
    settled_event,
    settled_events,
)
from noonmark.schemas.refusal import FieldError, Refused
from noonmark.schemas.run_message import (
    QUEUED,
    RunMessage,
    RunQueued,
    parse_run_message,
    render_run_message,
)

AT = datetime(2026, 6, 1, 9, tzinfo=UTC)
RUN, JOB = UUID("01981f2a-7c00-7000-8000-00000000000a"), UUID("01981f2a-7c00-7000-8000-0123456789ab")
OUTCOME = SettledRun(
    RUN, JOB, "default", AT, "schedule", "succeeded", None, 1, 1, "normal", "default", AT, AT + timedelta(seconds=1), None
)  # fmt: skip
MESSAGE = RunMessage(RUN, JOB, "default", "default", "normal", AT, 3, 2, "k1", "ab" * 32)


T = TypeVar("T")


def outcome(call: Callable[[], T]) -> T | Refused:
    try:
        return call()
    except Refused as refused:
        return refused


def data_of(value: bytes) -> dict[str, Any]:
    return orjson.loads(value)["data"]


def test_settled_outcomes_read_back_as_they_were_recorded():
    value = settled_event(
        "default", [OUTCOME, dataclasses.replace(OUTCOME, state="retrying", error="boom")], at=AT
    )
    event = parse_event(value, None)
    assert (event.type, event.subject, event.time, event.source) == (
        lifecycle.SETTLED,
        "default",
        AT,
        "/noonmark",
    )
    read = read_published(event)
    assert isinstance(read, RunsSettled)
    assert [outcome.state for outcome in read.outcomes] == ["succeeded", "retrying"]
    assert read.outcomes[0].model_dump() == dataclasses.asdict(OUTCOME)


def test_the_fast_classes_have_the_fields_of_their_models():
    assert [field.name for field in dataclasses.fields(SettledRun)] == list(RunOutcome.model_fields)
    assert list(RunMessage.__struct_fields__) == list(RunQueued.model_fields)


def test_consumers_ignore_what_they_do_not_know():
    data = data_of(settled_event("default", [OUTCOME]))
    data["outcomes"][0].update(state="snoozed", origin="workflow", lane="urgent", novel=1)
    read = read_published(Event("1", "/noonmark", lifecycle.SETTLED, None, None, None, {**data, "more": []}))
    assert isinstance(read, RunsSettled)
    assert read.outcomes[0].state == "snoozed"


def test_consumers_are_told_what_is_missing():
    with pytest.raises(Refused, match="/data/outcomes/0/run_id"):
        read_published(Event("1", "/n", lifecycle.SETTLED, None, None, None, {"outcomes": [{}]}))
    with pytest.raises(Refused, match="is not read here"):
        read_published(Event("1", "/n", "noonmark.runs.settled.v2", None, None, None, {}))


def test_many_outcomes_are_split_below_the_limit_and_none_is_lost():
    outcomes = [dataclasses.replace(OUTCOME, fence=number) for number in range(100)]
    values = settled_events("default", outcomes, max_bytes=4000)
    assert len(values) > 1
    assert max(map(len, values)) <= 4000
    assert [item["fence"] for value in values for item in data_of(value)["outcomes"]] == list(range(100))
    assert len({orjson.loads(value)["id"] for value in values}) == len(values)


def test_an_endless_error_text_is_cut_rather_than_undeliverable():
    (value,) = settled_events("default", [dataclasses.replace(OUTCOME, error="x" * 2_000_000)])
    assert len(value) < 6000


def test_an_error_text_that_is_no_unicode_is_told_all_the_same():
    (outcome,) = data_of(settled_event("default", [dataclasses.replace(OUTCOME, error="a\ud800b")]))[
        "outcomes"
    ]
    assert outcome["error"] == "a\\ud800b"


def test_a_dead_letter_reads_back():
    value = dead_event(
        run_id=RUN, job_id=JOB, namespace="n", scheduled_for=AT, origin="schedule", reason="retries_exhausted",
        attempts=4, fence=4, lane="high", pool="p", finished_at=AT, error="boom",
    )  # fmt: skip
    read = read_published(parse_event(value, None))
    assert isinstance(read, RunDead)
    assert (read.run_id, read.attempts, read.error, read.finished_at) == (RUN, 4, "boom", AT)


def test_a_rejection_tells_place_reasons_and_the_first_bytes():
    refused = Refused([FieldError("/data/x", "is wrong", "right")])
    value = rejection_event(
        refused,
        topic="t",
        partition=1,
        offset=2,
        value=b"\xff" * 10,
        cap_bytes=4,
        event_source="/s",
        event_id="1",
        at=AT,
    )
    read = read_published(parse_event(value, None))
    assert isinstance(read, SubmissionRejected)
    assert (read.topic, read.partition, read.offset, read.event_source, read.event_id) == (
        "t",
        1,
        2,
        "/s",
        "1",
    )
    assert read.errors[0].model_dump() == {"pointer": "/data/x", "message": "is wrong", "expected": "right"}
    assert read.value_base64 is not None
    assert (base64.b64decode(read.value_base64), read.truncated) == (b"\xff" * 4, True)
    bare = data_of(rejection_event(refused, topic="t", partition=1, offset=2, value=None, cap_bytes=4))
    assert (bare["value_base64"], bare["truncated"], bare["event_id"]) == (None, False, None)


def test_a_run_message_reads_back_and_is_an_event():
    value = render_run_message(MESSAGE)
    assert parse_run_message(value) == MESSAGE
    event = parse_event(value, None)
    assert (event.type, event.id) == (QUEUED, f"{RUN}.3")
    assert RunQueued.model_validate(event.data).model_dump() == {
        name: getattr(MESSAGE, name) for name in MESSAGE.__struct_fields__
    }


def test_what_is_signed_changes_with_every_field_but_not_with_the_form_of_the_instant():
    changed = {
        "run_id": JOB, "job_id": RUN, "namespace": "n", "pool": "p", "lane": "low",
        "scheduled_for": AT + timedelta(microseconds=1), "fence": 4, "job_version": 9, "key_id": "k2",
    }  # fmt: skip
    texts = {MESSAGE.signing_text()}
    for name, value in changed.items():
        fields = {field: getattr(MESSAGE, field) for field in MESSAGE.__struct_fields__}
        texts.add(RunMessage(**{**fields, name: value}).signing_text())
    assert len(texts) == 1 + len(changed)
    elsewhere = AT.astimezone(timezone(timedelta(hours=2)))
    other = RunMessage(RUN, JOB, "default", "default", "normal", elsewhere, 3, 2, "k1", "other signature")
    assert other.signing_text() == MESSAGE.signing_text()


@pytest.mark.parametrize(
    ("value", "pointer"),
    [
        (None, ""),
        (b"", ""),
        (b"\xff", ""),
        (b"[" * 100_000, ""),
        (b"{}", ""),
        (b'{"type":"noonmark.run.queued.v1","data":{}}', "/data"),
        (render_run_message(MESSAGE).replace(b'"fence":3', b'"fence":-3'), "/data/fence"),
        (render_run_message(MESSAGE).replace(b"09:00:00Z", b"09:00:00"), "/data/scheduled_for"),
        (render_run_message(MESSAGE).replace(b"queued.v1", b"queued.v2"), "/type"),
    ],
)
def test_a_record_that_is_no_run_message_is_refused(value: bytes | None, pointer: str):
    with pytest.raises(Refused) as caught:
        parse_run_message(value)
    assert caught.value.errors[0].pointer == pointer


@settings(max_examples=100, deadline=None)
@given(st.binary(max_size=60) | st.tuples(st.integers(0, 460), st.binary(min_size=1, max_size=2)))
def test_damaged_run_messages_are_refused_or_read(damage: bytes | tuple[int, bytes]):
    value = damage if isinstance(damage, bytes) else None
    if isinstance(damage, tuple):
        good = render_run_message(MESSAGE)
        value = good[: damage[0]] + damage[1] + good[damage[0] + len(damage[1]) :]
    found = outcome(lambda: parse_run_message(value))
    assert found.errors if isinstance(found, Refused) else found.run_id
