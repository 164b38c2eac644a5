"""The payload of Kafka jobs: what is taken, and the exact words for what is not."""

from __future__ import annotations

from typing import Any

import orjson
import pytest
from tests.unit.schemas.job_cases import parse, refusal

from noonmark.store.documents.jobs import effective


def kafka(**payload: Any) -> dict[str, Any]:
    return {"type": "kafka", "payload": {"topic": "billing.invoices", "value": {"id": 1}, **payload}}


OWN = "a topic that does not belong to Kafka or noonmark"
HEADERS = "an object of at most 50 headers with string values"
NO_SECRET = (
    "contains a reference to a secret that other users could read; "
    "no secret://: events are stored, and all consumers can read them"
)
BAD: list[tuple[dict[str, Any], str, str]] = [
    (
        kafka(topic="__consumer_offsets"),
        "/payload/topic",
        f"'__consumer_offsets' belongs to Kafka itself; jobs cannot write to it; {OWN}",
    ),
    (
        kafka(topic="noonmark.runs.default.high"),
        "/payload/topic",
        f"'noonmark.runs.default.high' belongs to noonmark itself; jobs cannot write to it; {OWN}",
    ),
    (
        kafka(topic="noonmark_submissions"),
        "/payload/topic",
        f"'noonmark_submissions' belongs to noonmark itself; jobs cannot write to it; {OWN}",
    ),
    (
        kafka(topic="a topic"),
        "/payload/topic",
        "'a topic' is not a topic name; 1 to 249 of letters, digits, '.', '_' and '-'",
    ),
    (
        kafka(topic=".."),
        "/payload/topic",
        "'..' is not a topic name; 1 to 249 of letters, digits, '.', '_' and '-'",
    ),
    (kafka(topic=7), "/payload/topic", f"the value is an integer; {OWN}"),
    (
        kafka(value=None),
        "/payload/value",
        "the value of an event is missing; tombstones cannot be emitted; a string, or any JSON except null",
    ),
    (kafka(key=""), "/payload/key", "has fewer characters than 1; a string of 1 to 1024 bytes"),
    (
        kafka(key="\u00e9" * 600),
        "/payload/key",
        "the key of an event has 1200 bytes; use 1 to 1024; a string of 1 to 1024 bytes",
    ),
    (kafka(key=5), "/payload/key", "the value is an integer; a string of 1 to 1024 bytes"),
    (
        kafka(headers={"ce_id": "s3cr3t"}),
        "/payload/headers",
        "header ce_id is set by noonmark and cannot be given; other names than ce_… and noonmark-…",
    ),
    (
        kafka(headers={"Noonmark-Fence": "9"}),
        "/payload/headers",
        "header Noonmark-Fence is set by noonmark and cannot be given; other names than ce_… and noonmark-…",
    ),
    (kafka(headers={"a": 1}), "/payload/headers/a", f"the value is an integer; {HEADERS}"),
    (
        kafka(headers={"a b": "s3cr3t"}),
        "/payload/headers/a b",
        f'the name "a b" has a form that is not allowed; {HEADERS}',
    ),
    (
        kafka(headers={"a": "x" * 17_000}),
        "/payload/headers",
        "the headers are longer than 16384 bytes; names and values of at most 16384 bytes together",
    ),
    (
        kafka(**{"bootstrap.servers": "evil.example:9092"}),
        "/payload/bootstrap.servers",
        "unknown field; one of topic, value, key, headers",
    ),
    ({"type": "kafka"}, "/payload", "is missing; an object with topic and value"),
    (
        kafka(value={"token": "secret://s"}),
        "/payload/value",
        NO_SECRET,
    ),
]


@pytest.mark.parametrize(("document", "pointer", "words"), BAD)
def test_a_bad_event_is_refused_with_its_place_and_what_would_be_right(document, pointer, words):
    found = refusal(document)
    assert found == {pointer: words}
    assert "s3cr3t" not in str(found)


def test_defaults_are_spelt_out_and_a_job_read_back_is_the_same():
    spec = parse(kafka(key="42", value="text"))
    assert orjson.loads(spec.payload_json) == {
        "topic": "billing.invoices",
        "value": "text",
        "headers": {},
        "key": "42",
    }
    again = parse({name: value for name, value in effective(spec).items() if value is not None})
    assert again.payload_json == spec.payload_json
