"""`EXDATE;VALUE=DATE`: days on which a recurrence set has no time at all."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Final, Protocol

from noonmark.core.rrule.text import Piece, Property, RRuleError, quoted, read_day

MAX_TIMES: Final = 10_000
"""The most times that the excluded days of one set may have together."""

_SECOND: Final = timedelta(seconds=1)
_DAY: Final = timedelta(days=1)


class _Rule(Protocol):
    def next(self, after: datetime) -> datetime | None: ...

    def count(self, after: datetime, until: datetime) -> int: ...


def read_excluded_days(properties: Sequence[Property]) -> dict[datetime, Piece]:
    """Return the midnights at which the excluded days start, with the text of each.

    Raises:
        RRuleError: a value is not a date.
    """
    return {
        read_day(piece, line.name): piece
        for line in properties
        if line.whole_days
        for piece in line.value.split(",")
    }


def times_on(days: dict[datetime, Piece], rules: Sequence[_Rule], dates: set[datetime]) -> set[datetime]:
    """Return the wall-clock times of the rules and dates on these days; of a day without any, its midnight.

    Raises:
        RRuleError: there are more than `MAX_TIMES`.
    """
    found: set[datetime] = set()
    for midnight, piece in days.items():
        before, last = midnight - _SECOND, midnight + _DAY - _SECOND
        times = {at for at in dates if at.tzinfo is None and midnight <= at <= last}
        if len(found) + sum(rule.count(before, last) for rule in rules) > MAX_TIMES:
            raise RRuleError(
                f"rrule EXDATE: the days up to {quoted(piece.text)} at character {piece.at} have more than"
                f" {MAX_TIMES} times; leave the days out with BY parts of the rule, or with a calendar",
                piece.at,
                "EXDATE",
            )
        for rule in rules:
            at = rule.next(before)
            while at is not None and at <= last:
                times.add(at)
                at = rule.next(at)
        found |= times or {midnight}
    return found
