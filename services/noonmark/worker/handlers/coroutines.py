"""Runs async work on an event loop in a separate thread."""

from __future__ import annotations

import asyncio
import os
import threading
import time
import weakref
from collections.abc import Awaitable, Callable, Coroutine, Sequence
from functools import partial
from typing import Any, Final

import uvloop

from noonmark.attempts.outcomes import cancelled, describe, failed, raised, timed_out
from noonmark.attempts.running_attempt import RunningAttempt
from noonmark.store.runs.finish import Outcome
from noonmark.telemetry.logs import get_logger
from noonmark.telemetry.routed_output import printing_for
from noonmark.worker.time_limits import TimeLimit, TimeLimits

_LONGEST_GAP_SECONDS: Final = 2.0
"""Of the time between two checks of a loop, so much counts at most."""

_TICK_SECONDS: Final = 0.25
_MOST_POSTPONED_SECONDS: Final = 30.0
"""Time in which others blocked the loop does not count against an attempt, up to this or its own timeout.
Less than the 60 s after which a run is taken from its worker, so that no run is executed twice for it.
"""

_log = get_logger()


class _LoopClock:
    """The timeout of an attempt on an event loop."""

    def __init__(self, loop: asyncio.AbstractEventLoop, limit: TimeLimit) -> None:
        self._loop = loop
        self._limit = limit
        self._postponed = 0.0

    def allowance(self, attempt: RunningAttempt) -> float:
        """Return by how many seconds the timeout can still be postponed."""
        return min(attempt.timeout_seconds, _MOST_POSTPONED_SECONDS) - self._postponed

    def postpone(self, attempt: RunningAttempt, seconds: float) -> None:
        """Postpone a timeout that is running: the loop was blocked."""
        more, ends_at = min(seconds, self.allowance(attempt)), self._limit.when()
        if more > 0 and ends_at is not None and not self._limit.expired():
            self._postponed += more
            attempt.began_at += more
            self._limit.reschedule(ends_at + more)

    def hold(self, attempt: RunningAttempt) -> None:
        """Stop the timeout."""
        attempt.began_at = 0.0
        self._limit.reschedule(None)

    def start(self, attempt: RunningAttempt) -> None:
        """Start the timeout from the beginning."""
        attempt.began_at = time.monotonic()
        self._limit.reschedule(self._loop.time() + attempt.timeout_seconds)


class _RunTask(asyncio.Task[Outcome | None]):
    """The task of a run, which the handlers of other runs on its loop cannot cancel.

    One that cancels all tasks of the loop, as programs do at their end, would end its neighbours otherwise.
    """

    def __init__(
        self,
        coroutine: Coroutine[Any, Any, Outcome | None],
        loop: asyncio.AbstractEventLoop,
        attempt: RunningAttempt,
    ) -> None:
        super().__init__(coroutine, loop=loop)
        self._attempt = attempt

    def cancel(self, msg: Any | None = None) -> bool:
        # Tasks and callbacks inherit this from the handler that made them.
        caller = printing_for()
        if caller is not None and caller is not self._attempt:
            return False
        return super().cancel(msg)


