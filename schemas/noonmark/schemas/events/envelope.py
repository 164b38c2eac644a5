"""Reads and writes CloudEvents 1.0 on Kafka, in structured and binary content mode.

Pointers in refusals refer to the event in structured mode, even if it arrived in binary mode: `/source` is
the attribute (header `ce_source`), `/data/name` a field of the data.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from datetime import datetime
from typing import Any, Final

import msgspec
import orjson

from noonmark.core.access.submission_signature import BATCH_TYPE
from noonmark.core.instants import format_instant, parse_instant
from noonmark.schemas.problems.refusal import FieldError, Refused, kind_of, pointer, shown
from noonmark.schemas.problems.screening import MAX_DEPTH, parse_json

Headers = Sequence[tuple[str, bytes | str | None]]

STRUCTURED_TYPE: Final = "application/cloudevents+json"
STRUCTURED_HEADERS: Final[list[tuple[str, bytes]]] = [("content-type", STRUCTURED_TYPE.encode())]
MAX_EVENT_BYTES: Final = 256 * 1024
MAX_ATTRIBUTE: Final = 255

_CLOUDEVENTS: Final = "application/cloudevents"
_REQUIRED: Final = ("id", "source", "type")
_TEXT: Final = re.compile(r"[^\x00-\x1f\x7f-\x9f]{1,255}")
_SEQUENCE: Final = re.compile(r"[0-9]{1,19}")
_MAX_SEQUENCE: Final = 2**63 - 1
_NAMES: Final = re.compile(r"[a-z0-9]{1,64}")


class Event(msgspec.Struct, frozen=True, gc=False):
    """One event, independent of its content mode.

    Attributes:
        id: unique within `source`; both together identify a repeated event.
        source: the sender.
        type: the event type with its major version.
        subject: the subject, if given.
        time: the time of the event, aware UTC, if given.
        sequence: order among the events of one job, if given.
        data: the data, a JSON object.
        screened: whether `data` has passed `screening.parse_json`.
    """

    id: str
    source: str
    type: str
    subject: str | None
    time: datetime | None
    sequence: int | None
    data: object
    screened: bool = False


def parse_event(value: bytes | None, headers: Headers | None, *, max_bytes: int = MAX_EVENT_BYTES) -> Event:
    """Read a Kafka record as an event. Arbitrary bytes raise no exception other than `Refused`.

    Raises:
        Refused: if the record is not a valid event; lists every problem of its attributes.
    """
    if value is None:
        raise Refused([FieldError("", "the record has no value", "a CloudEvents 1.0 event")])
    if len(value) > max_bytes:
        raise Refused([FieldError("", f"the record is {len(value)} bytes", f"at most {max_bytes} bytes")])
    problems: list[FieldError] = []
    media_type, attributes = _read_headers(headers or (), problems)
    if attributes and not media_type.startswith(_CLOUDEVENTS):
        event = _binary(value, media_type, attributes, problems)
    else:
        event = _structured(value, media_type, problems)
    if problems or event is None:
        raise Refused(problems)
    return event


def identify(value: bytes | None, headers: Headers | None) -> tuple[str | None, str | None]:
    """Return source and id of a refused record, as far as they can be read, for its rejection."""
    _, attributes = _read_headers(headers or (), [])
    if not attributes and value is not None and len(value) <= 16 * MAX_EVENT_BYTES:
        try:
            body = orjson.loads(value)
        except orjson.JSONDecodeError:
            body = None
        attributes = body if isinstance(body, dict) else {}
    source, event_id = (
        text if isinstance(text, str) and _TEXT.fullmatch(text) else None
        for text in (attributes.get("source"), attributes.get("id"))
    )
    return source, event_id


def render_structured(
    *,
    id: str,  # noqa: A002 - the attribute's name in CloudEvents
    source: str,
    type: str,  # noqa: A002 - the attribute's name in CloudEvents
    data: object,
    subject: str | None = None,
    time: datetime | None = None,
    sequence: int | None = None,
) -> bytes:
    """Return the value of a Kafka record in structured mode; its headers are `STRUCTURED_HEADERS`."""
    event: dict[str, Any] = {"specversion": "1.0", "id": id, "source": source, "type": type}
    event.update(_optional(subject, time, sequence))
    event["datacontenttype"] = "application/json"
    event["data"] = data
    return orjson.dumps(event, option=orjson.OPT_UTC_Z)


def render_binary(
    *,
    id: str,  # noqa: A002 - the attribute's name in CloudEvents
    source: str,
    type: str,  # noqa: A002 - the attribute's name in CloudEvents
    data: object,
    subject: str | None = None,
    time: datetime | None = None,
    sequence: int | None = None,
) -> tuple[bytes, list[tuple[str, bytes]]]:
    """Return value and headers of a Kafka record in binary mode."""
    attributes = {"specversion": "1.0", "id": id, "source": source, "type": type}
    attributes.update(_optional(subject, time, sequence))
    headers = [(f"ce_{name}", text.encode()) for name, text in attributes.items()]
    return orjson.dumps(data, option=orjson.OPT_UTC_Z), [("content-type", b"application/json"), *headers]


def _optional(subject: str | None, time: datetime | None, sequence: int | None) -> dict[str, str]:
    optional = {}
    if subject is not None:
        optional["subject"] = subject
    if time is not None:
        optional["time"] = format_instant(time)
    if sequence is not None:
        optional["sequence"] = str(sequence)
    return optional


def _read_headers(headers: Headers, problems: list[FieldError]) -> tuple[str, dict[str, Any]]:
    """Return the media type ("" if absent) and the attributes of binary mode."""
    if headers == STRUCTURED_HEADERS:
        return STRUCTURED_TYPE, {}
    media_type = ""
    attributes: dict[str, Any] = {}
    for key, raw in headers:
        name = key.lower()
        if name != "content-type" and not name.startswith("ce_"):
            continue
        try:
            text = raw.decode() if isinstance(raw, bytes) else raw or ""
        except UnicodeDecodeError:
            problems.append(
                FieldError(pointer((name.removeprefix("ce_"),)), "the header is not UTF-8", "UTF-8 text")
            )
            continue
        if name == "content-type":
            media_type = _media_type(text)
            problems += _charset_problems(text)
        elif not _NAMES.fullmatch(name[3:]):
            problems.append(FieldError("", f"header {shown(key)} is not an attribute", "ce_ and a-z or 0-9"))
        elif name[3:] in attributes:
            problems.append(FieldError("/" + name[3:], "the header is given twice", "one value"))
        else:
            attributes[name[3:]] = text
    return media_type, attributes


def _charset_problems(content_type: str) -> list[FieldError]:
    """Refuse another encoding than that of JSON, which would be read as another text."""
    # Nearly every header has no parameter.
    if ";" not in content_type:
        return []
    for parameter in content_type.split(";")[1:]:
        name, _, value = parameter.partition("=")
        charset = value.strip().strip('"').lower()
        if name.strip().lower() == "charset" and charset not in {"utf-8", "utf8", "us-ascii"}:
            return [FieldError("", f"content-type says charset {shown(charset)}", "JSON in UTF-8")]
    return []


def content_type_of(raw: bytes | str) -> str:
    """Return the media type in the value of a header `content-type`, in lower case and without parameters."""
    return _media_type(raw.decode("utf-8", "replace") if isinstance(raw, bytes) else raw)


def _media_type(text: str) -> str:
    return text.partition(";")[0].strip().lower()


def _binary(
    value: bytes, media_type: str, attributes: dict[str, Any], problems: list[FieldError]
) -> Event | None:
    try:
        data = parse_json(value)
    except Refused as refused:
        problems += [
            FieldError("/data" + item.pointer, item.message, item.expected) for item in refused.errors
        ]
        data = {}
    if media_type:
        attributes["datacontenttype"] = media_type
    return _event(attributes, data, problems)


def _structured(value: bytes, media_type: str, problems: list[FieldError]) -> Event | None:
    if media_type != STRUCTURED_TYPE and media_type.startswith(_CLOUDEVENTS):
        problems.append(
            FieldError(
                "",
                f"content-type {shown(media_type)} is not supported",
                f"{STRUCTURED_TYPE}, one event, or {BATCH_TYPE}",
            )
        )
        return None
    try:
        # One level more than a document can have, for the event around it.
        body = parse_json(value, max_depth=MAX_DEPTH + 1)
    except Refused as refused:
        if media_type and not _is_json(media_type):
            problems.append(FieldError("", f"content-type {shown(media_type)} is not JSON", STRUCTURED_TYPE))
        problems += refused.errors
        return None
    if not isinstance(body, dict):
        wanted = "a CloudEvents 1.0 event: a JSON object"
        if isinstance(body, list):
            wanted += f"; a batch has content-type {BATCH_TYPE} and holds no batch"
        problems.append(FieldError("", f"is {kind_of(body)}", wanted))
        return None
    if "data_base64" in body:
        problems.append(FieldError("/data_base64", "binary data is not supported", "a JSON object in /data"))
    elif "data" not in body:
        problems.append(FieldError("/data", "is missing", "a JSON object"))
    return _event(body, body.get("data", {}), problems)


def _event(attributes: dict[str, Any], data: object, problems: list[FieldError]) -> Event | None:
    if (version := attributes.get("specversion")) != "1.0":
        message = "is missing" if version is None else f"{shown(version)} is not supported"
        problems.append(FieldError("/specversion", message, '"1.0"'))
    for name in _REQUIRED:
        _check_text(attributes, name, problems)
    if attributes.get("subject") is not None:
        _check_text(attributes, "subject", problems)
    if (content_type := attributes.get("datacontenttype")) not in (None, "application/json"):
        _check_content_type(content_type, problems)
    if (time := attributes.get("time")) is not None:
        time = _time(time, problems)
    if (sequence := attributes.get("sequence")) is not None:
        sequence = _sequence(sequence, problems)
    if not isinstance(data, dict):
        problems.append(FieldError("/data", f"is {kind_of(data)}", "a JSON object"))
    if problems:
        return None
    return Event(
        attributes["id"],
        attributes["source"],
        attributes["type"],
        attributes.get("subject"),
        time,
        sequence,
        data,
        screened=True,
    )


def _check_text(attributes: dict[str, Any], name: str, problems: list[FieldError]) -> None:
    text = attributes.get(name)
    # Printable ASCII, which nearly every text is, needs no expression.
    if type(text) is str and text.isascii() and text.isprintable() and 0 < len(text) <= MAX_ATTRIBUTE:
        return
    if isinstance(text, str) and _TEXT.fullmatch(text):
        return
    if text is None:
        message = "is missing"
    elif not isinstance(text, str):
        message = f"is {kind_of(text)}"
    elif not text:
        message = "is empty"
    elif len(text) > MAX_ATTRIBUTE:
        message = f"has {len(text)} characters"
    else:
        message = "contains a control character"
    problems.append(FieldError(f"/{name}", message, f"text of 1 to {MAX_ATTRIBUTE} characters"))


def _check_content_type(content_type: object, problems: list[FieldError]) -> None:
    media_type = _media_type(content_type) if isinstance(content_type, str) else ""
    if not _is_json(media_type):
        problems.append(
            FieldError("/datacontenttype", f"{shown(content_type)} is not JSON", "application/json")
        )


def _is_json(media_type: str) -> bool:
    return media_type in {"application/json", "text/json"} or media_type.endswith("+json")


def _time(value: object, problems: list[FieldError]) -> datetime | None:
    try:
        return parse_instant(value)
    except ValueError as error:
        problems.append(FieldError.from_text("/time", str(error)))
        return None


def _sequence(value: object, problems: list[FieldError]) -> int | None:
    number = -1
    if isinstance(value, int) and not isinstance(value, bool):
        number = value
    elif isinstance(value, str) and _SEQUENCE.fullmatch(value):
        number = int(value)
    if 0 <= number <= _MAX_SEQUENCE:
        return number
    problems.append(
        FieldError(
            "/sequence", f"{shown(value)} is not a sequence number", "an integer of at least 0, or its digits"
        )
    )
    return None
