"""Calendars as the API takes and shows them."""

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
        list[dict[str, Any]], Field(default_factory=list, description="From `first` to `last`, with both.")
    ]
    weekdays: Annotated[list[str], Field(default_factory=list, description="Days of every week, MON to SUN.")]
    yearly: Annotated[list[str], Field(default_factory=list, description="Days of a year, such as 12-25.")]
    digest: Annotated[str, Field(description="Equal for equal contents.")]
    jobs: Annotated[int, Field(description="How many jobs name it.")]
    updated_at: datetime


class Calendars(Answer):
    """Calendars of a namespace by name."""

    items: list[Calendar]


class CalendarChange(Answer):
    """What became of a calendar, or would."""

    name: str
    namespace: str
    dry_run: bool
    change: Literal["created", "changed", "unchanged"]
    digest: str
    added: Annotated[JsonObject, Field(description="Entries that it did not have, by kind.")]
    removed: Annotated[JsonObject, Field(description="Entries that it has no more, by kind.")]
    jobs: Annotated[int, Field(description="Jobs that use it; of a dry run as far as was looked.")]
    replanned: Annotated[int, Field(description="Jobs whose next instants are found anew.")]
    used_by: Annotated[list[str], Field(description="The first of these jobs.")]
    without_next_instant: Annotated[list[str], Field(description="Jobs that it leaves no next instant.")]
    not_all_looked_at: Annotated[bool, Field(description="Others use it as well.")]
