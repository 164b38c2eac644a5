"""Runs sync handlers on threads: one drains a queue of short ones, many share a queue of slow ones.

Handing each run to a thread costs more than recording it does, so a thread takes the next run from
the queue by itself, and further threads are woken only while the queue does not move.
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

_SHORT_SECONDS = 0.001
"""Handlers that take less on average are run one after the other by a single thread."""

_FLUSH_SECONDS = 0.002
_FLUSH_COUNT = 200
_IDLE_SECONDS = 30.0


class ThreadExecutor:
    """A pool that grows to `limit` threads when handlers block, and needs one when they do not."""

    def __init__(
        self,
        limit: int,
        execute: Callable[[RunningAttempt], Outcome | None],
        done: Callable[[Sequence[Outcome]], None],
    ) -> None:
        """Make the pool; threads are started when there is something to do.

        Args:
            limit: most threads. Handlers that hang past their timeout are not counted.
            execute: runs one handler and never raises; None where somebody else ended the run.
            done: takes finished outcomes, called from any thread of the pool.
        """
        self.limit = limit
        self._execute = execute
        self._done = done
        self._queue: deque[RunningAttempt] = deque()
        self._wake = threading.Condition()
        self._idle = 0
        self._threads = 0
        self._closed = False
        self._process = os.getpid()
        self._stuck: set[Any] = set()
        self._average_seconds = 0.0
        self._taken = 0
        self._taken_before = 0
        self._step = 1
        self._finished: dict[int, deque[Outcome]] = {}
        self.running: dict[int, RunningAttempt] = {}
        """What each thread executes at this moment, by thread id."""

    @property
    def waiting(self) -> int:
        """How many runs wait for a thread."""
        return len(self._queue)

    def submit(self, attempts: Sequence[RunningAttempt]) -> None:
        """Queue runs; short ones go to a single thread, which comes back for them if it is at work."""
        self._queue.extend(attempts)
        if self._average_seconds >= _SHORT_SECONDS:
            self._call(len(attempts))
        elif not self._is_moving():
            self._call(1)

    def tend(self) -> None:
        """Wake more threads if the queue has not moved since the last look; called every few milliseconds.

        Outcomes that a thread kept to itself and cannot tell, for its next run takes long, are told here.
        """
        blocked_since = time.monotonic() - _FLUSH_SECONDS
        for thread, attempt in list(self.running.items()):
            if attempt.began_at < blocked_since:
                self._report(self._finished.get(thread, deque()))
        if not self._queue:
            self._step = 1
        elif self._taken == self._taken_before:
            self._call(self._step)
            self._step = min(self._step * 2, self.limit)
        else:
            self._step = 1
        self._taken_before = self._taken

    def withdraw(self) -> list[RunningAttempt]:
        """Take back what no thread has begun."""
        taken = []
        while self._queue:
            try:
                taken.append(self._queue.popleft())
            except IndexError:
                break
        return taken

    def close(self) -> None:
        """Let idle threads go. Threads inside a handler are daemons and end with the process."""
        with self._wake:
            self._closed = True
            self._wake.notify_all()

    def replace_stuck(self, attempts: Sequence[RunningAttempt]) -> None:
        """Allow a thread more for each of these runs while its handler hangs past its timeout."""
        with self._wake:
            self._stuck.update(attempt.key for attempt in attempts)
            self.limit += len(attempts)

    def _is_moving(self) -> bool:
        """Tell whether a thread has begun a run just now: it will look at the queue again."""
        just_now = time.monotonic() - _SHORT_SECONDS
        return any(attempt.began_at > just_now for attempt in list(self.running.values()))

    def _call(self, wanted: int) -> None:
        with self._wake:
            self._wake.notify(min(wanted, self._idle))
            fresh = min(wanted - self._idle, self.limit - self._threads)
            for _ in range(fresh):
                self._threads += 1
                threading.Thread(target=self._work, name="handler", daemon=True).start()

    def _work(self) -> None:
        """Run handlers until there is nothing to do; whatever happens, finished outcomes are told."""
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
        flushed_at = time.monotonic()
        while True:
            try:
                attempt = self._queue.popleft()
            except IndexError:
                self._report(finished)
                if not self._rest():
                    return
                flushed_at = time.monotonic()
                continue
            self._taken += 1
            began = attempt.began_at = time.monotonic()
            self.running[me] = attempt
            outcome = self._execute(attempt)
            if os.getpid() != self._process:
                # The handler forked and its child came back here: the queue is the parent's.
                os._exit(0)
            ended = time.monotonic()
            self.running.pop(me, None)
            if self._stuck:
                self._unstick(attempt)
            self._average_seconds += ((ended - began) - self._average_seconds) * 0.05
            if outcome is not None:
                finished.append(outcome)
            if len(finished) >= _FLUSH_COUNT or ended - flushed_at > _FLUSH_SECONDS:
                self._report(finished)
                flushed_at = ended

    def _unstick(self, attempt: RunningAttempt) -> None:
        """Take back the place that was given for a run whose handler has ended after all."""
        with self._wake:
            if attempt.key in self._stuck:
                self._stuck.remove(attempt.key)
                self.limit -= 1

    def _report(self, finished: deque[Outcome]) -> None:
        """Hand over what a thread has finished; whoever takes an outcome from the deque tells it."""
        told: list[Outcome] = []
        while finished:
            try:
                told.append(finished.popleft())
            except IndexError:
                break
        if told:
            self._done(told)

    def _rest(self) -> bool:
        """Wait for work; False when the thread is not needed any more."""
        with self._wake:
            if self._closed:
                return False
            if self._queue:
                return True
            self._idle += 1
            woken = self._wake.wait(_IDLE_SECONDS)
            self._idle -= 1
            return not ((self._closed or not woken) and not self._queue)
