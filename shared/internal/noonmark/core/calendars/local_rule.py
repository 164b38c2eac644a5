"""The interface of a rule in local time, before any time zone."""

from __future__ import annotations

from datetime import datetime
from typing import Protocol


class LocalRule(Protocol):
    """A set of wall-clock times: naive datetimes of whole seconds. Every search is bounded."""

    def next(self, after: datetime) -> datetime | None:
        """Return the first time strictly after `after`; None if the rule has none within its search bound."""

    def previous(self, at: datetime) -> datetime | None:
        """Return the last time at or before `at`; None if the rule has none within its search bound."""

    def count(self, after: datetime, until: datetime) -> int:
        """Return how many times lie in (after, until]."""
