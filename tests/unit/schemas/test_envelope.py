"""CloudEvents on Kafka: both content modes, and bytes that are not an event."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any, TypeVar

import orjson
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from noonmark.schemas.events.envelope import (
    MAX_EVENT_BYTES,
    STRUCTURED_HEADERS,
    Event,
    identify,
    parse_event,
    render_binary,
    render_structured,
)
from noonmark.schemas.problems.refusal import Refused

AT = datetime(2026, 5, 1, 8, 0, 0, 5000, tzinfo=UTC)
ATTRIBUTES: dict[str, Any] = {
    "id": "42", "source": "/shop", "type": "noonmark.job.create.v1", "subject": "s", "time": AT, "sequence": 7,
}  # fmt: skip
DATA = {"type": "python", "handler": "a.b", "payload": {"ü": [1, None]}}
BASE: dict[str, Any] = {"specversion": "1.0", "id": "1", "source": "/s", "type": "t", "data": {}}


T = TypeVar("T")


def outcome(call: Callable[[], T]) -> T | Refused:
    try:
        return call()
    except Refused as refused:
        return refused


def event_bytes(**changes: Any) -> bytes:
    return orjson.dumps({name: value for name, value in {**BASE, **changes}.items() if value is not ...})


def refusal(value: bytes | None, headers: list[tuple[str, bytes]] | None = None) -> dict[str, str]:
    with pytest.raises(Refused) as caught:
        parse_event(value, headers)
    return {error.pointer: f"{error.message}; {error.expected}" for error in caught.value.errors}


def test_both_modes_carry_the_same_event():
    expected = Event("42", "/shop", "noonmark.job.create.v1", "s", AT, 7, DATA, screened=True)
    value = render_structured(**ATTRIBUTES, data=DATA)
    assert parse_event(value, STRUCTURED_HEADERS) == expected
    assert parse_event(value, None) == parse_event(value, []) == expected
    assert parse_event(*render_binary(**ATTRIBUTES, data=DATA)) == expected


def test_the_least_event_is_taken():
    assert parse_event(event_bytes(), None) == Event("1", "/s", "t", None, None, None, {}, screened=True)
    headers = [(f"ce_{name}", str(BASE[name]).encode()) for name in ("specversion", "id", "source", "type")]
    assert parse_event(b"{}", headers) == parse_event(event_bytes(), None)


def test_extension_attributes_and_parameters_of_the_media_type_are_allowed():
    headers = [("Content-Type", b"application/cloudevents+json; charset=UTF-8"), ("trace", b"\xff")]
    assert parse_event(event_bytes(traceparent="00-1", partitionkey="k"), headers).id == "1"
    value, binary = render_binary(id="1", source="/s", type="t", data={})
    assert parse_event(value, [*binary, ("ce_traceparent", b"00-1"), ("other", None)]).id == "1"


@pytest.mark.parametrize(("given", "number"), [("7", 7), (7, 7), ("0007", 7), (0, 0), (2**63 - 1, 2**63 - 1)])
def test_a_sequence_is_an_integer_or_its_digits(given: object, number: int):
    assert parse_event(event_bytes(sequence=given), None).sequence == number


@pytest.mark.parametrize(
    ("changes", "pointer", "words"),
    [
        ({"specversion": "0.3"}, "/specversion", '"0.3" is not supported; "1.0"'),
        ({"specversion": ...}, "/specversion", "is missing"),
        ({"specversion": 1.0}, "/specversion", "is not supported"),
        ({"id": ...}, "/id", "is missing; text of 1 to 255 characters"),
        ({"id": ""}, "/id", "is empty"),
        ({"id": 5}, "/id", "is an integer"),
        ({"id": "x" * 256}, "/id", "has 256 characters"),
        ({"source": None}, "/source", "is missing"),
        ({"source": "a\nb"}, "/source", "contains a control character"),
        ({"source": "a\0b"}, "/source", "U+0000"),
        ({"type": []}, "/type", "is an array"),
        ({"subject": ""}, "/subject", "is empty"),
        ({"time": "2026-05-01"}, "/time", "is not an instant; an RFC 3339 instant with its offset"),
        ({"time": 5}, "/time", "is a number"),
        ({"sequence": -1}, "/sequence", "-1 is not a sequence number"),
        ({"sequence": 2**63}, "/sequence", "is not a sequence number"),
        ({"sequence": "7.0"}, "/sequence", "an integer of at least 0, or its digits"),
        ({"sequence": "٣"}, "/sequence", "is not a sequence number"),
        ({"sequence": True}, "/sequence", "true is not a sequence number"),
        ({"datacontenttype": "text/plain"}, "/datacontenttype", '"text/plain" is not JSON; application/json'),
        ({"datacontenttype": 5}, "/datacontenttype", "is not JSON"),
        ({"data": ...}, "/data", "is missing; a JSON object"),
        ({"data": []}, "/data", "is an array; a JSON object"),
        ({"data": "{}"}, "/data", "is a string"),
        ({"data": None}, "/data", "is null"),
        ({"data_base64": "e30="}, "/data_base64", "binary data is not supported"),
        ({"data": {"a": "\0"}}, "/data/a", "U+0000"),
    ],
)
def test_a_bad_attribute_is_refused_with_its_pointer(changes: dict[str, Any], pointer: str, words: str):
    assert words in refusal(event_bytes(**changes))[pointer]


def test_every_bad_attribute_is_reported_at_once():
    assert refusal(b"{}").keys() == {"/specversion", "/id", "/source", "/type", "/data"}
    assert refusal(b"[]", [("ce_id", b"\xff"), ("ce_time", b"x"), ("content-type", b"text/xml")]).keys() == {
        "/specversion", "/id", "/source", "/type", "/time", "/datacontenttype", "/data",
    }  # fmt: skip


AVRO = b"\0\0\0\0\x07\x06one\x02"


@pytest.mark.parametrize(
    ("value", "content_type", "pointer", "words"),
    [
        (
            event_bytes(),
            "application/cloudevents+json; charset=utf-16",
            "",
            'charset "utf-16"; JSON in UTF-8',
        ),
        (b"{}", 'application/json;Charset="ISO-8859-1"', "", 'charset "iso-8859-1"'),
        ('{"a": "ä"}'.encode("utf-16"), "application/json", "/data", "is UTF-16"),
        (b"\xef\xbb\xbf{}", "application/json", "/data", "begins with a byte order mark"),
        (AVRO, "application/json", "/data", "schema 7) and no JSON after it, perhaps Avro or Protobuf"),
        (AVRO, "avro/binary", "/datacontenttype", '"avro/binary" is not JSON'),
        (b"\x06one", "application/avro", "/datacontenttype", '"application/avro" is not JSON'),
        (b"\x06one", "application/cloudevents+avro", "", '"application/cloudevents+avro" is not supported'),
    ],
)
def test_an_encoding_that_is_not_json_in_utf_8_is_named(
    value: bytes, content_type: str, pointer: str, words: str
):
    binary = [(f"ce_{name}", str(BASE[name]).encode()) for name in ("specversion", "id", "source", "type")]
    headers = [*binary, ("content-type", content_type.encode())]
    assert words in refusal(value, headers)[pointer]


def test_a_content_type_that_is_not_json_is_named_with_a_value_that_is_none():
    with pytest.raises(Refused) as caught:
        parse_event(AVRO, [("content-type", b"avro/binary")])
    first, second = caught.value.errors
    assert first.message == 'content-type "avro/binary" is not JSON'
    assert "perhaps Avro or Protobuf" in second.message
    accepted = parse_event(event_bytes(), [("content-type", b"text/plain; charset=utf-8")])
    assert accepted.id == "1", "what is an event is taken"


POISON = {
    "no value": (None, "has no value"),
    "empty": (b"", "is not JSON"),
    "no UTF-8": (b"\xff\xfe", "is UTF-16"),
    "a schema registry": (b"\0\0\0\0\x05" + event_bytes(), "the frame of a schema registry"),
    "50 levels": (
        event_bytes(data=...)[:-1] + b',"data":{"a":' + b"[" * 50 + b"]" * 50 + b"}}",
        "nested too deeply",
    ),
    "10,000 levels": (b'{"a":' + b"[" * 10_000, "is nested too deeply"),
    "NaN": (b'{"a":NaN}', "is NaN, which is not JSON"),
    "10 MB": (b'{"a":"' + b"x" * 10_000_000 + b'"}', f"at most {MAX_EVENT_BYTES} bytes"),
    "huge integer": (b'{"a":1' + b"0" * 10_000 + b"}", "beyond 64 bits"),
    "list": (b"[1]", "a CloudEvents 1.0 event: a JSON object"),
    "text": (b'"x"', "is a string"),
    "null": (b"null", "is null"),
    "zero bytes": (b"\0" * 100, "is not JSON"),
}


@pytest.mark.parametrize("name", POISON)
@pytest.mark.parametrize(
    "headers", [None, STRUCTURED_HEADERS, [("ce_id", b"1")]], ids=["bare", "structured", "binary"]
)
def test_poison_is_refused_whatever_its_headers_say(name: str, headers: list[tuple[str, bytes]] | None):
    value, words = POISON[name]
    found = refusal(value, headers)
    assert any(words in text for text in found.values()) or (headers and "/data" in found)
    identify(value, headers)


def test_a_name_that_occurs_twice_is_refused():
    assert "/id" in refusal(event_bytes()[:-1] + b',"id":"2"}', None)


@pytest.mark.parametrize(
    "media_type", [b"application/cloudevents-batch+json", b"application/cloudevents+avro"]
)
def test_other_event_formats_are_refused_by_name(media_type: bytes):
    found = refusal(event_bytes(), [("content-type", media_type), ("ce_id", b"1")])
    assert media_type.decode() in found[""]
    assert "application/cloudevents+json, one event" in found[""]


def test_headers_that_are_no_attributes_are_refused():
    value, headers = render_binary(id="1", source="/s", type="t", data={})
    assert "given twice" in refusal(value, [*headers, ("ce_id", b"2")])["/id"]
    assert "not UTF-8" in refusal(value, [*headers, ("ce_subject", b"\xff")])["/subject"]
    assert "is not an attribute" in refusal(value, [*headers, ("ce_", b"2")])[""]
    assert "is missing" in refusal(value, [header for header in headers if header[0] != "ce_type"])["/type"]
    assert "control character" in refusal(value, [*headers[:-1], ("ce_type", b"a\0b")])["/type"]


def test_a_refused_event_is_named_as_far_as_it_can_be():
    assert identify(event_bytes(specversion="9"), None) == ("/s", "1")
    assert identify(b"\xff", [("ce_id", b"1"), ("ce_source", b"/s")]) == ("/s", "1")
    assert identify(b'{"id":5,"source":"a\\u0000"}', None) == (None, None)
    assert (
        identify(b"[]", None)
        == identify(None, None)
        == identify(b"\xff", [("ce_id", b"\xff")])
        == (None, None)
    )


HEADERS = st.none() | st.lists(
    st.tuples(
        st.sampled_from(
            ["content-type", "ce_id", "ce_source", "ce_type", "ce_specversion", "ce_time", "ce_\0", "x"]
        )
        | st.text(max_size=8),
        st.none()
        | st.binary(max_size=12)
        | st.sampled_from([b"1.0", b"application/json", b"application/cloudevents+json"]),
    ),
    max_size=6,
)
JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**63), 2**64 - 1) | st.floats() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=6,
)
EVENTS = st.dictionaries(st.sampled_from([*BASE, "time", "sequence", "subject", "data_base64"]), JSON).map(
    lambda changes: {**BASE, **changes}
)


def encoded(value: object) -> bytes:
    try:
        return orjson.dumps(value)
    except TypeError:  # half of a surrogate pair
        return repr(value).encode("utf-8", "surrogatepass")


@settings(max_examples=150, deadline=None)
@given(st.none() | st.binary(max_size=40) | (JSON | EVENTS).map(encoded), HEADERS)
def test_any_record_is_an_event_or_refused(value: bytes | None, headers: Any):
    found = outcome(lambda: parse_event(value, headers))
    if isinstance(found, Refused):
        pointers = "".join(error.pointer for error in found.errors)
        assert pointers.isprintable() or not pointers.isascii()
        assert orjson.dumps(found.errors)
    else:
        assert found.id
        assert isinstance(found.data, dict)
    identify(value, headers)
