"""Group commit: what is asked for at the same time is done together, in one transaction of one thread."""

from __future__ import annotations

import asyncio
import threading
from collections import defaultdict, deque
from collections.abc import Callable, Sequence
from typing import Final, Generic, TypeVar

Item = TypeVar("Item")
Answer = TypeVar("Answer")

PassOn = Callable[[], None]

_MOST_TOGETHER: Final = 200
_IDLE_SECONDS: Final = 10.0

_ROUNDS: Final = 2
"""Of the event loop before a thread is woken: what has come on other connections is read in the first, and
asked for in the second. Nobody waits in them: where nothing else has come, they take microseconds."""


class TooBusyError(Exception):
    """More is waiting than is worth waiting for."""


class GroupCommit(Generic[Item, Answer]):
    """Hands what has come to `work`, as much as there is: it never waits for more to come.

    One batch is worked on at a time, so that batches grow with the load and cost less for each item; while
    one is in its commit, where it only waits, the next one has its turn. The threads end when they have been
    idle, and are started again when they are needed.
    """

    def __init__(
        self,
        work: Callable[[Sequence[Item], PassOn], Sequence[Answer | Exception]],
        *,
        threads: int,
        max_waiting: int,
    ) -> None:
        """Make it without a thread.

        Args:
            work: answers each item, in their order; what it raises is everybody's answer. It calls what it is
                given as soon as the next batch may begin.
            threads: batches at once at most, all but one of them in their commit.
            max_waiting: items that may wait.
        """
        self._work = work
        self._threads = threads
        self._max_waiting = max_waiting
        self._running = 0
        self._idle = 0
        self._free = True
        self._arrived = threading.Condition()
        self._waiting: deque[tuple[Item, asyncio.AbstractEventLoop, asyncio.Future[Answer]]] = deque()

    async def submit(self, item: Item) -> Answer:
        """Return the answer to one item.

        Raises:
            TooBusyError: there is no room.
            Exception: what the work has for an answer, or failed with.
        """
        loop = asyncio.get_running_loop()
        future: asyncio.Future[Answer] = loop.create_future()
        with self._arrived:
            if len(self._waiting) >= self._max_waiting:
                raise TooBusyError(f"{self._max_waiting} requests of this kind wait already")
            self._waiting.append((item, loop, future))
        try:
            for _ in range(_ROUNDS):
                await asyncio.sleep(0)
        finally:
            self._wake()
        return await future

    def _wake(self) -> None:
        """Let a thread look, if none of those that run will do so by itself."""
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
            except Exception as error:  # noqa: BLE001 - each of them is told
                answers = [error] * len(batch)
            turn()
            told = defaultdict(list)
            for (_, loop, future), answer in zip(batch, answers, strict=True):
                told[loop].append((future, answer))
            for loop, pairs in told.items():
                try:
                    loop.call_soon_threadsafe(_deliver, pairs)
                except RuntimeError:  # its loop has ended, and whoever asked with it
                    continue

    def _next(self) -> list[tuple[Item, asyncio.AbstractEventLoop, asyncio.Future[Answer]]]:
        """Wait for a turn and a batch; none after a while, and then this thread is no longer counted."""
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
    """The turn of one batch: it is passed on once."""

    def __init__(self, give: Callable[[], None]) -> None:
        self._give: Callable[[], None] | None = give

    def __call__(self) -> None:
        give, self._give = self._give, None
        if give is not None:
            give()


def _deliver(pairs: Sequence[tuple[asyncio.Future[Answer], Answer | Exception]]) -> None:
    for future, answer in pairs:
        if future.done():  # its caller went away
            continue
        if isinstance(answer, Exception):
            future.set_exception(answer)
        else:
            future.set_result(answer)
