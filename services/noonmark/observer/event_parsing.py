"""Parses records of the lifecycle topic into outcomes, without the schema models, for speed.

Anyone with write access to the topic can publish anything. Values that Postgres would reject are refused
here, because otherwise no observer could read past them.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any, Final, NamedTuple
from uuid import NAMESPACE_URL, UUID, uuid5

import orjson

from noonmark.core.fingerprints import MAX_CHARACTERS
from noonmark.core.monitoring.statistics import Outcome
from noonmark.core.states import AttemptOutcome, RunState
from noonmark.schemas.events.lifecycle import SETTLED

_LONGEST_WORD: Final = 255


class HeardEvent(NamedTuple):
    """A lifecycle event with outcomes."""

    id: UUID
    outcomes: Sequence[Outcome]
    published_at: datetime

    @property
    def is_of_worker(self) -> bool:
        """Whether a worker reached an outcome. The trigger writes those of skipped and lost runs."""
        return any(
            one.started_at is not None and one.state != RunState.SKIPPED and one.reason != AttemptOutcome.LOST
            for one in self.outcomes
        )


def read_event(value: bytes | None, published_at: datetime) -> HeardEvent | None:
    """Parse the value of a record; return None for an event of another type.

    Args:
        value: an event in structured mode.
        published_at: the record's timestamp, used for outcomes that have no end time.

    Raises:
        ValueError: it is not a noonmark event.
    """
    try:
        event = orjson.loads(value or b"")
        if event["type"] != SETTLED:
            return None
        outcomes = [_outcome(item, published_at) for item in event["data"]["outcomes"]]
        return HeardEvent(_id(event["id"]), outcomes, published_at)
    except (KeyError, TypeError, AttributeError, ValueError, OverflowError) as error:
        raise ValueError(f"not a {SETTLED} event: {type(error).__name__}: {error}") from error


def _outcome(item: dict[str, Any], published_at: datetime) -> Outcome:
    finished_at = _instant(item.get("finished_at"))
    return Outcome(
        UUID(item["run_id"]),
        UUID(item["job_id"]),
        _word(item["namespace"]),
        _word(item["state"]),
        _text(item.get("reason")),
        _instant(item.get("started_at")),
        finished_at,
        _text(item.get("error")),
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


def _instant(text: str | None) -> datetime | None:
    return None if text is None else datetime.fromisoformat(text).astimezone(UTC)


def _id(text: str) -> UUID:
    try:
        return UUID(text)
    except ValueError:
        return uuid5(NAMESPACE_URL, text)
