"""What noonmark publishes, as producers write it and consumers read it."""

from __future__ import annotations

import base64
import hashlib
import json
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID

import jsonschema
import orjson
import pytest
from msgspec import structs

from noonmark.core.states import Lane
from noonmark.kafka import messages
from noonmark.schemas.events import lifecycle
from noonmark.schemas.events.envelope import Event, parse_event
from noonmark.schemas.events.lifecycle import (
    RunDead,
    RunOutcome,
    RunsSettled,
    SubmissionRejected,
    dead_event,
    read_published,
    rejection_event,
)
from noonmark.schemas.events.run_message import QUEUED, RunExtensions, RunQueued
from noonmark.schemas.events.settled import SettledRun, digest, settled_event, settled_events
from noonmark.schemas.export import documents
from noonmark.schemas.problems.refusal import FieldError, Refused

AT = datetime(2026, 6, 1, 9, tzinfo=UTC)
RUN, JOB = UUID("01981f2a-7c00-7000-8000-00000000000a"), UUID("01981f2a-7c00-7000-8000-0123456789ab")
OUTCOME = SettledRun(
    RUN, JOB, "default", AT, "schedule", "succeeded", None, 1, 1, "normal", "default", AT, AT + timedelta(seconds=1), None
)  # fmt: skip


def data_of(value: bytes) -> dict[str, Any]:
    return orjson.loads(value)["data"]


def test_settled_outcomes_read_back_as_they_were_recorded():
    value = settled_event(
        "default", [OUTCOME, structs.replace(OUTCOME, state="retrying", error="boom")], at=AT
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
    facts = structs.asdict(OUTCOME)
    assert read.outcomes[0].model_dump() == {
        **facts,
        "traceparent": None,
        "result_digest": None,
        "error_digest": None,
    }
    assert (read.outcomes[1].error, read.outcomes[1].error_digest) == ("boom", digest("boom"))


def test_the_fast_class_has_the_fields_that_every_outcome_has():
    optional = ["traceparent", "result_digest", "error_digest"]
    names = list(SettledRun.__struct_fields__)
    assert names + optional == list(RunOutcome.model_fields)


def test_optional_fields_are_only_in_outcomes_that_have_them():
    traceparent = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"
    failed = structs.replace(OUTCOME, state="retrying", error="boöm")
    given = [
        OUTCOME,
        OUTCOME.detailed(traceparent=traceparent),
        OUTCOME.detailed(result='{"sent":3}'),
        failed,
        failed.detailed(result="null", traceparent=traceparent),
    ]
    plain, traced, with_result, with_error, with_all = data_of(settled_event("default", given))["outcomes"]
    assert set(plain) == set(SettledRun.__struct_fields__)
    assert traced == {**plain, "traceparent": traceparent}
    assert with_result == {**plain, "result_digest": hashlib.sha256(b'{"sent":3}').hexdigest()}
    error_digest = hashlib.sha256("boöm".encode()).hexdigest()
    assert with_error == {**plain, "state": "retrying", "error": "boöm", "error_digest": error_digest}
    assert with_all == {**with_error, "traceparent": traceparent, "result_digest": digest("null")}


@pytest.mark.parametrize("result", [None, 0, 1.5, "ü", [1, {"b": None, "a": "\u2028\t/"}], {"é": True}])
def test_a_consumer_computes_the_digest_of_a_result_from_what_the_api_returns(result: object):
    stored = orjson.dumps(result).decode()
    compact = json.dumps(json.loads(stored), separators=(",", ":"), ensure_ascii=False)
    assert digest(stored) == hashlib.sha256(compact.encode()).hexdigest()


def test_consumers_ignore_what_they_do_not_know():
    data = data_of(settled_event("default", [OUTCOME]))
    data["outcomes"][0].update(state="snoozed", origin="workflow", lane="urgent", novel=1)
    read = read_published(Event("1", "/noonmark", lifecycle.SETTLED, None, None, None, {**data, "more": []}))
    assert isinstance(read, RunsSettled)
    assert read.outcomes[0].state == "snoozed"


def test_consumers_are_told_what_is_missing():
    with pytest.raises(Refused, match="/data/outcomes/0/run_id"):
        read_published(Event("1", "/n", lifecycle.SETTLED, None, None, None, {"outcomes": [{}]}))
    with pytest.raises(Refused, match="is not supported"):
        read_published(Event("1", "/n", "noonmark.runs.settled.v2", None, None, None, {}))


def test_many_outcomes_are_split_below_the_limit_and_none_is_lost():
    outcomes = [structs.replace(OUTCOME, fence=number) for number in range(100)]
    values = settled_events("default", outcomes, max_bytes=4000)
    assert len(values) > 1
    assert max(map(len, values)) <= 4000
    assert [item["fence"] for value in values for item in data_of(value)["outcomes"]] == list(range(100))
    assert len({orjson.loads(value)["id"] for value in values}) == len(values)


def test_an_endless_error_text_is_cut_rather_than_undeliverable():
    error = "x" * 2_000_000
    (value,) = settled_events("default", [structs.replace(OUTCOME, error=error)])
    assert len(value) < 6000
    assert data_of(value)["outcomes"][0]["error_digest"] == digest(error)


def test_an_error_text_that_is_no_unicode_is_told_all_the_same():
    (outcome,) = data_of(settled_event("default", [structs.replace(OUTCOME, error="a\ud800b")]))["outcomes"]
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


def test_the_run_message_of_the_hot_path_has_the_published_form():
    signer = messages.Signer({"k1": b"0123456789abcdef"}, "k1")
    run = messages.QueuedRun(RUN, JOB, "n", AT, 3, 2)
    value = messages.encode_run(signer, run, pool="p", lane=Lane.LOW)
    event = parse_event(value, None)
    assert (event.type, event.id) == (QUEUED, f"{RUN}.3")
    read, fast = RunQueued.model_validate(event.data), messages.open_runs(value, signer)
    known = {name: getattr(fast.runs[0], name) for name in messages.QueuedRun.__struct_fields__}
    assert read.model_dump() == known | {"pool": fast.pool, "lane": fast.lane}
    assert RunExtensions.model_validate_json(value).keyid == "k1"
    jsonschema.validate(orjson.loads(value), orjson.loads(documents()[f"{QUEUED}.json"]))
