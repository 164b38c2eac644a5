"""Builds the events about outcomes that were recorded together.

Nearly all outcomes are plain successes; fields that only some outcomes have cost the others nothing.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from datetime import datetime
from typing import Any, Final
from uuid import UUID

import msgspec
import orjson

from noonmark.schemas.events.lifecycle import SETTLED, render_event, shortened

MAX_MESSAGE_BYTES: Final = 900_000
"""Kafka's default limit is 1,048,588 bytes, with key, headers and framing."""


class SettledRun(msgspec.Struct, gc=False):
    """One outcome for `settled_event`, with the fields of `RunOutcome` that every outcome has, in order."""

    run_id: UUID
    job_id: UUID
    namespace: str
    scheduled_for: datetime
    origin: str
    state: str
    reason: str | None
    attempt: int
    fence: int
    lane: str
    pool: str
    started_at: datetime | None
    finished_at: datetime | None
    error: str | None

    def detailed(self, *, result: str | None = None, traceparent: str | None = None) -> DetailedRun:
        """Return the outcome with what only some outcomes have."""
        return DetailedRun(**_fields(self), result=result, traceparent=traceparent)


_FIELDS: Final = SettledRun.__struct_fields__


class DetailedRun(SettledRun, gc=False):
    """An outcome with what only some outcomes have.

    Attributes:
        result: result as stored, JSON text; the event contains its digest.
        traceparent: trace context of a traced run.
    """

    result: str | None = None
    traceparent: str | None = None


_encode: Final = msgspec.json.Encoder().encode

_Published = SettledRun | dict[str, Any]
"""An outcome as it is published: a plain one, or a document with optional fields."""


def digest(text: str) -> str:
    """Return the digest of a result or an error, as events contain it."""
    return hashlib.sha256(text.encode("utf-8", "backslashreplace")).hexdigest()


def settled_event(namespace: str, outcomes: Sequence[SettledRun], *, at: datetime | None = None) -> bytes:
    """Return the structured-mode value of one event with all outcomes of a namespace.

    Args:
        namespace: namespace of all outcomes; the subject of the event.
        outcomes: the outcomes, recorded together.
        at: time of the event, by the database's clock.
    """
    return render_event(SETTLED, namespace, _data([_published(one) for one in outcomes]), at)


def settled_events(
    namespace: str,
    outcomes: Sequence[SettledRun],
    *,
    at: datetime | None = None,
    max_bytes: int = MAX_MESSAGE_BYTES,
) -> list[bytes]:
    """Return events with the outcomes, each of at most `max_bytes`; larger events are split in half."""
    # Nearly all are plain, and a call for each would cost a third as much as encoding it.
    published = [
        one if one.error is None and type(one) is SettledRun else _published(one) for one in outcomes
    ]
    return _split(namespace, published, at, max_bytes)


def _split(
    namespace: str, outcomes: Sequence[_Published], at: datetime | None, max_bytes: int
) -> list[bytes]:
    value = render_event(SETTLED, namespace, _data(outcomes), at)
    if len(value) <= max_bytes:
        return [value]
    if len(outcomes) == 1:
        one = outcomes[0]
        cut = {**one, "error": shortened(one["error"])} if isinstance(one, dict) else one
        return [render_event(SETTLED, namespace, _data([cut]), at)]
    middle = len(outcomes) // 2
    halves = (outcomes[:middle], outcomes[middle:])
    return [event for half in halves for event in _split(namespace, half, at, max_bytes)]


def _data(outcomes: Sequence[_Published]) -> object:
    """Return the data of an event. Plain outcomes are encoded at once, in half the time."""
    if dict in set(map(type, outcomes)):
        return {"outcomes": [one if isinstance(one, dict) else _fields(one) for one in outcomes]}
    return orjson.Fragment(_encode({"outcomes": outcomes}))


def _fields(outcome: SettledRun) -> dict[str, Any]:
    return {name: getattr(outcome, name) for name in _FIELDS}


def _published(outcome: SettledRun) -> _Published:
    """Add the optional fields that an outcome has; one without any is returned as it is."""
    if outcome.error is None and type(outcome) is SettledRun:
        return outcome
    result = outcome.result if isinstance(outcome, DetailedRun) else None
    optional = {
        "traceparent": outcome.traceparent if isinstance(outcome, DetailedRun) else None,
        "result_digest": None if result is None else digest(result),
        "error_digest": None if outcome.error is None else digest(outcome.error),
    }
    present = {name: value for name, value in optional.items() if value is not None}
    return {**_fields(outcome), **present}
