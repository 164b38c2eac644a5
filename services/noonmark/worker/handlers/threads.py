"""Runs sync handlers on threads: one thread drains a queue of short runs, many share a queue of slow runs.

Passing each run to a thread costs more than recording it. So each thread takes the next run from the queue
itself, and more threads are woken only while the queue does not move.
"""

from __future__ import annotations

import os
import threading
import time
from collections import deque
from collections.abc import Callable, Sequence
from typing import Any

from noonmark.attempts.running_attempt import RunningAttempt
from noonmark.store.runs.finish import Outcome
from noonmark.telemetry.logs import get_logger

_SHORT_SECONDS = 0.001
"""Handlers that take less on average run one after the other on a single thread."""

_MOST_COUNTED_SECONDS = 4 * _SHORT_SECONDS
"""A handler counts no longer than this: a short one that waits for the GIL must not wake every thread."""

_FLUSH_SECONDS = 0.005
_FLUSH_COUNT = 200
_MISSING_SECONDS = 0.05
_IDLE_SECONDS = 30.0

_log = get_logger()

_forks = [0]
"""How often this process is a copy of one that had loaded this module."""


def _count_fork() -> None:
    _forks[0] += 1


os.register_at_fork(after_in_child=_count_fork)


class ThreadExecutor:
    """A pool that grows to `limit` threads when handlers block, and needs one when they do not."""

    def __init__(
        self,
        limit: int,
        execute: Callable[[RunningAttempt], Outcome | None],
        done: Callable[[Sequence[Outcome]], None],
    ) -> None:
        """Create the pool; threads are started when there are runs.

        Args:
            limit: maximum number of threads. Handlers that hang past their timeout are not counted.
            execute: runs one handler and never raises; returns None if the run was ended elsewhere.
            done: receives finished outcomes; called from any thread of the pool.
        """
        self.limit = limit
        self._execute = execute
        self._done = done
        self._queue: deque[RunningAttempt] = deque()
        self._wake = threading.Condition()
        self._idle = 0
        self._threads = 0
        self._short_of_threads = False
        self._closed = False
        self._forks = _forks[0]
        self._stuck: set[Any] = set()
        self._average_seconds = 0.0
        self._taken = 0
        self._taken_before = 0
        self._step = 1
        self._moved_at = 0.0
        self._finished: dict[int, deque[Outcome]] = {}
        self.running: dict[int, RunningAttempt] = {}
        """What each thread currently executes, by thread id."""

    @property
    def waiting(self) -> int:
        """The number of runs that wait for a thread."""
        return len(self._queue)

    def submit(self, attempts: Sequence[RunningAttempt]) -> None:
        """Queue runs; a single thread takes short ones, one after the other."""
        if not self._queue:
            self._moved_at = time.monotonic()
        self._queue.extend(attempts)
        if self._average_seconds >= _SHORT_SECONDS:
            self._call(len(attempts))
        elif not self._is_moving():
            self._call(1)

    def tend(self) -> None:
        """Wake more threads if handlers block and the queue has not moved since the last call.

        Called every few milliseconds. Outcomes that a thread has collected but cannot report, because its
        next run takes long, are reported here.
        """
        blocked_since = time.monotonic() - _FLUSH_SECONDS
        for thread, attempt in list(self.running.items()):
            if attempt.began_at < blocked_since:
                self._report(self._finished.get(thread, deque()))
        now = time.monotonic()
        if not self._queue or self._taken != self._taken_before:
            self._step, self._moved_at = 1, now
        elif self._is_blocked(now):
            self._call(self._step)
            self._step = min(self._step * 2, self.limit)
        self._taken_before = self._taken

    def _is_blocked(self, now: float) -> bool:
        """Return whether a handler takes long, or nothing has begun for so long that a thread may be missing.

        A handler that waits for the GIL is no reason for another thread, which would wait for it, too.
        """
        since = now - _FLUSH_SECONDS
        is_long = any(attempt.began_at < since for attempt in list(self.running.values()))
        return is_long or now - self._moved_at > _MISSING_SECONDS

    def withdraw(self) -> list[RunningAttempt]:
        """Take back the runs that no thread has begun."""
        taken = []
        while self._queue:
            try:
                taken.append(self._queue.popleft())
            except IndexError:
                break
        return taken

    def close(self) -> None:
        """Stop idle threads. Threads inside a handler are daemons and end with the process."""
        with self._wake:
            self._closed = True
            self._wake.notify_all()

    def replace_stuck(self, attempts: Sequence[RunningAttempt]) -> None:
        """Allow one more thread for each of these runs while its handler hangs past its timeout."""
        with self._wake:
            self._stuck.update(attempt.key for attempt in attempts)
            self.limit += len(attempts)

    def _is_moving(self) -> bool:
        """Return whether a thread has just begun a run: it will check the queue again soon."""
        just_now = time.monotonic() - _SHORT_SECONDS
        return any(attempt.began_at > just_now for attempt in list(self.running.values()))

    def _call(self, wanted: int) -> None:
        with self._wake:
            self._wake.notify(min(wanted, self._idle))
            fresh = min(wanted - self._idle, self.limit - self._threads)
            for _ in range(fresh):
                try:
                    # It cannot end before it is counted: for that it needs the lock that we hold.
                    threading.Thread(target=self._work, name="handler", daemon=True).start()
                except RuntimeError as error:
                    self._not_started(error)
                    return
                self._threads += 1
                self._short_of_threads = False

    def _not_started(self, error: RuntimeError) -> None:
        """Log once that the system has no thread for us; `tend` tries again while runs wait."""
        if not self._short_of_threads:
            self._short_of_threads = True
            _log.warning(
                "thread_not_started", error=str(error), threads=self._threads, waiting=len(self._queue)
            )

    def _work(self) -> None:
        """Run handlers until the queue is empty; whatever happens, finished outcomes are reported."""
        me = threading.get_ident()
        finished = self._finished[me] = deque()
        try:
            self._drain(me, finished)
        finally:
            self._report(finished)
            self.running.pop(me, None)
            del self._finished[me]
            with self._wake:
                self._threads -= 1

    def _drain(self, me: int, finished: deque[Outcome]) -> None:
        queue, running, execute, clock = self._queue, self.running, self._execute, time.monotonic
        flushed_at = clock()
        while True:
            try:
                attempt = queue.popleft()
            except IndexError:
                self._report(finished)
                if not self._rest():
                    return
                flushed_at = clock()
                continue
            self._taken += 1
            began = attempt.began_at = clock()
            running[me] = attempt
            outcome = execute(attempt)
            if _forks[0] != self._forks:
                # The handler forked and its child returned here: the queue belongs to the parent.
                os._exit(0)
            ended = clock()
            running.pop(me, None)
            if self._stuck:
                self._unstick(attempt)
            seconds = ended - began
            counted = min(_MOST_COUNTED_SECONDS, seconds)
            self._average_seconds += (counted - self._average_seconds) * 0.05
            if outcome is not None:
                finished.append(outcome)
            if len(finished) >= _FLUSH_COUNT or ended - flushed_at > _FLUSH_SECONDS:
                self._report(finished)
                flushed_at = ended

    def _unstick(self, attempt: RunningAttempt) -> None:
        """Remove the extra thread that replaced the one of a run whose handler has ended after all."""
        with self._wake:
            if attempt.key in self._stuck:
                self._stuck.remove(attempt.key)
                self.limit -= 1

    def _report(self, finished: deque[Outcome]) -> None:
        """Report what a thread has finished; the caller that takes an outcome from the deque reports it."""
        reported: list[Outcome] = []
        while finished:
            try:
                reported.append(finished.popleft())
            except IndexError:
                break
        if reported:
            self._done(reported)

    def _rest(self) -> bool:
        """Wait for work; False if the thread is not needed any more."""
        with self._wake:
            if self._closed:
                return False
            if self._queue:
                return True
            self._idle += 1
            woken = self._wake.wait(_IDLE_SECONDS)
            self._idle -= 1
            return not ((self._closed or not woken) and not self._queue)
