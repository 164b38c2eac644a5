"""Resolves names in threads, so that a name whose servers do not answer delays no other.

A lookup cannot be stopped: the system's resolver waits for servers that do not answer for up to half a
minute, also after its attempt has timed out. With few threads for all, one job that calls such names would
use all of them, and the time of every other call would run out in the queue.
"""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from typing import Final

_THREADS: Final = 256
"""Threads are started only while all others wait for an answer."""

_MOST_OF_A_DOMAIN: Final = 8
"""Lookups at once of names with the same two last labels, which usually have the same servers."""


def system_addresses(host: str) -> list[str]:
    """Return the addresses of a name, in the order of the system's resolver.

    Raises:
        OSError: the name has no address, or no server answers.
    """
    infos = socket.getaddrinfo(host, None, type=socket.SOCK_STREAM)
    return list(dict.fromkeys(str(info[4][0]) for info in infos))


@dataclass(slots=True)
class _Domain:
    """The lookups of one domain, and how many of them run or wait."""

    turns: asyncio.Semaphore
    users: int = 0


class NameLookup:
    """Resolves names, each once at a time, and few of one domain at once. Belongs to one event loop.

    Args:
        addresses: blocks until it returns the addresses of a name.
    """

    def __init__(self, addresses: Callable[[str], list[str]] = system_addresses) -> None:
        self._addresses = addresses
        self._threads: ThreadPoolExecutor | None = None
        self._running: dict[str, asyncio.Task[list[str]]] = {}
        self._domains: dict[str, _Domain] = {}

    async def __call__(self, host: str) -> list[str]:
        """Return the addresses of a name; raises as `addresses` does."""
        task = self._running.get(host)
        if task is None:
            task = self._running[host] = asyncio.create_task(self._lookup(host))
            task.add_done_callback(partial(self._ended, host))
        # The lookup continues without this caller, because others may wait for it.
        return await asyncio.shield(task)

    def close(self) -> None:
        """Start no more lookups."""
        for task in self._running.values():
            task.cancel()
        if self._threads is not None:
            self._threads.shutdown(wait=False, cancel_futures=True)
            self._threads = None

    async def _lookup(self, host: str) -> list[str]:
        if self._threads is None:
            self._threads = ThreadPoolExecutor(_THREADS, thread_name_prefix="dns")
        name = ".".join(host.rstrip(".").rsplit(".", 2)[-2:])
        domain = self._domains.setdefault(name, _Domain(asyncio.Semaphore(_MOST_OF_A_DOMAIN)))
        domain.users += 1
        try:
            async with domain.turns:
                return await asyncio.get_running_loop().run_in_executor(self._threads, self._addresses, host)
        finally:
            domain.users -= 1
            if not domain.users:
                del self._domains[name]

    def _ended(self, host: str, task: asyncio.Task[list[str]]) -> None:
        del self._running[host]
        if not task.cancelled():
            task.exception()  # if all callers have given up, it is read nowhere else
