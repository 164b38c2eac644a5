"""Calendars in API responses.

Generated from `noonmark.schemas.api.calendars` by `noonmark.schemas.client_types`; do not edit it by hand.
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
    """Ranges of days from `first` to `last`, both included."""

    weekdays: list[str]
    """Days of every week, MON to SUN."""

    yearly: list[str]
    """Days of a year, such as 12-25."""

    digest: str
    """Equal for equal contents."""

    jobs: int
    """Number of jobs that use the calendar."""

    updated_at: str


class Calendars(TypedDict):
    """Calendars of a namespace, sorted by name."""

    items: list[Calendar]


class CalendarChange(TypedDict):
    """The change of a calendar, or its preview."""

    name: str

    namespace: str

    dry_run: bool

    change: Literal["created", "changed", "unchanged"]

    digest: str

    added: dict[str, Any]
    """New entries, by kind."""

    removed: dict[str, Any]
    """Removed entries, by kind."""

    jobs: int
    """Number of jobs that use the calendar; in a dry run, of those checked."""

    replanned: int
    """Number of jobs that were planned again."""

    used_by: list[str]
    """Names of the first jobs that use it."""

    without_next_instant: list[str]
    """Jobs that have no next instant with this calendar."""

    not_all_looked_at: bool
    """True if more jobs use it than were checked."""
