"""Events that noonmark publishes about runs: outcomes, dead letters, refused submissions.

The models are for consumers. They ignore unknown fields, and accept values of `state`, `origin` and `lane`
that a later version may add. The builders, here and in `noonmark.schemas.events.settled`, are for producers
and do not use the models: one event contains the outcomes of a whole batch.
"""

from __future__ import annotations

import base64
import dataclasses
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Annotated, Any, Final
from uuid import UUID

from pydantic import Field, ValidationError

from noonmark.core.ids import uuid7
from noonmark.core.states import Lane, Origin, RunState
from noonmark.core.transitions import VERDICTS
from noonmark.schemas.events import alerts
from noonmark.schemas.events.envelope import Event, render_structured
from noonmark.schemas.events.published import SOURCE, Published, open_enum
from noonmark.schemas.problems.refusal import FieldError, Refused, pointer, shown

SETTLED: Final = "noonmark.runs.settled.v1"
DEAD: Final = "noonmark.run.dead.v1"
REJECTED: Final = "noonmark.submission.rejected.v1"

MAX_HISTORY_BYTES: Final = 200_000
"""Most bytes of the attempts in a dead letter event."""

_MAX_ERROR: Final = 4000
_ATTEMPT_BYTES: Final = 300
"""Bytes reserved for an attempt without its error."""


_UNDER_WAY: Final = (RunState.RETRYING, RunState.QUEUED, RunState.WAITING)
"""States that are not verdicts but are published, too."""


StateName = Annotated[
    str,
    open_enum(
        [state.value for state in RunState if state in VERDICTS or state in _UNDER_WAY],
        "State of the run: a verdict, or retrying; after a redrive also queued or waiting.",
    ),
]
OriginName = Annotated[str, open_enum([origin.value for origin in Origin], "What requested the run.")]
LaneName = Annotated[str, open_enum([lane.label for lane in Lane], "Lane of the run.")]


class RunOutcome(Published):
    """State of one run after an attempt, or without one."""

    run_id: UUID
    job_id: UUID
    namespace: str
    scheduled_for: Annotated[datetime, Field(description="The nominal instant, UTC.")]
    origin: OriginName
    state: StateName
    reason: Annotated[str | None, Field(description="Why the run was skipped, is dead or waits.")] = None
    attempt: Annotated[int, Field(description="Attempts used of the retry budget.")]
    fence: Annotated[
        int,
        Field(
            description="Fencing token; increases each time the run is enqueued. The "
            "highest one is the latest."
        ),
    ]
    lane: LaneName
    pool: str
    started_at: datetime | None = None
    finished_at: datetime | None = None
    error: Annotated[str | None, Field(description="Last error, shortened to a few thousand characters.")] = (
        None
    )
    traceparent: Annotated[
        str | None, Field(description="W3C trace context of the attempt; only for traced runs.")
    ] = None
    result_digest: Annotated[
        str | None,
        Field(
            description="SHA-256 of the stored result, compact JSON in UTF-8: 64 hexadecimal digits; "
            "only for runs with a result."
        ),
    ] = None
    error_digest: Annotated[
        str | None,
        Field(
            description="SHA-256 of the stored error in UTF-8: 64 hexadecimal digits; "
            "only for runs with an error."
        ),
    ] = None


class RunsSettled(Published):
    """Outcomes of one namespace that were recorded together."""

    outcomes: list[RunOutcome]


class DeadAttempt(Published):
    """One attempt of a dead run."""

    number: Annotated[
        int, Field(description="Number of the attempt in the retry budget; restarts when a run is redriven.")
    ]
    fence: int
    outcome: Annotated[str, Field(description="Such as failed, timed_out, lost, rejected or handed_back.")]
    error: Annotated[str | None, Field(description="Error, shortened to a few thousand characters.")] = None
    worker: Annotated[int | None, Field(description="Worker of the attempt, if known.")] = None
    started_at: datetime | None = None
    finished_at: datetime | None = None


