"""Calendars as the API takes and shows them.

Made from `noonmark.schemas.api.calendars`, not by hand: see `noonmark.schemas.client_types`.
"""

from __future__ import annotations

from typing import Any, Literal, TypedDict


class Calendar(TypedDict):
    """A named set of days."""

    name: str

    namespace: str

    dates: list[str]
    """Days such as 2026-12-25."""

    ranges: list[dict[str, Any]]
    """From `first` to `last`, with both."""

    weekdays: list[str]
    """Days of every week, MON to SUN."""

    yearly: list[str]
    """Days of a year, such as 12-25."""

    digest: str
    """Equal for equal contents."""

    jobs: int
    """How many jobs name it."""

    updated_at: str


class Calendars(TypedDict):
    """Calendars of a namespace by name."""

    items: list[Calendar]


class CalendarChange(TypedDict):
    """What became of a calendar, or would."""

    name: str

    namespace: str

    dry_run: bool

    change: Literal["created", "changed", "unchanged"]

    digest: str

    added: dict[str, Any]
    """Entries that it did not have, by kind."""

    removed: dict[str, Any]
    """Entries that it has no more, by kind."""

    jobs: int
    """Jobs that use it; of a dry run as far as was looked."""

    replanned: int
    """Jobs whose next instants are found anew."""

    used_by: list[str]
    """The first of these jobs."""

    without_next_instant: list[str]
    """Jobs that it leaves no next instant."""

    not_all_looked_at: bool
    """Others use it as well."""
