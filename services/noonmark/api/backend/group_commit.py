"""Group commit: concurrent requests share one transaction in one thread."""

from __future__ import annotations

import asyncio
import threading
from collections import defaultdict, deque
from collections.abc import Callable, Sequence
from functools import partial
from typing import Final, Generic, TypeVar

Item = TypeVar("Item")
Answer = TypeVar("Answer")

StartNext = Callable[[], None]

_Waiting = tuple[Item, asyncio.AbstractEventLoop, Callable[[Answer | Exception], None]]
"""An item, the event loop of its caller, and what is called there with its result."""

MAX_WAITING: Final = 5_000
"""Most requests that create a job and wait; one credential has at most three quarters of them."""

_MOST_TOGETHER: Final = 200
_IDLE_SECONDS: Final = 10.0

_ROUNDS: Final = 2
"""Rounds of the event loop before a thread is woken: the first reads requests of other connections, the
second submits them. Without other requests, they take microseconds."""


class TooBusyError(Exception):
    """Too many requests are waiting."""


class GroupCommit(Generic[Item, Answer]):
    """Passes all waiting items to `work` in one batch, without waiting for more.

    One batch is processed at a time, so that batches grow with the load and each item costs less. While one
    batch waits for its commit, the next one starts. Idle threads stop, and start again when needed.
    """

    def __init__(
        self,
        work: Callable[[Sequence[Item], StartNext], Sequence[Answer | Exception]],
        *,
        threads: int,
        max_waiting: int,
    ) -> None:
        """Create it without threads.

        Args:
            work: returns the result of each item, in order; an exception that it raises is the result of all
                items. It calls its second argument as soon as the next batch can start.
            threads: most batches at once; all but one of them wait for their commit.
            max_waiting: most waiting items.
        """
        self._work = work
        self._threads = threads
        self._max_waiting = max_waiting
        self._running = 0
        self._idle = 0
        self._free = True
        self._arrived = threading.Condition()
        self._waiting: deque[_Waiting[Item, Answer]] = deque()
        self._gathering: set[asyncio.AbstractEventLoop] = set()

    async def submit(self, item: Item) -> Answer:
        """Process one item and return its result.

        Raises:
            TooBusyError: if the queue is full.
            Exception: if the result of the item is an exception, or the work failed.
        """
        future: asyncio.Future[Answer] = asyncio.get_running_loop().create_future()
        self.enqueue(item, partial(_settle, future))
        return await future

    def enqueue(self, item: Item, done: Callable[[Answer | Exception], None]) -> None:
        """Process one item, and call `done` with its result on the running event loop.

        Raises:
            TooBusyError: if the queue is full.
        """
        loop = asyncio.get_running_loop()
        with self._arrived:
            if len(self._waiting) >= self._max_waiting:
                raise TooBusyError(f"{self._max_waiting} requests of this kind are waiting already")
            self._waiting.append((item, loop, done))
        if loop not in self._gathering:
            self._gathering.add(loop)
            loop.call_soon(self._end_round, loop, _ROUNDS)

    def _end_round(self, loop: asyncio.AbstractEventLoop, left: int) -> None:
        if left > 1:
            loop.call_soon(self._end_round, loop, left - 1)
        else:
            self._gathering.discard(loop)
            self._wake()

    def _wake(self) -> None:
        """Wake or start a thread, unless a running one will process the queue."""
        with self._arrived:
            if not self._waiting:
                return
            if self._idle:
                self._arrived.notify()
            elif self._running < self._threads:
                self._running += 1
                threading.Thread(target=self._serve, name="gatherer", daemon=True).start()

    def _serve(self) -> None:
        while batch := self._next():
            turn = _Turn(self._give_turn)
            try:
                answers: Sequence[Answer | Exception] = self._work([item for item, _, _ in batch], turn)
            except Exception as error:  # noqa: BLE001 - it is the result of each item
                answers = [error] * len(batch)
            turn()
            results = defaultdict(list)
            for (_, loop, done), answer in zip(batch, answers, strict=True):
                results[loop].append((done, answer))
            for loop, pairs in results.items():
                try:
                    loop.call_soon_threadsafe(_deliver, pairs)
                except RuntimeError:  # its loop has stopped, and with it the caller
                    continue

    def _next(self) -> list[_Waiting[Item, Answer]]:
        """Wait for the turn and a batch; an empty list means that the idle thread must stop."""
        with self._arrived:
            self._idle += 1
            while not (self._waiting and self._free):
                if not self._arrived.wait(_IDLE_SECONDS) and not self._waiting:
                    self._idle -= 1
                    self._running -= 1
                    return []
            self._idle -= 1
            self._free = False
            count = min(len(self._waiting), _MOST_TOGETHER)
            return [self._waiting.popleft() for _ in range(count)]

    def _give_turn(self) -> None:
        with self._arrived:
            self._free = True
            if self._waiting:
                self._arrived.notify()


class _Turn:
    """The turn of one batch, which it releases exactly once."""

    def __init__(self, give: Callable[[], None]) -> None:
        self._give: Callable[[], None] | None = give

    def __call__(self) -> None:
        give, self._give = self._give, None
        if give is not None:
            give()


def _deliver(pairs: Sequence[tuple[Callable[[Answer | Exception], None], Answer | Exception]]) -> None:
    for done, answer in pairs:
        done(answer)


def _settle(future: asyncio.Future[Answer], answer: Answer | Exception) -> None:
    if future.done():  # its caller disconnected
        return
    if isinstance(answer, Exception):
        future.set_exception(answer)
    else:
        future.set_result(answer)
