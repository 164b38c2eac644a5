"""Checks a job document in the application: everything except what only the installation knows."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any, Final, cast

import orjson

from noonmark.outbox.errors import JobRefusedError
from noonmark.schemas.jobs.job import parse_job
from noonmark.schemas.problems.refusal import FieldError, Refused
from noonmark.schemas.problems.screening import parse_json

_NO_FLOOR: Final = datetime.min.replace(tzinfo=UTC)


def checked(job: Mapping[str, Any]) -> tuple[dict[str, Any], str]:
    """Check a document as intake does; return it as JSON values, and as JSON text.

    Calendars, pools, handlers and limits are checked when the job arrives.

    Raises:
        JobRefusedError: the document is not valid; the error has every problem found.
    """
    try:
        text = orjson.dumps(dict(job), option=orjson.OPT_PASSTHROUGH_SUBCLASS)
    except (TypeError, ValueError) as error:
        raise JobRefusedError([FieldError("", f"is not JSON: {error}", "a JSON object")]) from None
    try:
        document = cast("dict[str, Any]", parse_json(text))
        known = {**document, "schedule": _without_calendars(document.get("schedule"))}
        parse_job(known, now=datetime.now(UTC), ledger_floor=_NO_FLOOR, screened=True)
    except Refused as refused:
        raise JobRefusedError(refused.errors) from None
    return document, text.decode()


def _without_calendars(schedule: object) -> object:
    """Return a schedule without names of calendars, at any depth."""
    if isinstance(schedule, dict):
        return {key: _without_calendars(value) for key, value in schedule.items() if key != "calendars"}
    if isinstance(schedule, list):
        return [_without_calendars(one) for one in schedule]
    return schedule
