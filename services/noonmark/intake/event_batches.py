"""Splits a CloudEvents batch into the records that its events would be on their own."""

from __future__ import annotations

import json
import re
from typing import Final

import msgspec

from noonmark.core.access.submission_signature import BATCH_TYPE
from noonmark.intake.key_masking import masked
from noonmark.kafka.consumers.records import Headers, Record
from noonmark.schemas.events.envelope import STRUCTURED_HEADERS, content_type_of
from noonmark.schemas.problems.refusal import FieldError, Refused, kind_of
from noonmark.schemas.problems.screening import MAX_DEPTH, parse_json

MOST_EVENTS: Final = 1000
"""Most events of one batch."""

_BEGIN: Final = re.compile(r"(\[)[ \t\r\n]*")
_NEXT: Final = re.compile(r"[ \t\r\n]*([,\]])[ \t\r\n]*")
_scan: Final = json.JSONDecoder(parse_int=str, parse_float=str).raw_decode
_WORD: Final = b"batch"
_decode: Final = msgspec.json.Decoder(list[msgspec.Raw]).decode


class BatchedRecord(Record, frozen=True, gc=False, kw_only=True):
    """One event of a batch, as a record of its own with the position of the batch.

    Attributes:
        index: its index in the batch, from 0.
        batch: the value of the batch, which a signature covers.
        shown: the same with a mask for every key, to be stored with a rejection.
    """

    index: int
    batch: bytes
    shown: bytes


def is_batch(record: Record) -> bool:
    """Return whether a record says that it is a batch."""
    # Most records are one event: the comparison or the substring test clears them.
    if record.headers == STRUCTURED_HEADERS:
        return False
    for name, raw in record.headers or ():
        if raw is None or (_WORD not in raw if isinstance(raw, bytes) else "batch" not in raw):
            continue
        if name.lower() == "content-type" and content_type_of(raw) == BATCH_TYPE:
            return True
    return False


def split(record: Record) -> list[Record]:
    """Return the events of a batch, in order.

    Raises:
        Refused: the value is not an array of 1 to `MOST_EVENTS` values; then no event of it is accepted.
    """
    parts = _parts(record.value)
    if parts is None:
        # The array, the event and the levels of a document.
        found = parse_json(record.value, max_depth=MAX_DEPTH + 2)
        kind = "cannot be read as a batch" if isinstance(found, list) else f"is {kind_of(found)}"
        raise Refused([FieldError("", kind, "a CloudEvents batch: a JSON array of events")])
    if not 0 < len(parts) <= MOST_EVENTS:
        message = f"the batch has {len(parts)} events" if parts else "the batch is empty"
        raise Refused([FieldError("", message, f"1 to {MOST_EVENTS} events")])
    headers: Headers = [*STRUCTURED_HEADERS, *_of_the_record(record.headers or [])]
    shown = masked(record.value)
    return [
        BatchedRecord(
            record.topic,
            record.partition,
            record.offset,
            record.epoch,
            record.key,
            part,
            record.timestamp_ms,
            headers,
            record.is_stamped,
            index=index,
            batch=record.value,
            shown=shown,
        )
        for index, part in enumerate(parts)
    ]


def _parts(value: bytes) -> list[bytes] | None:
    """Return the text of each value of an array; None if it is no array of JSON values."""
    try:
        return [bytes(part) for part in _decode(value)]
    except (msgspec.MsgspecError, ValueError, RecursionError):
        # It stops at a half surrogate pair, which concerns one event only.
        return _lenient_parts(value)


def _lenient_parts(value: bytes) -> list[bytes] | None:
    parts = []
    try:
        text = value.decode().strip(" \t\r\n")
        between = _BEGIN.match(text)
        while between is not None and between[1] != "]":
            begin = between.end()
            _, end = _scan(text, begin)
            parts.append(text[begin:end].encode())
            between = _NEXT.match(text, end)
    except (ValueError, RecursionError):
        return None
    return parts if between is not None and between.end() == len(text) else None


def _of_the_record(headers: Headers) -> Headers:
    """Return the headers that apply to each event: attributes of binary mode do not, credentials do."""
    return [
        (name, raw)
        for name, raw in headers
        if name.lower() == "ce_authorization" or not name.lower().startswith(("content-type", "ce_"))
    ]
