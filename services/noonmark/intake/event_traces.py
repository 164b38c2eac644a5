"""Reads which trace a submission event belongs to, if tracing is on."""

from __future__ import annotations

from typing import Final

import msgspec

from noonmark.core.monitoring.trace_context import SpanKind, SubmitTrace
from noonmark.intake.batch_checks import CheckedBatch
from noonmark.kafka.consumers.records import Record
from noonmark.telemetry.span_attributes import of_message
from noonmark.telemetry.tracing import wall_clock

_NAMES: Final = ("traceparent", "ce_traceparent")
"""The record header of tracing libraries, and the CloudEvents extension in binary mode."""


class _Extension(msgspec.Struct, gc=False):
    traceparent: str | None = None


_decode: Final = msgspec.json.Decoder(_Extension).decode


def read_traces(batch: CheckedBatch, group: str) -> None:
    """Start the spans of those requests of a batch whose events contain a trace; `group` received them."""
    began = wall_clock(batch.checked_at)
    for place, (record, _) in enumerate(batch.sources):
        text = traceparent_of(record)
        if text is None:
            continue
        received = of_message(
            "process", record.topic, partition=record.partition, offset=record.offset, group=group
        )
        trace = SubmitTrace.begin(text, began, SpanKind.CONSUMER, received)
        if trace is not None:
            batch.requests[place] = batch.requests[place]._replace(trace=trace)


def traceparent_of(record: Record) -> str | None:
    """Return the `traceparent` of a record: the CloudEvents extension first, then the record's header.

    The creator of the event sets the extension; a relay in between may have set the header.
    """
    headers = {name: value for name, value in record.headers or () if name in _NAMES}
    found = headers.get("ce_traceparent")
    if found is None and b'"traceparent"' in record.value:
        found = _structured(record.value)
    if found is None:
        found = headers.get("traceparent")
    return found.decode("ascii", "replace") if isinstance(found, bytes) else found


def _structured(value: bytes) -> str | None:
    try:
        return _decode(value).traceparent
    except (msgspec.MsgspecError, ValueError, RecursionError):
        return None
