"""Which traces submission events belong to: read only where traces are on."""

from __future__ import annotations

from typing import Final

import msgspec

from noonmark.core.monitoring.trace_context import SubmitTrace
from noonmark.intake.batch_checks import CheckedBatch
from noonmark.kafka.consumers.records import Record
from noonmark.telemetry.tracing import wall_clock

_NAMES: Final = ("traceparent", "ce_traceparent")
"""What tracing libraries call the header of a record, and the CloudEvents extension in binary mode."""


class _Extension(msgspec.Struct, gc=False):
    traceparent: str | None = None


_decode: Final = msgspec.json.Decoder(_Extension).decode


def read_traces(batch: CheckedBatch) -> None:
    """Begin the spans of those requests of a batch whose events carry a trace."""
    began = wall_clock(batch.checked_at)
    for place, (record, _) in enumerate(batch.sources):
        trace = SubmitTrace.begin(traceparent_of(record), began)
        if trace is not None:
            batch.requests[place] = batch.requests[place]._replace(trace=trace)


def traceparent_of(record: Record) -> str | None:
    """Return what a record says of its trace: the CloudEvents extension first, then the record's header.

    The extension is of whoever made the event; the header may be of a relay in between.
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
