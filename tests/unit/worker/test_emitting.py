"""Events that attempts emit: under whose rules, how many, and what they say about their run."""

from __future__ import annotations

import asyncio
import sys
from concurrent.futures import ThreadPoolExecutor

import orjson
import pytest
from tests.unit.worker.hands import NOW, hand, services

from noonmark.attempts.context import context_of
from noonmark.attempts.emitter import Emitter
from noonmark.core.kinds.emitted_event import (
    EmitRefusedError,
    Event,
    check_allow_list,
    event_from_wire,
    event_to_wire,
)
from noonmark.core.states import RunState
from noonmark.dispatcher.refused_events import RefusedRound
from noonmark.handlers import Context
from noonmark.store.database.row_types import OutboxRow
from noonmark.worker.kinds.kafka import KafkaKind

EMITTER = Emitter(["billing.invoices", "audit.*"], "acme")


def test_an_event_says_which_run_it_is_of_and_is_known_again():
    run = hand(fence=3)
    event_id = EMITTER.emit(run, Event.of("billing.invoices", {"id": 1}, "42", {"trace": "\u00e9"}))
    EMITTER.emit(run, Event.of("audit.log", "text"))
    first, second = run.ensure_extras().emits

    assert (first.topic, first.key, first.value) == ("billing.invoices", b"42", b'{"id":1}')
    assert event_id == f"{run.run.id}/0"
    assert dict(first.headers) == {
        "ce_specversion": "1.0",
        "ce_id": event_id,
        "ce_source": f"/noonmark/tests/jobs/{run.run.job_id}",
        "ce_type": "noonmark.event.emitted.v1",
        "ce_time": "2026-06-01T09:00:00Z",
        "noonmark-run-id": str(run.run.id),
        "noonmark-fence": "3",
        "noonmark-idempotency-key": f"{run.run.job_id}/2026-06-01T09:00:00.000000Z/schedule/",
        "content-type": "application/json",
        "trace": "\u00e9",
    }
    assert (second.key, dict(second.headers)["content-type"]) == (None, "text/plain; charset=utf-8")
    assert dict(second.headers)["ce_id"] == f"{run.run.id}/1"
    # A later attempt of the run emits the same events under the same ids.
    again = hand(fence=4, id=run.run.id)
    assert EMITTER.emit(again, Event.of("billing.invoices", {"id": 1})) == event_id


def test_a_content_type_of_the_job_replaces_the_one_that_was_guessed():
    run = hand()
    EMITTER.emit(run, Event.of("audit.x", "<a/>", None, {"Content-Type": "application/xml"}))
    assert [pair for pair in run.ensure_extras().emits[0].headers if pair[0].lower() == "content-type"] == [
        ("content-type", "application/xml")
    ]


@pytest.mark.parametrize(
    ("topic", "words"),
    [
        (
            "billing.invoices2",
            "jobs may not write to the topic 'billing.invoices2': the worker's setting NOONMARK_EMIT_TOPICS",
        ),
        ("auditlog", "does not list it"),
        ("acme.lifecycle", "'acme.lifecycle' belongs to noonmark itself"),
        ("acme_lifecycle", "belongs to noonmark itself"),
        ("noonmark.submissions", "belongs to noonmark itself"),
        ("__consumer_offsets", "belongs to Kafka itself"),
    ],
)
def test_topics_that_jobs_may_not_write_to(topic, words):
    run = hand()
    all_of_them = Emitter([*EMITTER._allowed, "acme*", "noonmark*", "_*"], "acme")
    for emitter in (EMITTER,) if "list" in words or "NOONMARK" in words else (EMITTER, all_of_them):
        with pytest.raises(EmitRefusedError, match=words.replace("(", r"\(")):
            emitter.emit(run, Event(topic, b"x", "text/plain"))
    assert run.ensure_extras().emits == []


def test_without_a_list_nothing_may_be_emitted():
    with pytest.raises(EmitRefusedError, match="NOONMARK_EMIT_TOPICS"):
        Emitter((), "noonmark").emit(hand(), Event.of("billing.invoices", 1))


def test_count_and_bytes_of_an_attempts_events_are_bounded():
    run = hand()
    for _ in range(100):
        EMITTER.emit(run, Event.of("audit.x", 1))
    with pytest.raises(EmitRefusedError, match="can emit at most 100 events"):
        EMITTER.emit(run, Event.of("audit.x", 1))
    run = hand()
    EMITTER.emit(run, Event.of("audit.x", "x" * 200_000))
    with pytest.raises(EmitRefusedError, match="262144 bytes in total"):
        EMITTER.emit(run, Event.of("audit.x", "x" * 62_000))
    EMITTER.emit(run, Event.of("audit.x", "small"))
    assert len(run.ensure_extras().emits) == 2


