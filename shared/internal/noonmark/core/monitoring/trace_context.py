"""Trace contexts: W3C `traceparent`, and the ids of a run's spans, which are computed from the run.

A span's id is computed from the run, the hop and the fence. So a process can use another process's span as
its parent without receiving its id, and a hop that is repeated after a crash is the same span again.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from enum import StrEnum
from hashlib import blake2b
from typing import Final, NamedTuple
from uuid import UUID

_FORM: Final = re.compile(r"([0-9a-f]{2})-([0-9a-f]{32})-([0-9a-f]{16})-([0-9a-f]{2})(-.*)?", re.DOTALL)
_NO_TRACE: Final = "0" * 32
_NO_SPAN: Final = "0" * 16
_SAMPLED: Final = 0x01
_RANDOM_BITS: Final = 56
"""The last seven bytes of a uuid7 are random, as those of a trace id should be."""

MAX_CHARS: Final = 512
"""A longer `traceparent`, of a future version, is ignored."""


class Hop(StrEnum):
    """The step of a run that a span covers; its name."""

    SUBMIT = "submit"
    CLAIM = "claim"
    RELAY = "relay"
    EXECUTE = "execute"
    OUTCOME = "outcome"


class SpanKind(StrEnum):
    """The role of a span between processes, as OpenTelemetry names it."""

    INTERNAL = "INTERNAL"
    SERVER = "SERVER"
    PRODUCER = "PRODUCER"
    CONSUMER = "CONSUMER"


class TraceContext(NamedTuple):
    """A span of a trace: 32 and 16 lower-case hexadecimal digits, and whether the trace is kept."""

    trace_id: str
    span_id: str
    sampled: bool = True

    @property
    def traceparent(self) -> str:
        """The form in headers and events."""
        return f"00-{self.trace_id}-{self.span_id}-{int(self.sampled):02x}"


def parse_traceparent(text: str) -> TraceContext | None:
    """Read a `traceparent`, as W3C Trace Context says; None for what must be ignored.

    Of a future version, the known part is read and the rest is ignored.
    """
    if len(text) > MAX_CHARS or (found := _FORM.fullmatch(text)) is None:
        return None
    version, trace_id, span_id, flags, more = found.groups()
    if version == "ff" or (version == "00" and more is not None):
        return None
    if trace_id == _NO_TRACE or span_id == _NO_SPAN:
        return None
    return TraceContext(trace_id, span_id, bool(int(flags, 16) & _SAMPLED))


class SubmitTrace(NamedTuple):
    """A submission that its client traces.

    Attributes:
        context: of our span about it.
        parent: id of the client's span.
        began: when it was received, in seconds since 1970.
        kind: SERVER for a request, CONSUMER for an event.
        attributes: of the request or of the event's record.
    """

    context: TraceContext
    parent: str
    began: float
    kind: SpanKind
    attributes: Mapping[str, str | int | float | bool]

    @classmethod
    def begin(
        cls,
        traceparent: str | None,
        began: float,
        kind: SpanKind,
        attributes: Mapping[str, str | int | float | bool],
    ) -> SubmitTrace | None:
        """Start the span of a submission; None if its client sent no trace, or does not sample it."""
        given = parse_traceparent(traceparent) if traceparent else None
        if given is None or not given.sampled:
            return None
        span_id = os.urandom(8).hex()
        return cls(TraceContext(given.trace_id, span_id), given.span_id, began, kind, attributes)


def span_id_of(run_id: UUID, hop: Hop, fence: int) -> str:
    """Return the id of the span of one hop of a run's queueing."""
    digest = blake2b(b"%b %b %d" % (run_id.bytes, hop.encode(), fence), digest_size=8).hexdigest()
    return digest if digest != _NO_SPAN else "0" * 15 + "1"


def root_span_id(run_id: UUID) -> str:
    """Return the id of a run's root span: its first claim."""
    return span_id_of(run_id, Hop.CLAIM, 1)


def trace_id_of(run_id: UUID) -> str:
    """Return the trace id of a run whose client sent no trace: the run's id."""
    return run_id.hex


def is_chosen(run_id: UUID, share: float) -> bool:
    """Return whether a run is in the sampled share; every process decides the same."""
    return (run_id.int & ((1 << _RANDOM_BITS) - 1)) < share * (1 << _RANDOM_BITS)
