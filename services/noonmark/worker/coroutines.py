"""Runs async handlers and HTTP calls on an event loop in a thread of its own."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Awaitable, Callable, Sequence
from functools import partial
from typing import Any

import uvloop

from noonmark.store.work import Outcome
from noonmark.telemetry.logs import get_logger
from noonmark.worker.hand import Hand
from noonmark.worker.outcomes import cancelled, describe, failed, timed_out

_log = get_logger()


class LoopExecutor:
    """An event loop that takes whole batches of runs and gives back whole batches of outcomes."""

    def __init__(
        self,
        execute: Callable[[Hand], Awaitable[Outcome | None]],
        done: Callable[[Sequence[Outcome]], None],
        closing: Callable[[], Awaitable[None]],
    ) -> None:
        """Start the loop's thread.

        Args:
            execute: runs one handler and never raises except when cancelled.
            done: takes finished outcomes, called from the loop's thread.
            closing: awaited on the loop when the executor is closed.
        """
        self._execute = execute
        self._done = done
        self._closing = closing
        self._loop = uvloop.new_event_loop()
        self._tasks: dict[Any, asyncio.Task[Outcome | None]] = {}
        self._unwanted: set[Any] = set()
        self._let_go: set[Any] = set()
        self._finished: list[Outcome] = []
        self._flush_due = False
        self._closed = False
        self._thread = threading.Thread(target=self._run, name="coroutines", daemon=True)
        self._thread.start()

    def submit(self, hands: Sequence[Hand]) -> None:
        """Start a batch of runs on the loop."""
        self._loop.call_soon_threadsafe(self._begin, hands)

    def cancel(self, keys: Sequence[Any], *, verdict: bool) -> None:
        """Cancel running handlers by the key of their run; with `verdict` each ends as `cancelled`."""
        self._loop.call_soon_threadsafe(partial(self._cancel, keys, verdict=verdict))

    def close(self, timeout_seconds: float = 5.0) -> None:
        """Cancel what still runs and end the loop."""

        async def end() -> None:
            self._cancel(list(self._tasks), verdict=False)
            await asyncio.gather(*self._tasks.values(), return_exceptions=True)
            await self._closing()
            self._closed = True
            self._loop.stop()

        asyncio.run_coroutine_threadsafe(end(), self._loop)
        self._thread.join(timeout_seconds)

    def _run(self) -> None:
        """Run the loop until it is closed: a handler that stops it, or exits in a task, ends only itself."""
        asyncio.set_event_loop(self._loop)
        while not self._closed:
            try:
                self._loop.run_forever()
            except BaseException as error:  # noqa: BLE001 - an exit in a task ends no loop
                _log.error("event_loop_interrupted", error=describe(error))
            else:
                if not self._closed:
                    _log.error("event_loop_stopped", by="a handler")

    def _begin(self, hands: Sequence[Hand]) -> None:
        now = time.monotonic()
        for hand in hands:
            hand.began_at = now
            task = self._tasks[hand.key] = self._loop.create_task(self._one(hand))
            task.add_done_callback(partial(self._over, hand))

    def _cancel(self, keys: Sequence[Any], *, verdict: bool) -> None:
        for key in keys:
            task = self._tasks.get(key)
            if task is not None:
                (self._unwanted if verdict else self._let_go).add(key)
                task.cancel()

    async def _one(self, hand: Hand) -> Outcome | None:
        try:
            async with asyncio.timeout(hand.timeout_seconds) as limit:
                return await self._execute(hand)
        except TimeoutError:
            # `execute` turns a handler's own TimeoutError into an outcome: this one is the limit's.
            assert limit.expired()
            return timed_out(hand)

    def _over(self, hand: Hand, task: asyncio.Task[Outcome | None]) -> None:
        """Take what a task left; called for one that was cancelled before its first step, too."""
        self._tasks.pop(hand.key, None)
        if task.cancelled():
            outcome = self._cancelled(hand)
        elif (error := task.exception()) is not None:
            outcome = failed(hand, describe(error))
        else:
            outcome = task.result()
        self._unwanted.discard(hand.key)
        self._let_go.discard(hand.key)
        if outcome is not None:
            self._finished.append(outcome)
            if not self._flush_due:
                self._flush_due = True
                self._loop.call_soon(self._flush)

    def _cancelled(self, hand: Hand) -> Outcome | None:
        """Say what a cancelled task means: whoever cancels says why."""
        if hand.key in self._unwanted:
            return cancelled(hand)
        if hand.key in self._let_go:
            return None
        return failed(hand, "CancelledError: the handler let a cancellation escape that nobody had asked for")

    def _flush(self) -> None:
        finished, self._finished = self._finished, []
        self._flush_due = False
        self._done(finished)
