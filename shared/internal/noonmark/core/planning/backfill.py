"""Backfill: which past instants of a schedule run after all. Pure; the store queues the runs.

A range is [`from_at`, `until_at`): the end is excluded, so that two ranges in succession share no instant.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final

from noonmark.core.instants import as_utc, format_instant
from noonmark.core.schedules.schedule import TICK, Schedule
from noonmark.core.states import BackfillMode, RunState

MOST_INSTANTS: Final = 100_000
"""The most instants of one backfill; for more, the range is a mistake, or needs several backfills."""

_COURTESY: Final = timedelta(seconds=5)
_COURTESY_SHARE: Final = 10

_FAILED: Final = frozenset({RunState.DEAD, RunState.UNKNOWN, RunState.CANCELLED})


class BackfillError(ValueError):
    """A backfill is refused; the message says what is wrong and what to do."""


@dataclass(frozen=True, slots=True)
class BackfillRange:
    """The range [from_at, until_at), in UTC.

    Raises:
        BackfillError: the end is not after the beginning.
    """

    from_at: datetime
    until_at: datetime

    def __post_init__(self) -> None:
        object.__setattr__(self, "from_at", as_utc(self.from_at))
        object.__setattr__(self, "until_at", as_utc(self.until_at))
        if self.until_at <= self.from_at:
            raise BackfillError(
                f"the range ends at {format_instant(self.until_at)}, which is not after its beginning"
                f" {format_instant(self.from_at)}: give the earlier instant first; the end is excluded"
            )

    def check(self, *, now: datetime, floor: datetime) -> None:
        """Refuse a range that the ledger no longer covers, or that reaches into the future.

        Raises:
            BackfillError: it begins below the ledger's floor, or ends after `now`.
        """
        if self.from_at < floor:
            raise BackfillError(
                f"the range begins at {format_instant(self.from_at)}, but outcomes of instants before"
                f" {format_instant(floor)} (the ledger's floor) are no longer stored: begin there or later"
            )
        if self.until_at > now:
            raise BackfillError(
                f"the range ends at {format_instant(self.until_at)}, in the future: it is"
                f" {format_instant(now)} now; end there or earlier, the schedule runs what comes later"
            )

    def count(self, schedule: Schedule, most: int = MOST_INSTANTS) -> int:
        """Return how many instants of the schedule lie in the range.

        Raises:
            BackfillError: more than `most`.
        """
        if schedule.walks:
            # Counting means walking, which must not take minutes if there are many.
            count = len(self.instants(schedule, self.from_at, most + 1))
            shown = f"more than {most:,}"
        else:
            count = schedule.count(self.from_at - TICK, self.until_at - TICK)
            shown = f"{count:,}"
        if count > most:
            raise BackfillError(
                f"the range holds {shown} instants; one backfill takes at most {most:,}: use a shorter range"
            )
        return count

    def instants(self, schedule: Schedule, from_at: datetime, limit: int) -> list[datetime]:
        """Return the first `limit` instants of the range from `from_at` on, oldest first."""
        return schedule.between(max(from_at, self.from_at) - TICK, self.until_at - TICK, limit)


def to_run(
    mode: BackfillMode, instants: Sequence[datetime], newest: Mapping[datetime, str]
) -> list[datetime]:
    """Return the instants that a backfill runs.

    Args:
        mode: of the backfill.
        instants: to choose from, in order.
        newest: state of the newest run that was not skipped, of those instants that have one.
    """
    if mode is BackfillMode.ALL:
        return list(instants)
    redone: frozenset[str] = _FAILED if mode is BackfillMode.MISSING_AND_FAILED else frozenset()
    return [at for at in instants if at not in newest or newest[at] in redone]


def courtesy(period_seconds: float) -> timedelta:
    """Return how long before its next scheduled instant a job's slot is kept free for that instant.

    A tenth of the period, at most 5 s: backfill runs that are shorter do not make the schedule miss one.
    """
    return min(_COURTESY, timedelta(seconds=period_seconds / _COURTESY_SHARE))
