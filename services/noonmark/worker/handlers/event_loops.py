"""The event loops of async handlers: one, unless a handler blocks it."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from typing import Any, Final

from noonmark.attempts.running_attempt import RunningAttempt
from noonmark.store.runs.finish import Outcome
from noonmark.telemetry.logs import get_logger
from noonmark.worker.handlers.coroutines import LoopExecutor

SLACK_SECONDS: Final = 1.0
"""If an overdue run was not cancelled after this time, its loop is blocked, or the run ignores the cancel."""

_BLOCKED_SECONDS: Final = 30.0
"""A loop that does not respond for this time is replaced, even if no run on it is overdue."""

_log = get_logger()


class EventLoops:
    """Starts runs on the newest loop; older loops finish the runs that they have.

    Objects that handlers share are often bound to a loop. So a blocked loop is replaced only if a run on it
    has timed out, or if it has not responded for long.
    """

    def __init__(
        self,
        execute: Callable[[RunningAttempt], Awaitable[Outcome | None]],
        done: Callable[[Sequence[Outcome]], None],
    ) -> None:
        """Start the first loop; for the arguments see `LoopExecutor`."""
        self._execute = execute
        self._done = done
        self._loops = [self._make()]

    def submit(self, attempts: Sequence[RunningAttempt]) -> None:
        """Start a batch of runs."""
        self._loops[-1].submit(attempts)

    def cancel(self, keys: Sequence[Any], *, verdict: bool) -> None:
        """Cancel runs on any loop; see `LoopExecutor.cancel`."""
        for loop in self._loops:
            loop.cancel(keys, verdict=verdict)

    def overdue(self, now: float) -> list[RunningAttempt]:
        """Return runs that are past their timeout; replace the newest loop if it is blocked."""
        found: list[RunningAttempt] = []
        for loop in list(self._loops):
            blocked = loop.blocked_seconds(now)
            late = loop.overdue(now, SLACK_SECONDS)
            found += late
            if loop is self._loops[-1]:
                if blocked > _BLOCKED_SECONDS or (late and blocked > 0):
                    self._replace(loop, blocked)
            elif not blocked and not loop.running:
                self._loops.remove(loop)
                loop.close()
        return found

    def close(self) -> None:
        """Cancel what still runs and stop the loops, without waiting for a blocked one."""
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
    """Close nothing: handlers own no resources of the worker."""
