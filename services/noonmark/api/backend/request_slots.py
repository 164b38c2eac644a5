"""How many threads and connections the requests of one credential use at once; its other requests wait."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Final

THREADS: Final = 40
"""Threads that serve requests: the default of anyio."""

_MAX_WAITING: Final = 1_000
_WAIT_SECONDS: Final = 10.0


class TooManyRequestsError(Exception):
    """The credential has too many requests in progress; the text says how many are served at once."""


class RequestSlots:
    """The slots of each credential, so that one credential cannot use up those of all.

    Requests above the limit wait in order, without a thread: a burst only takes longer. Used on the server's
    event loop.
    """

    def __init__(
        self, most: int, *, max_waiting: int = _MAX_WAITING, wait_seconds: float = _WAIT_SECONDS
    ) -> None:
        """Create it.

        Args:
            most: requests of one credential that are served at once.
            max_waiting: requests of one credential that wait.
            wait_seconds: how long a request waits at most.
        """
        self._most = most
        self._max_waiting = max_waiting
        self._wait_seconds = wait_seconds
        self._slots: dict[str, _Slots] = {}

    @classmethod
    def for_connections(cls, connections: int) -> RequestSlots:
        """Return slots that leave a quarter of the connections and threads to other credentials."""
        return cls(max(1, min(connections, THREADS) * 3 // 4))

    @asynccontextmanager
    async def slot(self, who: str) -> AsyncIterator[None]:
        """Hold one slot of a credential; wait for it if all are in use.

        Raises:
            TooManyRequestsError: too many requests of the credential wait, or this one has waited too long.
        """
        slots = self._slots.setdefault(who, _Slots(asyncio.Semaphore(self._most)))
        if slots.requests >= self._most + self._max_waiting:
            raise self._too_many()
        slots.requests += 1
        try:
            await self._acquire(slots.free)
            try:
                yield
            finally:
                slots.free.release()
        finally:
            slots.requests -= 1
            if not slots.requests:
                self._slots.pop(who, None)

    async def _acquire(self, free: asyncio.Semaphore) -> None:
        if not free.locked():
            await free.acquire()
            return
        try:
            async with asyncio.timeout(self._wait_seconds):
                await free.acquire()
        except TimeoutError:
            raise self._too_many() from None

    def _too_many(self) -> TooManyRequestsError:
        return TooManyRequestsError(
            f"the credential has too many requests in progress on this server, which serves"
            f" {self._most} of one credential at once"
        )


@dataclass(slots=True)
class _Slots:
    """The slots of one credential, and the number of its requests that hold one or wait."""

    free: asyncio.Semaphore
    requests: int = 0