class RunDead(Published):
    """A run that failed permanently. It can be redriven later."""

    run_id: UUID
    job_id: UUID
    namespace: str
    scheduled_for: datetime
    origin: OriginName
    reason: Annotated[str | None, Field(description="Such as retries_exhausted, not_retryable or lost.")] = (
        None
    )
    attempts: Annotated[int, Field(description="Number of attempts.")]
    fence: int
    lane: LaneName
    pool: str
    finished_at: datetime | None = None
    error: str | None = None
    kind: Annotated[str | None, Field(description="Kind of the job; null: the job was deleted.")] = None
    job_name: Annotated[str | None, Field(description="Name of the job, if it has one.")] = None
    fingerprint: Annotated[
        str | None, Field(description="Equal for runs that died of the same cause: 16 hexadecimal digits.")
    ] = None
    history: Annotated[
        list[DeadAttempt], Field(description="Attempts that did not succeed, oldest first.")
    ] = []  # noqa: RUF012 - pydantic copies it for each instance
    history_omitted: Annotated[
        int, Field(description="Number of oldest attempts that did not fit into the event.")
    ] = 0


class Problem(Published):
    """One problem of a submission."""

    pointer: Annotated[str, Field(description="RFC 6901 pointer into the event; empty: the whole event.")]
    message: Annotated[str, Field(description="What is wrong.")]
    expected: Annotated[str, Field(description="Allowed values; empty if the message says so.")] = ""


class SubmissionRejected(Published):
    """A refused record of a submission topic, with its position and the reasons."""

    topic: str
    partition: int
    offset: int
    event_source: Annotated[str | None, Field(description="Source of the event, if it could be read.")] = None
    event_id: Annotated[str | None, Field(description="Id of the event, if it could be read.")] = None
    index: Annotated[
        int | None,
        Field(description="Index of the event in its batch, from 0; null: the whole record is refused."),
    ] = None
    errors: list[Problem]
    value_base64: Annotated[
        str | None,
        Field(
            description="The record's value, or its first bytes; null: the record had no value. Of a "
            "batch: the event with this index."
        ),
    ] = None
    truncated: Annotated[bool, Field(description="True if the value was cut.")] = False


MODELS: Final[dict[str, type[Published]]] = {
    SETTLED: RunsSettled,
    DEAD: RunDead,
    REJECTED: SubmissionRejected,
    **alerts.MODELS,
}


def read_published(event: Event) -> Published:
    """Read the data of an event that noonmark published, as a consumer does.

    Raises:
        Refused: if the type is not in `MODELS`, or a required field is missing or invalid.
    """
    model = MODELS.get(event.type)
    if model is None:
        raise Refused(
            [FieldError("/type", f"{shown(event.type)} is not supported", "one of " + ", ".join(MODELS))]
        )
    try:
        return model.model_validate(event.data)
    except ValidationError as error:
        raise Refused(
            FieldError(pointer(("data", *item["loc"])), item["msg"])
            for item in error.errors(include_url=False, include_input=False)
        ) from None


@dataclass(slots=True)
class PastAttempt:
    """One attempt for `dead_event`, with the fields of `DeadAttempt` in order."""

    number: int
    fence: int
    outcome: str
    error: str | None
    worker: int | None
    started_at: datetime | None
    finished_at: datetime | None


