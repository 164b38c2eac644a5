"""A TCP proxy with toxics: what a network does to the connections to Postgres and Kafka.

All proxies of a `Network` live on one event loop in a thread of their own; a test turns their toxics from
outside. Names follow toxiproxy's.
"""

from __future__ import annotations

import asyncio
import contextlib
import random
import socket
import struct
import threading
from collections.abc import Callable, Coroutine
from dataclasses import dataclass
from typing import Any

CHUNK = 65536

PASSES = 8
"""Passes of the loop from an accepted connection to the first step of its `_serve`: three, and some."""


@dataclass(frozen=True, slots=True)
class Toxic:
    """How bytes are passed on; the default passes them on as they come.

    Attributes:
        latency: seconds that each chunk waits, in both directions.
        jitter: seconds above that, at random.
        slice_bytes: chunks are cut into pieces of so many bytes; 0: they are not.
        limit_bytes: after so many more bytes a connection is closed in the middle; 0: it is not.
        silent: nothing arrives, nobody is told: half-open. What was sent arrives when it heals, as TCP
            repeats it.
        down: whoever connects is refused, whoever is connected was cut.
    """

    latency: float = 0.0
    jitter: float = 0.0
    slice_bytes: int = 0
    limit_bytes: int = 0
    silent: bool = False
    down: bool = False


@dataclass(slots=True)
class Trap:
    """Waits for a request that holds `pattern`, and cuts its connection.

    Attributes:
        pattern: bytes that a client sends, in lower case; case makes no difference.
        reply: True: the server gets the request and its answer is lost; False: the request is lost.
        passes: requests with the pattern that are let through first.
        caught: set when a connection was cut.
    """

    pattern: bytes
    reply: bool
    passes: int
    caught: threading.Event


