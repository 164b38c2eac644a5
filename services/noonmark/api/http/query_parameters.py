"""Query parameters that several listings share."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Annotated, Final

from fastapi import Query
from pydantic import AfterValidator, StringConstraints

from noonmark.api.http.parameter_errors import ParameterError, query_error
from noonmark.api.http.problems import ProblemError
from noonmark.core.states import Lane
from noonmark.schemas.api import common
from noonmark.schemas.jobs.work_fields import POOL_PATTERN

_EARLIEST: Final = datetime(1970, 1, 2, tzinfo=UTC)
_LATEST: Final = datetime(9998, 1, 1, tzinfo=UTC)


def _within_calendar(at: datetime) -> datetime:
    if not _EARLIEST <= at < _LATEST:
        raise ValueError("is outside the calendar; expected an instant from 1970 to 9997")
    return at


Instant = Annotated[common.Instant, AfterValidator(_within_calendar)]

Since = Annotated[
    Instant | None, Query(description="Only items at or after this instant; RFC 3339 with offset.")
]
Until = Annotated[Instant | None, Query(description="Only items before this instant; RFC 3339 with offset.")]

# Postgres does not accept NUL in text.
Text = Annotated[str, StringConstraints(min_length=1, max_length=200, pattern=r"^[^\x00]+$")]
Texts = Annotated[list[Text], Query(max_length=20)]
PoolName = Annotated[str | None, Query(pattern=POOL_PATTERN, description="Name of the pool.")]

PriorityWords = Annotated[
    list[Annotated[str, StringConstraints(max_length=10)]],
    Query(max_length=10, description="Only these lanes: high, normal, low, or 1 to 10; repeatable."),
]


def lanes_of(priorities: list[str]) -> list[Lane]:
    """Read the priorities of a query.

    Raises:
        ProblemError: if a value is not a priority.
    """
    try:
        return [
            Lane.from_priority(int(one) if one.isascii() and one.isdecimal() else one) for one in priorities
        ]
    except ValueError as error:
        raise ProblemError.of_parameter(priority_error(error)) from None


def priority_error(error: ValueError) -> ParameterError:
    """Return the problem of a value of `priority`."""
    message, _, _ = str(error).partition("; ")
    return query_error("priority", message, "high, normal, low, or 1 to 10")
