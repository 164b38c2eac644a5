"""`python -m benchmarks.http_target`: an HTTP target of few microseconds a call, in a process of its own.

It prints its port, then answers every request with 200 and a short body, after `--delay` seconds. A GET of
`/figures` answers with what it has counted. It ends when its standard input is closed.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import resource
import sys
from typing import Final, cast

import uvloop

_ANSWER: Final = (
    b'HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 15\r\n\r\n{"status":"ok"}'
)
_BACKLOG: Final = 4096


class Figures:
    """What the target has seen."""

    def __init__(self) -> None:
        self.calls = 0
        self.connections = 0
        self.open_calls = 0
        self.most_open_calls = 0

    def text(self) -> bytes:
        """Return the figures as an answer."""
        body = json.dumps(vars(self)).encode()
        return b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%s" % (len(body), body)


class Call(asyncio.Protocol):
    """One connection: requests one after the other, as clients with kept connections send them."""

    def __init__(self, figures: Figures, delay: float) -> None:
        self._figures, self._delay = figures, delay
        self._data = b""
        self._transport: asyncio.Transport | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Count the connection."""
        self._transport = cast("asyncio.Transport", transport)
        self._figures.connections += 1

    def data_received(self, data: bytes) -> None:
        """Answer the requests that are complete."""
        self._data += data
        while (end := self._data.find(b"\r\n\r\n")) >= 0:
            head = self._data[:end]
            length = _content_length(head)
            if len(self._data) < end + 4 + length:
                return
            self._data = self._data[end + 4 + length :]
            self._call(head)

    def _call(self, head: bytes) -> None:
        assert self._transport is not None
        figures = self._figures
        if head.startswith(b"GET /figures "):
            self._transport.write(figures.text())
            return
        figures.calls += 1
        if not self._delay:
            self._transport.write(_ANSWER)
            return
        figures.open_calls += 1
        figures.most_open_calls = max(figures.most_open_calls, figures.open_calls)
        asyncio.get_running_loop().call_later(self._delay, self._answer)

    def _answer(self) -> None:
        self._figures.open_calls -= 1
        if self._transport is not None and not self._transport.is_closing():
            self._transport.write(_ANSWER)


def _content_length(head: bytes) -> int:
    lower = head.lower()
    at = lower.find(b"\r\ncontent-length:")
    if at < 0:
        return 0
    return int(lower[at + 17 :].split(b"\r\n", 1)[0])


async def serve(delay: float) -> None:
    """Serve until standard input is closed."""
    figures = Figures()
    loop = asyncio.get_running_loop()
    server = await loop.create_server(lambda: Call(figures, delay), "127.0.0.1", 0, backlog=_BACKLOG)
    print(server.sockets[0].getsockname()[1], flush=True)
    async with server:
        await loop.run_in_executor(None, sys.stdin.read)


def main() -> None:
    """Read the command line and serve."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.http_target", description=__doc__)
    parser.add_argument("--delay", type=float, default=0.0, help="seconds from a request to its answer")
    options = parser.parse_args()
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
    uvloop.run(serve(options.delay))


if __name__ == "__main__":
    main()
