"""Reads the events that noonmark publishes about runs into the rows of a history."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from typing import Any, Final

from noonmark.verify.history import Attempt, Death, LifecycleRecord

SETTLED: Final = "noonmark.runs.settled.v1"
DEAD: Final = "noonmark.run.dead.v1"


def read_outcomes(value: bytes, *, digests: bool = True) -> list[LifecycleRecord]:
    """Return the outcomes of a lifecycle event; none if it is of another type.

    Args:
        value: the record.
        digests: whether its sender adds digests. Otherwise a missing one says nothing about result and error.

    Raises:
        ValueError: it is not an event of noonmark.
    """
    try:
        event = json.loads(value)
        if event["type"] != SETTLED:
            return []
        # If there is no result or no error, the field is left out.
        missing = "" if digests else None
        return [_outcome(event["id"], said, missing) for said in event["data"]["outcomes"]]
    except (KeyError, TypeError, AttributeError) as error:
        raise ValueError(f"not an event of noonmark: {error!r}") from error


def read_death(value: bytes) -> Death:
    """Return what the event of a dead letter says.

    Raises:
        ValueError: it is not such an event.
    """
    try:
        event = json.loads(value)
        if event["type"] != DEAD:
            raise ValueError(f"an event of type {event['type']}")
        said = event["data"]
        return Death(
            run=said["run_id"],
            namespace=said["namespace"],
            fence=said["fence"],
            attempts=said["attempts"],
            reason=said["reason"],
            error=said["error"],
            kind=said["kind"],
            name=said["job_name"],
            fingerprint=said["fingerprint"],
            history=tuple(_attempt(said["run_id"], one) for one in said["history"]),
            scheduled_for=instant(said["scheduled_for"]),
        )
    except (KeyError, TypeError, AttributeError) as error:
        raise ValueError(f"not an event of noonmark: {error!r}") from error


def instant(text: str) -> datetime:
    """Read an instant as UTC."""
    return datetime.fromisoformat(text).astimezone(UTC)


def _outcome(event: str, said: dict[str, Any], missing: str | None) -> LifecycleRecord:
    return LifecycleRecord(
        event,
        said["run_id"],
        said["state"],
        said["fence"],
        said["namespace"],
        said["attempt"],
        said.get("reason"),
        _instant(said["finished_at"]),
        said["error"],
        said.get("result_digest", missing),
        said.get("error_digest", missing),
        _instant(said["started_at"]),
        said["job_id"],
        instant(said["scheduled_for"]),
        said["origin"],
        said["lane"],
        said["pool"],
    )


def _attempt(run: str, past: dict[str, Any]) -> Attempt:
    return Attempt(
        run,
        past["fence"],
        past["number"],
        past["outcome"],
        _instant(past["started_at"]),
        instant(past["finished_at"]),
        past["error"],
        past["worker"],
    )


def _instant(text: str | None) -> datetime | None:
    return None if text is None else instant(text)
