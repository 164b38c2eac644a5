"""Parses records of the lifecycle topic into outcomes, without the schema models, for speed.

Anyone with write access to the topic can publish anything. Values that Postgres would reject are refused
here, because otherwise no observer could read past them.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Final, NamedTuple
from uuid import NAMESPACE_URL, UUID, uuid5

import msgspec

from noonmark.core.fingerprints import MAX_CHARACTERS
from noonmark.core.monitoring.statistics import Outcome
from noonmark.core.states import AttemptOutcome, Origin, RunState
from noonmark.core.workflows import WORKFLOW_POOL
from noonmark.schemas.events.lifecycle import SETTLED

_LONGEST_WORD: Final = 255
_TASK: Final = Origin.TASK.value


class HeardEvent(NamedTuple):
    """A lifecycle event with outcomes.

    Attributes:
        id: of the event.
        outcomes: those of runs of jobs. Runs of tasks say nothing about what is usual for their workflow, and
            are left out.
        published_at: the record's timestamp.
        is_of_worker: whether a worker reached an outcome. Triggers write those of skipped and lost runs, and
            of workflow runs.
    """

    id: UUID
    outcomes: Sequence[Outcome]
    published_at: datetime
    is_of_worker: bool


class _Outcome(msgspec.Struct, gc=False):
    run_id: UUID
    job_id: UUID
    namespace: str
    state: str
    reason: str | None = None
    started_at: datetime | None = None
    finished_at: datetime | None = None
    error: str | None = None
    origin: str = ""
    pool: str = ""

    @property
    def is_of_worker(self) -> bool:
        return (
            self.started_at is not None
            and self.state != RunState.SKIPPED
            and self.reason != AttemptOutcome.LOST
            and self.pool != WORKFLOW_POOL
        )


class _Data(msgspec.Struct, gc=False):
    outcomes: list[_Outcome]


class _Event(msgspec.Struct, gc=False):
    type: str
    id: str | None = None
    data: msgspec.Raw = msgspec.Raw(b"null")


# Decoding into typed values takes a quarter of the time of a generic decoder with conversions after it.
_decode_event: Final = msgspec.json.Decoder(_Event).decode
_decode_data: Final = msgspec.json.Decoder(_Data).decode


def read_event(value: bytes | None, published_at: datetime) -> HeardEvent | None:
    """Parse the value of a record; return None for an event of another type.

    Args:
        value: an event in structured mode.
        published_at: the record's timestamp, used for outcomes that have no end time.

    Raises:
        ValueError: it is not a noonmark event.
    """
    try:
        event = _decode_event(value or b"")
        if event.type != SETTLED:
            return None
        items = _decode_data(event.data).outcomes
        outcomes = [_outcome(item, published_at) for item in items if item.origin != _TASK]
        by_worker = any(item.is_of_worker for item in items)
        return HeardEvent(_id(event.id), outcomes, published_at, by_worker)
    except (msgspec.MsgspecError, ValueError, OverflowError, RecursionError) as error:
        raise ValueError(f"not a {SETTLED} event: {type(error).__name__}: {error}") from error


def _outcome(item: _Outcome, published_at: datetime) -> Outcome:
    finished_at = _instant(item.finished_at)
    return Outcome(
        item.run_id,
        item.job_id,
        _word(item.namespace),
        _word(item.state),
        _text(item.reason),
        _instant(item.started_at),
        finished_at,
        _text(item.error),
        finished_at or published_at,
    )


def _word(text: str) -> str:
    if len(text) > _LONGEST_WORD or not text.isprintable():
        raise ValueError(
            f"a name has more than {_LONGEST_WORD} characters, or characters that cannot be printed"
        )
    return text


def _text(text: str | None) -> str | None:
    return None if text is None else text[:MAX_CHARACTERS].replace("\0", "�")


def _instant(at: datetime | None) -> datetime | None:
    return at if at is None or at.tzinfo is UTC else at.astimezone(UTC)


def _id(text: str | None) -> UUID:
    if text is None:
        raise ValueError("it has no id")
    try:
        return UUID(text)
    except ValueError:
        return uuid5(NAMESPACE_URL, text)