def dead_event(
    *,
    run_id: UUID,
    job_id: UUID,
    namespace: str,
    scheduled_for: datetime,
    origin: str,
    reason: str | None,
    attempts: int,
    fence: int,
    lane: str,
    pool: str,
    finished_at: datetime | None,
    error: str | None,
    kind: str | None = None,
    job_name: str | None = None,
    fingerprint: str | None = None,
    history: Sequence[PastAttempt] = (),
    history_omitted: int = 0,
    max_history_bytes: int = MAX_HISTORY_BYTES,
) -> bytes:
    """Return the structured-mode value of a dead letter.

    `history` contains attempts, oldest first. Above `max_history_bytes`, only the newest are included.
    """
    kept = _newest(history, max_history_bytes)
    data = {
        "run_id": run_id,
        "job_id": job_id,
        "namespace": namespace,
        "scheduled_for": scheduled_for,
        "origin": origin,
        "reason": reason,
        "attempts": attempts,
        "fence": fence,
        "lane": lane,
        "pool": pool,
        "finished_at": finished_at,
        "error": shortened(error),
        "kind": kind,
        "job_name": job_name,
        "fingerprint": fingerprint,
        "history": kept,
        "history_omitted": history_omitted + len(history) - len(kept),
    }
    return render_event(DEAD, str(run_id), data, finished_at)


def _newest(history: Sequence[PastAttempt], most_bytes: int) -> list[PastAttempt]:
    """Return the newest attempts that fit, in order."""
    kept: list[PastAttempt] = []
    left = most_bytes
    for attempt in reversed(history):
        cut = dataclasses.replace(attempt, error=shortened(attempt.error))
        # JSON escapes a control character with six bytes; nothing else needs more than that.
        left -= _ATTEMPT_BYTES + _json_bytes(cut.error)
        if left < 0:
            break
        kept.append(cut)
    return kept[::-1]


def _json_bytes(text: str | None) -> int:
    if text is None:
        return 4
    escaped = sum(1 for char in text if char < " " or char in '"\\')
    return len(text.encode("utf-8", "backslashreplace")) + 5 * escaped


def rejection_event(
    refused: Refused,
    *,
    topic: str,
    partition: int,
    offset: int,
    value: bytes | None,
    cap_bytes: int,
    event_source: str | None = None,
    event_id: str | None = None,
    at: datetime | None = None,
    index: int | None = None,
) -> bytes:
    """Return the structured-mode value of the event about a refused record, or a refused event of a batch.

    Args:
        refused: the refusal with its problems.
        topic: topic of the record.
        partition: partition of the record.
        offset: offset of the record.
        value: value of the record; the event contains at most `cap_bytes` of it.
        cap_bytes: most bytes of the value in the event.
        event_source: source of the record's event, from `envelope.identify`.
        event_id: id of the record's event, from `envelope.identify`.
        at: time of the event.
        index: index of the refused event in its batch; None: the whole record is refused.
    """
    data: dict[str, Any] = {
        "topic": topic,
        "partition": partition,
        "offset": offset,
        "event_source": event_source,
        "event_id": event_id,
        "errors": refused.errors,
        "value_base64": None if value is None else base64.b64encode(value[:cap_bytes]).decode(),
        "truncated": value is not None and len(value) > cap_bytes,
    }
    if index is not None:
        data["index"] = index
    return render_event(REJECTED, f"{topic}/{partition}/{offset}", data, at)


def render_event(kind: str, subject: str, data: object, at: datetime | None) -> bytes:
    """Return the structured-mode value of an event; `kind` is its type, `at` its time."""
    event_id = str(uuid7())
    try:
        return render_structured(id=event_id, source=SOURCE, type=kind, data=data, subject=subject, time=at)
    except TypeError:
        # An error text of a handler may contain half a surrogate pair; the outcome must be published anyway.
        return render_structured(
            id=event_id, source=SOURCE, type=kind, data=_encodable(data), subject=subject, time=at
        )


def _encodable(value: Any) -> Any:
    if isinstance(value, str):
        return value.encode("utf-8", "backslashreplace").decode()
    if isinstance(value, dict):
        return {key: _encodable(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_encodable(item) for item in value]
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return {name.name: _encodable(getattr(value, name.name)) for name in dataclasses.fields(value)}
    return value


def shortened(text: str | None) -> str | None:
    """Return an error, cut to a few thousand characters."""
    return text if text is None or len(text) <= _MAX_ERROR else text[: _MAX_ERROR - 1] + "…"
