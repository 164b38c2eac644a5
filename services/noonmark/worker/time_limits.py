"""Timeouts of many tasks of one event loop, with one timer for all.

Nearly every timeout ends unused. `asyncio.timeout` still gives each a timer of the loop and takes it back,
which costs more than everything else that an attempt asks of its loop.
"""

from __future__ import annotations

import asyncio
import math
from contextvars import Context
from heapq import heapify, heappop, heappush
from types import TracebackType
from typing import Final, Self

_CLOCK_SECONDS: Final = 0.001
"""The resolution of the loop's clock: a timer can fire this much too early."""

_MOST_UNUSED: Final = 256
"""Ends of limits that are over are kept in the heap up to this number, or half of all."""

_End = tuple[float, int, "TimeLimit"]


class TimeLimits:
    """Creates the time limits of one event loop, and ends them. Used on that loop alone."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        """Create no limit yet."""
        self._loop = loop
        # The timer must not run as a part of the task that happens to start it.
        self._context = Context()
        self._ends: list[_End] = []
        self._unused = 0
        self._number = 0
        self._timer: asyncio.TimerHandle | None = None
        self._timer_at = math.inf

    def limit(self, seconds: float) -> TimeLimit:
        """Return a limit for the block that is entered with it, in seconds from now."""
        return TimeLimit(self, self._loop.time() + seconds)

    def schedule(self, limit: TimeLimit, ends_at: float) -> int:
        """End a limit at a time of the loop; return the number by which this end is current."""
        self._number += 1
        heappush(self._ends, (ends_at, self._number, limit))
        if ends_at < self._timer_at:
            self._set_timer(ends_at)
        return self._number

    def drop(self) -> None:
        """Count an end that is not current any more; they are removed together."""
        self._unused += 1
        if self._unused > _MOST_UNUSED and self._unused * 2 > len(self._ends):
            self._ends = [end for end in self._ends if end[2].number == end[1]]
            heapify(self._ends)
            self._unused = 0

    def _set_timer(self, at: float) -> None:
        if self._timer is not None:
            self._timer.cancel()
        self._timer_at = at
        self._timer = self._loop.call_at(at, self._end, context=self._context)

    def _end(self) -> None:
        """End the limits that are due, and set the timer for the next."""
        self._timer, self._timer_at = None, math.inf
        due = self._loop.time() + _CLOCK_SECONDS
        while self._ends:
            ends_at, number, limit = self._ends[0]
            current = limit.number == number
            if current and ends_at > due:
                self._set_timer(ends_at)
                return
            heappop(self._ends)
            if current:
                limit.end()
            else:
                self._unused -= 1


class TimeLimit:
    """Cancels the block that is entered with it when its time is up, and raises `TimeoutError` in its place.

    Attributes:
        number: of the end that is current; 0 if there is none.
    """

    __slots__ = ("_ends_at", "_expired", "_limits", "_requests", "_task", "number")

    def __init__(self, limits: TimeLimits, ends_at: float) -> None:
        self._limits = limits
        self._ends_at: float | None = ends_at
        self._task: asyncio.Task[object] | None = None
        self._requests = 0
        self._expired = False
        self.number = 0

    def __enter__(self) -> Self:
        task = asyncio.current_task()
        assert task is not None
        assert self._ends_at is not None
        self._task = task
        self._requests = task.cancelling()
        self.number = self._limits.schedule(self, self._ends_at)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, _trace: TracebackType | None
    ) -> None:
        task, self._task = self._task, None
        self._clear()
        if self._expired:
            assert task is not None
            # Another cancel that was requested meanwhile takes precedence.
            if task.uncancel() <= self._requests and kind is asyncio.CancelledError:
                raise TimeoutError from error

    def when(self) -> float | None:
        """Return the time of the loop at which it ends; None if it is not running."""
        return self._ends_at

    def expired(self) -> bool:
        """Return whether its time was up before its block was left."""
        return self._expired

    def reschedule(self, ends_at: float | None) -> None:
        """Let it end at another time of the loop, or never; one that is over stays over."""
        if self._task is None or self._expired:
            return
        self._clear()
        self._ends_at = ends_at
        if ends_at is not None:
            self.number = self._limits.schedule(self, ends_at)

    def end(self) -> None:
        """Cancel the block: the time is up."""
        assert self._task is not None
        self.number = 0
        self._expired = True
        self._task.cancel()

    def _clear(self) -> None:
        if self.number:
            self.number = 0
            self._limits.drop()
