"""The API without a server: an httpx transport to the application in this process."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterator, MutableMapping
from typing import Any, Final

import httpx
from anyio.from_thread import BlockingPortal

Message = MutableMapping[str, Any]
Application = Callable[
    [Message, Callable[[], Awaitable[Message]], Callable[[Message], Awaitable[None]]], Awaitable[None]
]

_UNREAD: Final = 16
"""Maximum number of unread parts of an answer."""


class InProcessTransport(httpx.BaseTransport):
    """Passes requests to an ASGI application that runs in the event loop of a portal."""

    def __init__(self, app: Application, portal: BlockingPortal) -> None:
        """Store the started application and the portal to its event loop."""
        self._app = app
        self._portal = portal

    def handle_request(self, request: httpx.Request) -> httpx.Response:
        """Answer one request; the body is streamed as the application sends it."""
        exchange = self._portal.call(_begin, self._app, _scope(request), request.read())
        start = self._portal.call(exchange.next)
        return httpx.Response(
            start["status"],
            headers=start.get("headers", ()),
            stream=_Body(exchange, self._portal),
            request=request,
        )


class _Exchange:
    """One request to the application, and the parts of its answer so far."""

    def __init__(self, app: Application, scope: Message, body: bytes) -> None:
        self._given: list[Message] = [{"type": "http.request", "body": body, "more_body": False}]
        self._gone = asyncio.Event()
        self._sent: asyncio.Queue[Message] = asyncio.Queue(_UNREAD)
        self._task = asyncio.ensure_future(app(scope, self._receive, self._sent.put))

    async def next(self) -> Message:
        """Return the next message of the answer; errors of the application are raised here."""
        waiting = asyncio.ensure_future(self._sent.get())
        await asyncio.wait({waiting, self._task}, return_when=asyncio.FIRST_COMPLETED)
        if not waiting.done() and self._sent.empty():
            waiting.cancel()
            self._task.result()
            raise RuntimeError("the application finished without an answer")
        return await waiting

    async def end(self) -> None:
        """Tell the application that the reader has disconnected, and wait for it."""
        self._gone.set()
        while not self._task.done():
            # An answer that is not read to its end must not block its sender.
            while not self._sent.empty():
                self._sent.get_nowait()
            await asyncio.wait({self._task}, timeout=0.01)
        await self._task

    async def _receive(self) -> Message:
        if self._given:
            return self._given.pop()
        await self._gone.wait()
        return {"type": "http.disconnect"}


class _Body(httpx.SyncByteStream):
    """The body of an answer."""

    def __init__(self, exchange: _Exchange, portal: BlockingPortal) -> None:
        self._exchange = exchange
        self._portal = portal

    def __iter__(self) -> Iterator[bytes]:
        while True:
            message = self._portal.call(self._exchange.next)
            if part := message.get("body"):
                yield part
            if not message.get("more_body", False):
                return

    def close(self) -> None:
        self._portal.call(self._exchange.end)


async def _begin(app: Application, scope: Message, body: bytes) -> _Exchange:
    return _Exchange(app, scope, body)


def _scope(request: httpx.Request) -> Message:
    path, _, query = request.url.raw_path.partition(b"?")
    return {
        "type": "http",
        "asgi": {"version": "3.0", "spec_version": "2.3"},
        "http_version": "1.1",
        "method": request.method,
        "scheme": request.url.scheme,
        "path": request.url.path,
        "raw_path": path,
        "query_string": query,
        "root_path": "",
        "headers": [(name.lower(), value) for name, value in request.headers.raw],
        "client": None,
        "server": (request.url.host, request.url.port or 80),
        "extensions": {},
    }
