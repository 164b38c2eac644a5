"""The loops of the users' async handlers: one, unless a handler blocks it."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from typing import Any, Final

from noonmark.attempts.running_attempt import RunningAttempt
from noonmark.store.runs.finish import Outcome
from noonmark.telemetry.logs import get_logger
from noonmark.worker.handlers.coroutines import LoopExecutor

SLACK_SECONDS: Final = 1.0
"""A loop that has not cancelled an overdue run after so long cannot, or the run does not let it."""

_BLOCKED_SECONDS: Final = 30.0
"""A loop that has answered nothing for so long is replaced even if no run on it is overdue."""

_log = get_logger()


class EventLoops:
    """Takes runs for the newest loop; the older ones finish what they hold.

    Objects that handlers share are often bound to a loop, so one that blocks is replaced only when that
    has cost a run its time, or nothing at all has moved for long.
    """

    def __init__(
        self,
        execute: Callable[[RunningAttempt], Awaitable[Outcome | None]],
        done: Callable[[Sequence[Outcome]], None],
    ) -> None:
        """Start the first loop; the arguments are those of `LoopExecutor`."""
        self._execute = execute
        self._done = done
        self._loops = [self._make()]

    def submit(self, attempts: Sequence[RunningAttempt]) -> None:
        """Start a batch of runs."""
        self._loops[-1].submit(attempts)

    def cancel(self, keys: Sequence[Any], *, verdict: bool) -> None:
        """Cancel runs wherever they are; see `LoopExecutor.cancel`."""
        for loop in self._loops:
            loop.cancel(keys, verdict=verdict)

    def overdue(self, now: float) -> list[RunningAttempt]:
        """Return runs whose limit has passed without their end; where a loop is blocked, replace it."""
        found: list[RunningAttempt] = []
        for loop in list(self._loops):
            late = loop.overdue(now, SLACK_SECONDS)
            found += late
            blocked = loop.blocked_seconds(now)
            if loop is self._loops[-1]:
                if blocked > _BLOCKED_SECONDS or (late and blocked > 0):
                    self._replace(loop, blocked)
            elif not blocked and not loop.running:
                self._loops.remove(loop)
                loop.close()
        return found

    def close(self) -> None:
        """Cancel what still runs and end the loops; one that is blocked is not waited for."""
        for loop in self._loops[:-1]:
            loop.close(0.0)
        self._loops[-1].close()

    def _make(self) -> LoopExecutor:
        return LoopExecutor(self._execute, self._done, _nothing)

    def _replace(self, blocked: LoopExecutor, seconds: float) -> None:
        handlers = sorted({str(attempt.run.handler) for attempt in list(blocked.running.values())})
        _log.error("event_loop_blocked", seconds=round(seconds, 1), running=handlers[:10])
        self._loops.append(self._make())
        self._loops[-1].submit(blocked.take_unbegun())


async def _nothing() -> None:
    """Nothing is held by handlers that a worker could close."""
