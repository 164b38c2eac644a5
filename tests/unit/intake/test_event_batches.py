"""A CloudEvents batch: each event is taken or refused on its own, and in order."""

from __future__ import annotations

from typing import Any

import orjson
import pytest
from tests.unit.intake.test_authorising import EDITOR, MOMENT, NOBODY, NOW, OPERATOR, SOME_KEY, Keys, event

from noonmark.core.access.submission_signature import BATCH_TYPE, signature_header, signed_batch
from noonmark.intake.authorization import Authorizer
from noonmark.intake.batch_checks import CheckedBatch, check
from noonmark.intake.event_batches import MOST_EVENTS
from noonmark.intake.event_traces import traceparent_of
from noonmark.kafka.consumers.records import Record
from noonmark.schemas.events.submissions import PAUSE

HEADERS: list[tuple[str, Any]] = [("Content-Type", f"{BATCH_TYPE}; charset=utf-8".encode())]


def record(value: bytes, headers: Any = HEADERS, topic: str = "open.submissions", offset: int = 5) -> Record:
    return Record(topic, 3, offset, 1, None, value, 0, headers)


def batch_of(*events: bytes) -> bytes:
    return b"[" + b", ".join(events) + b"]"


def checked(*records: Record, max_bytes: int = 1_000_000) -> CheckedBatch:
    bound = {"open.submissions": "*", "acme.submissions": "acme"}
    return check(NOBODY, list(records), MOMENT, authorizer=Authorizer(bound, Keys()), max_bytes=max_bytes)


def taken(batch: CheckedBatch) -> list[str | None]:
    return [request.event.id if request.event else None for request in batch.requests]


def problems(batch: CheckedBatch) -> list[tuple[int | None, str, str]]:
    return [(one.index, one.reason, str(one.refused)) for one, _ in batch.refused]


def test_the_events_of_a_batch_are_taken_in_order_between_their_neighbours() -> None:
    batch = checked(
        record(event(event_id="a"), None, offset=4),
        record(batch_of(event(event_id="b"), event(event_id="c")), offset=5),
        record(event(event_id="d"), None, offset=6),
    )
    assert taken(batch) == ["a", "b", "c", "d"]
    assert [source.offset for source, _ in batch.sources] == [4, 5, 5, 6]
    assert batch.refused == []


def test_a_bad_event_is_refused_with_its_index_and_the_others_are_taken() -> None:
    bad = [event(event_id="bad", color="red"), b"7", b"[]", b'{"id": "\\ud800"}', b"{}", b"\x22text\x22"]
    batch = checked(record(batch_of(event(event_id="a"), *bad, event(event_id="z"))))

    assert taken(batch) == ["a", "z"]
    assert [(one.index, one.reason) for one, _ in batch.refused] == [
        (1, "invalid"), (2, "malformed"), (3, "malformed"), (4, "malformed"), (5, "malformed"), (6, "malformed"),
    ]  # fmt: skip
    first, _ = batch.refused[0]
    assert (first.source, first.event_id, first.value) == ("/shop", "bad", bad[0])
    assert "/data/color" in str(first.refused)
    assert "holds no batch" in str(batch.refused[2][0].refused)


@pytest.mark.parametrize(
    ("value", "words"),
    [
        (b"[]", "the batch is empty; expected 1 to 1000 events"),
        (b"[" + b"1," * MOST_EVENTS + b"1]", "the batch has 1001 events"),
        (event(), "is an object; expected a CloudEvents batch: a JSON array of events"),
        (b"", "is not JSON"),
        (b"[{]", "is not JSON"),
        (batch_of(event())[:-2], "is not JSON"),
        (b"\xef\xbb\xbf[]", "begins with a byte order mark"),
        ("[{}]".encode("utf-16"), "is UTF-16"),
        (b"\0\0\0\0\x07[{}]", "the frame of a schema registry (zero byte, schema 7)"),
        (b"[" * 50_000 + b"]" * 50_000, ""),
    ],
)
def test_what_is_no_batch_is_refused_as_a_whole(value: bytes, words: str) -> None:
    batch = checked(
        record(event(event_id="before"), None), record(value), record(event(event_id="after"), None)
    )
    assert taken(batch) == ["before", "after"]
    assert {reason for _, reason, _ in problems(batch)} == {"malformed"}
    assert words in problems(batch)[0][2]
    assert len(batch.refused) == 1


def test_a_batch_needs_its_content_type() -> None:
    (only,) = problems(checked(record(batch_of(event()), None)))
    assert only[0] is None
    assert f"a batch has content-type {BATCH_TYPE}" in only[2]


def test_a_batch_larger_than_a_record_may_be_is_refused_unread() -> None:
    (only,) = problems(checked(record(batch_of(event(), event())), max_bytes=200))
    assert only[:2] == (None, "too_large")


def test_a_signature_covers_the_batch_and_each_event_needs_its_own_permission() -> None:
    value = batch_of(event(event_id="a"), event(PAUSE, "b", name="n"), event(event_id="c", namespace="lab"))

    def signed(key: Any, over: bytes) -> CheckedBatch:
        sign = {"namespace": "acme", "now": NOW.timestamp(), "valid_seconds": 3600}
        header = signature_header(key, signed_batch(over), **sign)
        return checked(record(value, [*HEADERS, header], "t.submissions"))

    batch = signed(EDITOR, value)
    assert taken(batch) == ["a", "b"]
    assert [(index, reason) for index, reason, _ in problems(batch)] == [(2, "unauthorised")]
    assert {who.id for who in batch.signers.values()} == {"key:editor000000"}
    assert taken(signed(OPERATOR, value)) == ["b"]
    other = signed(EDITOR, batch_of(event(event_id="a")))
    assert taken(other) == []
    assert all("does not match" in words for _, _, words in problems(other))


def test_a_token_applies_to_each_event() -> None:
    value = batch_of(event(event_id="a"), event(event_id="b", namespace="lab"))
    batch = checked(record(value, [*HEADERS, ("noonmark-jwt", b"one")], "t.submissions"))
    assert taken(batch) == ["a"]
    assert [index for index, _, _ in problems(batch)] == [1]


def test_an_event_of_a_batch_keeps_its_own_trace_and_no_attribute_of_the_record() -> None:
    trace = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"
    traced = orjson.dumps({**orjson.loads(event(event_id="a")), "traceparent": trace})
    headers = [*HEADERS, ("ce_id", b"of-the-record"), ("ce_traceparent", b"x")]
    batch = checked(record(batch_of(traced, event(event_id="b"), b"{}"), headers))
    assert taken(batch) == ["a", "b"]
    assert [traceparent_of(source) for source, _ in batch.sources] == [trace, None]
    assert batch.refused[0][0].event_id is None


def test_keys_are_masked_in_what_is_kept_of_a_batch() -> None:
    batch = checked(record(batch_of(event(event_id=SOME_KEY), event(event_id="x", color=SOME_KEY))))
    (refused, _) = batch.refused[0]
    assert refused.batch is not None
    assert SOME_KEY.encode() not in refused.batch + refused.value
    assert len(batch.refused) + len(batch.requests) == 2


def test_a_transaction_takes_in_no_more_records_after_so_many_events() -> None:
    full = batch_of(*[b"1"] * MOST_EVENTS)
    records = [record(full, offset=offset) for offset in range(12)]
    batch = checked(*records)
    assert [one.offset for one in batch.records] == list(range(10))
    assert len(batch.refused) == 10 * MOST_EVENTS
    assert checked(*records[10:]).records == records[10:]
