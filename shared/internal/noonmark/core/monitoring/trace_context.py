"""Trace contexts: W3C `traceparent` read and written, and the ids of a run's spans, made of the run alone.

A span's id is made of the run, the hop and the fence. So a process can name the span of another one as its
parent without having been told of it, and a hop that is repeated after a crash is the same span again.
"""

from __future__ import annotations

import os
import re
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
"""A longer `traceparent`, of a version to come, is not read."""


class Hop(StrEnum):
    """What a span of a run stands for; its name."""

    SUBMIT = "submit"
    CLAIM = "claim"
    RELAY = "relay"
    EXECUTE = "execute"
    OUTCOME = "outcome"


class TraceContext(NamedTuple):
    """A span of a trace: 32 and 16 lower-case hexadecimal digits, and whether the trace is kept."""

    trace_id: str
    span_id: str
    sampled: bool = True

    @property
    def traceparent(self) -> str:
        """As it stands in headers and events."""
        return f"00-{self.trace_id}-{self.span_id}-{int(self.sampled):02x}"


def parse_traceparent(text: str) -> TraceContext | None:
    """Read a `traceparent`, as W3C Trace Context says; None for what must be ignored.

    Of a version to come the known part is read, and what follows it is left alone.
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
    """A submission that a client wants to be traced.

    Attributes:
        context: of our span about it.
        parent: id of the client's span.
        began: when it came, in seconds since 1970.
    """

    context: TraceContext
    parent: str
    began: float

    @classmethod
    def begin(cls, traceparent: str | None, began: float) -> SubmitTrace | None:
        """Begin the span of a submission; None where its client sent no trace along, or keeps none of it."""
        given = parse_traceparent(traceparent) if traceparent else None
        if given is None or not given.sampled:
            return None
        span_id = os.urandom(8).hex()
        return cls(TraceContext(given.trace_id, span_id), given.span_id, began)


def span_id_of(run_id: UUID, hop: Hop, fence: int) -> str:
    """Return the id of the span of one hop of a run's queueing."""
    digest = blake2b(b"%b %b %d" % (run_id.bytes, hop.encode(), fence), digest_size=8).hexdigest()
    return digest if digest != _NO_SPAN else "0" * 15 + "1"


def root_span_id(run_id: UUID) -> str:
    """Return the id of the span that the others of a run hang on: its first claim."""
    return span_id_of(run_id, Hop.CLAIM, 1)


def trace_id_of(run_id: UUID) -> str:
    """Return the trace of a run that nobody asked to be traced: the run's id."""
    return run_id.hex


def is_chosen(run_id: UUID, share: float) -> bool:
    """Tell whether a run is among the share that is traced; every process says the same of it."""
    return (run_id.int & ((1 << _RANDOM_BITS) - 1)) < share * (1 << _RANDOM_BITS)