class LoopExecutor:
    """An event loop that takes batches of runs and returns batches of outcomes."""

    def __init__(
        self,
        execute: Callable[[RunningAttempt], Awaitable[Outcome | None]],
        done: Callable[[Sequence[Outcome]], None],
        closing: Callable[[], Awaitable[None]],
    ) -> None:
        """Start the loop's thread.

        Args:
            execute: runs one handler; raises nothing but a cancellation.
            done: receives finished outcomes; called from the loop's thread.
            closing: awaited on the loop when the executor is closed.
        """
        self._execute = execute
        self._done = done
        self._closing = closing
        self._loop = uvloop.new_event_loop()
        self._limits = TimeLimits(self._loop)
        self._tasks: dict[Any, asyncio.Task[Outcome | None]] = {}
        self._clocks: dict[Any, _LoopClock] = {}
        self._tick_at: float | None = None
        self._unbegun: dict[Any, RunningAttempt] = {}
        self._asked_at: float | None = None
        self._checked_at = 0.0
        self._blocked_seconds = 0.0
        self._to_cancel: set[Any] = set()
        self._released: set[Any] = set()
        self._finished: list[Outcome] = []
        self._flush_due = False
        self._closed = False
        self.running: dict[Any, RunningAttempt] = {}
        """Runs whose task has begun, by key."""

        self._process = os.getpid()
        self._thread = threading.Thread(target=self._run, name="coroutines", daemon=True)
        os.register_at_fork(after_in_child=partial(_end_fork, weakref.ref(self)))
        self._thread.start()

    def submit(self, attempts: Sequence[RunningAttempt]) -> None:
        """Start a batch of runs on the loop."""
        self._unbegun.update((attempt.key, attempt) for attempt in attempts)
        self._loop.call_soon_threadsafe(self._begin, attempts)

    def cancel(self, keys: Sequence[Any], *, verdict: bool) -> None:
        """Cancel runs by key; with `verdict`, each ends as `cancelled`, otherwise without an outcome."""
        self._loop.call_soon_threadsafe(partial(self._cancel, keys, verdict=verdict))

    def holds(self, key: Any) -> bool:
        """Return whether a run was submitted and has not ended; callable from any thread."""
        return key in self._unbegun or key in self.running

    def take_unbegun(self) -> list[RunningAttempt]:
        """Take back the runs whose task has not begun; they will not begin here any more."""
        taken = [self._unbegun.pop(key, None) for key in list(self._unbegun)]
        return [attempt for attempt in taken if attempt is not None]

    def blocked_seconds(self, now: float) -> float:
        """Return for how many seconds the loop has not responded; call it every second: it sends a request.

        A long gap between two calls counts little: the caller got no CPU then, and so neither did the loop.

        Args:
            now: monotonic time in seconds.
        """
        if self._asked_at is None:
            self._asked_at, self._blocked_seconds = now, 0.0
            self._loop.call_soon_threadsafe(self._answer)
        else:
            self._blocked_seconds += min(now - self._checked_at, _LONGEST_GAP_SECONDS)
        self._checked_at = now
        return self._blocked_seconds

    def overdue(self, now: float, slack_seconds: float) -> list[RunningAttempt]:
        """Return the runs that are past their timeout by more than the loop needs to cancel them.

        While the loop is blocked, that is the run that blocks it. The others get some time: they cannot end.
        """
        late = [
            (key, attempt, now - attempt.began_at - attempt.timeout_seconds - slack_seconds)
            for key, attempt in list(self.running.items())
            if attempt.began_at and now - attempt.began_at > attempt.timeout_seconds + slack_seconds
        ]
        if not late or not self._blocked_seconds:
            return [attempt for _, attempt, _ in late]
        blocking = asyncio.current_task(self._loop)
        return [
            attempt
            for key, attempt, seconds in late
            if self._tasks.get(key) is blocking or seconds > self._allowance(key, attempt)
        ]

    def call(self, function: Callable[[], object]) -> None:
        """Call a function on the loop."""
        self._loop.call_soon_threadsafe(function)

    def close(self, timeout_seconds: float = 1.0) -> None:
        """Cancel what still runs and stop the loop."""

        async def end() -> None:
            self._cancel(list(self._tasks), verdict=False)
            await asyncio.gather(*self._tasks.values(), return_exceptions=True)
            await self._closing()
            self._closed = True
            self._loop.stop()

        asyncio.run_coroutine_threadsafe(end(), self._loop)
        self._thread.join(timeout_seconds)

    def _run(self) -> None:
        """Run the loop until it is closed, also if a handler stops it or calls exit in a task."""
        asyncio.set_event_loop(self._loop)
        while not self._closed:
            try:
                self._loop.run_forever()
            except BaseException as error:  # noqa: BLE001 - an exit in a task must not end the loop
                _log.error("event_loop_interrupted", error=describe(error))
            else:
                if not self._closed:
                    _log.error("event_loop_stopped", by="a handler")

    def end_fork(self) -> None:
        """Exit when this process, a fork of the loop's thread, returns to the loop."""
        if threading.current_thread() is self._thread:
            self._loop.call_soon(os._exit, 0)

    def _answer(self) -> None:
        self._asked_at, self._blocked_seconds = None, 0.0

    def _allowance(self, key: Any, attempt: RunningAttempt) -> float:
        clock = self._clocks.get(key)
        return clock.allowance(attempt) if clock is not None else 0.0

    def _tick(self) -> None:
        """Postpone the timeouts of all runs by the time that the loop could not run since the last tick."""
        assert self._tick_at is not None
        now = self._loop.time()
        blocked = now - self._tick_at
        # The next tick first: whatever happens in this one, later blocks must be noticed.
        self._tick_at = now + _TICK_SECONDS if self._tasks else None
        if self._tick_at is not None:
            self._loop.call_at(self._tick_at, self._tick)
        if blocked > _TICK_SECONDS:
            for key, attempt in self.running.items():
                if (clock := self._clocks.get(key)) is not None:
                    clock.postpone(attempt, blocked)

    def _begin(self, attempts: Sequence[RunningAttempt]) -> None:
        for attempt in attempts:
            task = self._tasks[attempt.key] = _RunTask(self._one(attempt), self._loop, attempt)
            task.add_done_callback(partial(self._finish, attempt))
        if self._tick_at is None:
            self._tick_at = self._loop.time() + _TICK_SECONDS
            self._loop.call_at(self._tick_at, self._tick)

    def _cancel(self, keys: Sequence[Any], *, verdict: bool) -> None:
        for key in keys:
            task = self._tasks.get(key)
            if task is not None:
                (self._to_cancel if verdict else self._released).add(key)
                task.cancel()

    async def _one(self, attempt: RunningAttempt) -> Outcome | None:
        if self._unbegun.pop(attempt.key, None) is None:
            return None  # taken back meanwhile
        attempt.began_at = time.monotonic()
        self.running[attempt.key] = attempt
        try:
            with self._limits.limit(attempt.timeout_seconds) as limit:
                attempt.clock = self._clocks[attempt.key] = _LoopClock(self._loop, limit)
                outcome = await self._execute(attempt)
                if os.getpid() != self._process:
                    # The handler forked and its child returned here: the other runs belong to the parent.
                    os._exit(0)
                return outcome
        except TimeoutError:
            # `execute` turns a handler's own TimeoutError into an outcome: this one is the attempt's timeout.
            assert limit.expired()
            return timed_out(attempt)

    def _finish(self, attempt: RunningAttempt, task: asyncio.Task[Outcome | None]) -> None:
        """Collect the outcome of a task, also of one that was cancelled before it began."""
        self._tasks.pop(attempt.key, None)
        self._clocks.pop(attempt.key, None)
        if task.cancelled():
            self._unbegun.pop(attempt.key, None)
            outcome = self._cancelled(attempt)
        elif (error := task.exception()) is not None:
            outcome = raised(attempt, error)
        else:
            outcome = task.result()
        if self._to_cancel or self._released:
            self._to_cancel.discard(attempt.key)
            self._released.discard(attempt.key)
        self.running.pop(attempt.key, None)
        if outcome is not None:
            self._finished.append(outcome)
            if not self._flush_due:
                self._flush_due = True
                self._loop.call_soon(self._flush)

    def _cancelled(self, attempt: RunningAttempt) -> Outcome | None:
        """Return the outcome of a cancelled task; None if its run was released."""
        if attempt.key in self._to_cancel:
            return cancelled(attempt)
        if attempt.key in self._released:
            return None
        return failed(attempt, "CancelledError: the handler raised a cancellation that was not requested")

    def _flush(self) -> None:
        finished, self._finished = self._finished, []
        self._flush_due = False
        self._done(finished)


def _end_fork(executor: weakref.ref[LoopExecutor]) -> None:
    """Make a fork that a handler created exit before it runs other runs of the loop."""
    loop = executor()
    if loop is not None:
        loop.end_fork()