@pytest.mark.parametrize(
    ("value", "key", "headers", "words"),
    [
        (None, None, None, "the value of an event is missing"),
        ({1, 2}, None, None, "the value of an event is not JSON"),
        (float, None, None, "the value of an event is not JSON"),
        ("\ud800", None, None, "half a surrogate pair"),
        (1, 5, None, "the key of an event is a int; use a string"),
        (1, "", None, "the key of an event has 0 bytes"),
        (1, b"x" * 1025, None, "the key of an event has 1025 bytes"),
        (1, None, [("a", "b")], "must be an object"),
        (1, None, {"a": b"b"}, "the value of header a must be a string"),
        (1, None, {"a\n": "b"}, "is not 1 to 200 printable ASCII characters"),
        (1, None, {"CE_id": "b"}, "header CE_id is set by noonmark"),
        (1, None, {str(n): "" for n in range(51)}, "51 headers are too many"),
    ],
)
def test_what_is_no_event(value, key, headers, words):
    with pytest.raises(EmitRefusedError, match=words):
        Event.of("audit.x", value, key, headers)


@pytest.mark.parametrize("value", [b"\x00\xff", "text", {"a": [1, None]}])
def test_an_event_passes_between_processes_unchanged(value):
    event = Event.of("audit.x", value, b"\xff\x00", {"a": "\u00e9"})
    assert event_from_wire(orjson.loads(orjson.dumps(event_to_wire(event)))) == event


@pytest.mark.parametrize(
    "broken", [{}, {"topic": "audit.x", "value": 1, "key": None}, {"topic": "__x", "value": "", "key": None}]
)
def test_what_a_handlers_process_made_up_is_refused(broken):
    with pytest.raises(EmitRefusedError):
        event_from_wire(broken)


def test_a_handler_emits_through_its_context_and_hears_at_once_what_is_not_allowed():
    run = hand()
    ctx = context_of(run, services())
    assert ctx.emit("tests.a", {"n": 1}, key="k") == f"{run.run.id}/0"
    with pytest.raises(EmitRefusedError, match="NOONMARK_EMIT_TOPICS"):
        ctx.emit("other", 1)
    assert [one.topic for one in run.ensure_extras().emits] == ["tests.a"]


def test_a_test_of_a_handler_sees_what_it_emitted():
    run = hand().run
    ctx = Context(run.id, run.job_id, "tests", 1, NOW, 1)
    ctx.emit("billing.invoices", {"id": 1}, key="42")
    assert ctx.effects.emitted == [Event("billing.invoices", b'{"id":1}', "application/json", b"42")]
    with pytest.raises(EmitRefusedError):
        ctx.emit("__x", 1)


def kafka_job(**payload):
    run = hand(kind="kafka")
    run.payload = {"topic": "billing.invoices", "value": {"id": 1}, "headers": {}, **payload}
    return run


def test_a_kafka_job_succeeds_with_its_event():
    run = kafka_job(key="42")
    outcome = asyncio.run(KafkaKind(EMITTER).run(run))
    assert outcome.state is RunState.SUCCEEDED
    assert orjson.loads(outcome.result) == {"topic": "billing.invoices", "event": f"{run.run.id}/0"}
    assert [(one.topic, one.key) for one in outcome.extras.emits] == [("billing.invoices", b"42")]


def test_a_kafka_job_for_a_topic_that_is_not_listed_is_not_tried_again():
    outcome = asyncio.run(KafkaKind(EMITTER).run(kafka_job(topic="other")))
    assert (outcome.state, outcome.reason) == (RunState.DEAD, "not_retryable")
    assert outcome.error == (
        "not sent: jobs may not write to the topic 'other': the worker's setting NOONMARK_EMIT_TOPICS does not list it"
    )
    assert outcome.extras is None


def test_an_operators_list_is_checked_when_it_is_read():
    check_allow_list(["a", "a.*", "*"])
    for bad in ("", "a b", "a*b", "**"):
        with pytest.raises(ValueError, match="is neither a topic nor a topic prefix"):
            check_allow_list([bad])


def test_refused_events_are_tried_in_rounds_a_few_at_a_time(monkeypatch):
    rows = [OutboxRow("(0,1)", n, 0, 4, *[None] * 11) for n in range(1, 251)]
    now = [0.0]

    def read(_connection, _slices, limit, *, after):
        return [row for row in rows if row.seq > after][:limit]

    monkeypatch.setattr("noonmark.store.outbox.relay.read_refused", read)
    tries = RefusedRound(lambda: now[0])
    assert [len(tries.read(None, [0])) for _ in range(5)] == [100, 100, 50, 0, 0]
    now[0] = 59.0
    assert tries.read(None, [0]) == []
    now[0] = 60.0
    assert [row.seq for row in tries.read(None, [0])] == list(range(1, 101))
    assert [len(tries.read(None, [0])) for _ in range(3)] == [100, 50, 0]
    tries.soon()
    now[0] = 62.0
    assert len(tries.read(None, [0])) == 100


def test_threads_of_a_handler_emit_under_ids_of_their_own():
    run = hand()
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        with ThreadPoolExecutor(8) as threads:
            ids = list(threads.map(lambda n: EMITTER.emit(run, Event.of("audit.log", {"n": n})), range(100)))
    finally:
        sys.setswitchinterval(before)

    assert sorted(ids) == sorted(f"{run.run.id}/{n}" for n in range(100))
    assert [dict(event.headers)["ce_id"] for event in run.ensure_extras().emits] == [
        f"{run.run.id}/{n}" for n in range(100)
    ]


def test_one_event_that_is_too_large_is_refused_before_it_is_sent_anywhere():
    with pytest.raises(EmitRefusedError, match="262144 bytes"):
        Event.of("audit.log", "x" * 262_145)