class Proxy:
    """Listens on a port of its own and passes connections on to another, which may change."""

    def __init__(self, network: Network, upstream: int, port: int) -> None:
        self._network = network
        self._upstream = upstream
        self._toxic = Toxic()
        self._flowing = asyncio.Event()
        self._flowing.set()
        self._trap: Trap | None = None
        self._links: set[_Link] = set()
        self._server: asyncio.Server | None = None
        self._is_shut = False
        self.port = port

    async def open(self) -> None:
        """Listen."""
        self._server = await asyncio.start_server(self._serve, "127.0.0.1", self.port)
        self.port = self._server.sockets[0].getsockname()[1]

    async def shut(self) -> None:
        """On the loop: listen no more, and cut what is connected."""
        self._is_shut = True
        if self._server is not None:
            # A server that is closed, or a task that is cancelled before its first step, leaves a socket open that
            # was accepted just now: nothing is accepted any more, and those pass first.
            for listener in self._server.sockets:
                asyncio.get_running_loop().remove_reader(listener.fileno())
            for _ in range(PASSES):
                await asyncio.sleep(0)
            self._server.close()
        self._cut()

    # -- from outside ----------------------------------------------------------------------------------

    def set(self, toxic: Toxic) -> None:
        """Pass on like this from now on."""
        self._network.call(self._set, toxic)

    def heal(self) -> None:
        """Pass on as it comes."""
        self.set(Toxic())

    def reset(self) -> None:
        """Cut what is connected now, with RST; new connections are let in."""
        self._network.call(self._cut)

    def aim(self, upstream: int) -> None:
        """Send new connections to another port, and cut the old ones."""
        self._network.call(self._aim, upstream)

    def trap(self, pattern: bytes, *, reply: bool, passes: int = 0) -> Trap:
        """Cut the first connection that sends the pattern, once."""
        made = Trap(pattern, reply, passes, threading.Event())
        self._trap = made
        return made

    @property
    def connections(self) -> int:
        """How many are connected."""
        return len(self._links)

    # -- on the loop -----------------------------------------------------------------------------------

    def _set(self, toxic: Toxic) -> None:
        self._toxic = toxic
        (self._flowing.clear if toxic.silent else self._flowing.set)()
        if toxic.down:
            self._cut()

    def _cut(self) -> None:
        for link in list(self._links):
            link.cut()

    def _aim(self, upstream: int) -> None:
        self._upstream = upstream
        self._cut()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        link = _Link(writer)
        if self._toxic.down or self._is_shut:
            link.cut()
            return
        self._links.add(link)
        try:
            await self._flowing.wait()
            up_reader, up_writer = await asyncio.open_connection("127.0.0.1", self._upstream)
            link.writers.append(up_writer)
            await asyncio.gather(
                self._pump(reader, up_writer, link, outward=True),
                self._pump(up_reader, writer, link, outward=False),
            )
        except (OSError, asyncio.CancelledError):
            # Cancelled only when the network is closed, which waits for nothing from here.
            link.cut()
        finally:
            link.close()
            self._links.discard(link)

    async def _pump(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, link: _Link, *, outward: bool
    ) -> None:
        passed = 0
        while data := await reader.read(CHUNK):
            await self._flowing.wait()
            toxic = self._toxic
            if toxic.latency or toxic.jitter:
                await asyncio.sleep(toxic.latency + random.random() * toxic.jitter)
            if outward:
                self._look(data, link)
            elif link.deaf:
                link.trap_closed()
                return
            if link.is_cut:
                return
            if toxic.limit_bytes and passed + len(data) > toxic.limit_bytes:
                writer.write(data[: toxic.limit_bytes // 2])
                link.cut()
                return
            passed += len(data)
            size = toxic.slice_bytes or len(data)
            for begin in range(0, len(data), size):
                writer.write(data[begin : begin + size])
                await writer.drain()
        with contextlib.suppress(OSError, RuntimeError):
            writer.write_eof()

    def _look(self, data: bytes, link: _Link) -> None:
        trap = self._trap
        if trap is None or trap.pattern not in data.lower():
            return
        if trap.passes:
            trap.passes -= 1
            return
        self._trap = None
        if trap.reply:
            link.deaf = trap
        else:
            link.cut()
            trap.caught.set()


class _Link:
    """One client's connection and its other half."""

    def __init__(self, writer: asyncio.StreamWriter) -> None:
        self.writers = [writer]
        self.deaf: Trap | None = None
        self.is_cut = False

    def cut(self) -> None:
        """Both ends get an RST."""
        self.is_cut = True
        for writer in self.writers:
            found = writer.get_extra_info("socket")
            with contextlib.suppress(OSError, AttributeError):
                found.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            writer.transport.abort()

    def trap_closed(self) -> None:
        """The server has answered; nobody will know."""
        trap = self.deaf
        self.cut()
        if trap is not None:
            trap.caught.set()

    def close(self) -> None:
        """Release both ends."""
        for writer in self.writers:
            writer.close()


class Network:
    """The loop of all proxies of a test."""

    def __init__(self) -> None:
        self._proxies: list[Proxy] = []
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="proxies", daemon=True)
        self._thread.start()

    def proxy(self, upstream: int, *, port: int = 0) -> Proxy:
        """Open a proxy before a port of this machine."""
        made = Proxy(self, upstream, port)
        self._proxies.append(made)
        self.run(made.open())
        return made

    def run(self, work: Coroutine[Any, Any, None]) -> None:
        """Run on the loop, and wait."""
        asyncio.run_coroutine_threadsafe(work, self._loop).result(10)

    def call(self, function: Callable[..., None], *arguments: Any) -> None:
        """Call on the loop, and wait."""

        async def call() -> None:
            function(*arguments)

        self.run(call())

    async def end(self) -> None:
        """On the loop: end every proxy and connection."""
        for proxy in self._proxies:
            await proxy.shut()
        tasks = [task for task in asyncio.all_tasks() if task is not asyncio.current_task()]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        await asyncio.sleep(0.02)  # transports close in the loop's next passes

    def close(self) -> None:
        """End everything."""
        self.run(self.end())
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(5)
        self._loop.close()
