"""Calendars in API responses."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Any, Literal

from pydantic import Field

from noonmark.schemas.api.common import Answer, JsonObject


class Calendar(Answer):
    """A named set of days."""

    name: str
    namespace: str
    dates: Annotated[list[str], Field(default_factory=list, description="Days such as 2026-12-25.")]
    ranges: Annotated[
        list[dict[str, Any]],
        Field(default_factory=list, description="Ranges of days from `first` to `last`, both included."),
    ]
    weekdays: Annotated[list[str], Field(default_factory=list, description="Days of every week, MON to SUN.")]
    yearly: Annotated[list[str], Field(default_factory=list, description="Days of a year, such as 12-25.")]
    digest: Annotated[str, Field(description="Equal for equal contents.")]
    jobs: Annotated[int, Field(description="Number of jobs that use the calendar.")]
    updated_at: datetime


class Calendars(Answer):
    """Calendars of a namespace, sorted by name."""

    items: list[Calendar]


class CalendarChange(Answer):
    """The change of a calendar, or its preview."""

    name: str
    namespace: str
    dry_run: bool
    change: Literal["created", "changed", "unchanged"]
    digest: str
    added: Annotated[JsonObject, Field(description="New entries, by kind.")]
    removed: Annotated[JsonObject, Field(description="Removed entries, by kind.")]
    jobs: Annotated[
        int, Field(description="Number of jobs that use the calendar; in a dry run, of those checked.")
    ]
    replanned: Annotated[int, Field(description="Number of jobs that were planned again.")]
    used_by: Annotated[list[str], Field(description="Names of the first jobs that use it.")]
    without_next_instant: Annotated[
        list[str], Field(description="Jobs that have no next instant with this calendar.")
    ]
    not_all_looked_at: Annotated[bool, Field(description="True if more jobs use it than were checked.")]
