"""Spreading the starts of jobs that share an instant, always the same way for the same job and instant."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from hashlib import blake2b
from typing import Final

from noonmark.core.schedules.kinds import Schedule, next_memo

_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND: Final = timedelta(microseconds=1)


@dataclass(frozen=True, slots=True)
class Jitter:
    """Maps an instant to the moment from which its run may start.

    Nothing is stored: a restarted or second trigger computes the same. The delay stays below the time to
    the next instant, so runs keep the order of their instants, and never passes the schedule's `end`.

    Attributes:
        schedule: whose instants.
        key: distinguishes jobs: the job's id.
    """

    schedule: Schedule
    key: bytes

    @property
    def longest(self) -> timedelta:
        """The longest delay."""
        return timedelta(seconds=self.schedule.jitter_seconds)

    def fire_at(self, at: datetime) -> datetime:
        """Return the moment for the instant `at`."""
        width = self.longest
        if not width:
            return at
        following = next_memo(self.schedule, at)
        if following is not None:
            width = min(width, following - at)
        digest = blake2b(self.key, digest_size=8, salt=((at - _EPOCH) // _MICROSECOND).to_bytes(16, "big"))
        moved = at + width * (int.from_bytes(digest.digest(), "big") / 2**64)
        return moved if self.schedule.end is None else min(moved, max(at, self.schedule.end))
