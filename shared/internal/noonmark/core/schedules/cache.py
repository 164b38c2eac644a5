"""Parts of a schedule that cache their last results.

A union asks each of its parts for every instant of all: a part that fires once a year, or whose days are all
closed, would search as often as the densest one fires.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from datetime import datetime, timedelta
from heapq import merge
from itertools import groupby
from typing import Final, Protocol

_NONE_HOLDS: Final = timedelta(days=366)
"""How long "none" is cached: searches end after some decades, so a later search may find more."""


class Part(Protocol):
    """A part whose results are cached: instants in order."""

    def next(self, after: datetime) -> datetime | None:
        """Return the first instant strictly after `after`."""

    def previous(self, at: datetime) -> datetime | None:
        """Return the last instant at or before `at`."""


class CachedPart:
    """Asks its part again only if the last result does not answer the query. Threads may share it."""

    __slots__ = ("_ahead", "_behind", "part")

    def __init__(self, part: Part) -> None:
        self.part = part
        # Each is one tuple, replaced as a whole: query and result.
        self._ahead: tuple[datetime, datetime | None] | None = None
        self._behind: tuple[datetime, datetime | None] | None = None

    def next(self, after: datetime) -> datetime | None:
        """Return the first instant strictly after `after`."""
        if self._ahead is not None:
            asked, found = self._ahead
            if asked <= after and (after < found if found is not None else after - asked < _NONE_HOLDS):
                return found
        found = self.part.next(after)
        self._ahead = (after, found)
        return found

    def previous(self, at: datetime) -> datetime | None:
        """Return the last instant at or before `at`."""
        if self._behind is not None:
            asked, found = self._behind
            if at <= asked and (at >= found if found is not None else asked - at < _NONE_HOLDS):
                return found
        found = self.part.previous(at)
        self._behind = (at, found)
        return found


def united(parts: Iterable[Part], after: datetime, until: datetime) -> Iterator[datetime]:
    """Yield the instants of all parts in (after, until], in order, each once.

    Merged: each part is asked once per own instant, not once per instant of all parts.
    """

    def instants(part: Part) -> Iterator[datetime]:
        at = part.next(after)
        while at is not None and at <= until:
            yield at
            at = part.next(at)

    return (at for at, _ in groupby(merge(*(instants(part) for part in parts))))
