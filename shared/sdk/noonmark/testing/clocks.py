"""A clock that stands until a test moves it."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta


class VirtualClock:
    """Tells the time that a test has set. It never moves by itself."""

    def __init__(self, now: datetime | None = None) -> None:
        """Set it; by default to the first of January 2030, midnight UTC.

        Raises:
            ValueError: a time without its zone.
        """
        self._now = _aware(now or datetime(2030, 1, 1, tzinfo=UTC))

    def now(self) -> datetime:
        """Return the time, in UTC."""
        return self._now

    def advance(self, by: timedelta | float) -> datetime:
        """Move on by a duration, or by seconds; return the new time.

        Raises:
            ValueError: it would go back.
        """
        step = by if isinstance(by, timedelta) else timedelta(seconds=by)
        if step < timedelta(0):
            raise ValueError(f"the clock cannot go back by {-step}; make another one")
        self._now += step
        return self._now

    def set(self, now: datetime) -> None:
        """Set it to an instant, which may lie before: as an operator would set a clock.

        Raises:
            ValueError: a time without its zone.
        """
        self._now = _aware(now)


def _aware(at: datetime) -> datetime:
    if at.tzinfo is None:
        raise ValueError(f"{at} has no zone; give it one, such as tzinfo=UTC")
    return at.astimezone(UTC)
