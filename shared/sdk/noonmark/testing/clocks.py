"""A clock that moves only when a test moves it."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta


class VirtualClock:
    """Returns the time that a test has set. It never moves by itself."""

    def __init__(self, now: datetime | None = None) -> None:
        """Set the time; by default to 2030-01-01, midnight UTC.

        Raises:
            ValueError: the time has no zone.
        """
        self._now = _aware(now or datetime(2030, 1, 1, tzinfo=UTC))

    def now(self) -> datetime:
        """Return the time, in UTC."""
        return self._now

    def advance(self, by: timedelta | float) -> datetime:
        """Move the clock forward by a duration, or by seconds; return the new time.

        Raises:
            ValueError: the duration is negative.
        """
        step = by if isinstance(by, timedelta) else timedelta(seconds=by)
        if step < timedelta(0):
            raise ValueError(f"the clock cannot go back by {-step}; create another one")
        self._now += step
        return self._now

    def set(self, now: datetime) -> None:
        """Set the time, which may be earlier than before, as when an operator sets a clock.

        Raises:
            ValueError: the time has no zone.
        """
        self._now = _aware(now)


def _aware(at: datetime) -> datetime:
    if at.tzinfo is None:
        raise ValueError(f"{at} has no zone; set one, such as tzinfo=UTC")
    return at.astimezone(UTC)
