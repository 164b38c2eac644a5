"""HTTP/1.1 on one connection, with limits that uvicorn lacks.

A client that connects and sends nothing, or sends byte by byte, holds a file descriptor and memory. This
protocol limits the size of the request line and headers, and the time in which a request must arrive.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any, Final

import httptools
import orjson
from starlette.types import ASGIApp
from uvicorn.protocols.http.httptools_impl import STATUS_LINE, HttpToolsProtocol, RequestResponseCycle

from noonmark.api.http.problems import MEDIA_TYPE
from noonmark.api.server.recorder import DirectAnswer, Headers
from noonmark.schemas.problems.types import HEAD_TOO_LARGE, MALFORMED, REQUEST_TIMEOUT, ProblemType

LONGEST_HEAD: Final = 64 * 1024
"""Most bytes of the request line and all headers."""

HEAD_SECONDS: Final = 15.0
"""Time in which the headers of a request must arrive, from the connection or the first byte."""

STALLED_SECONDS: Final = 30.0
"""Time in which a client must read some of a response that waits for it."""

SLOWEST_BODY: Final = 50_000
"""Lowest average rate of a body, in bytes per second."""


Begin = Callable[[Any, bytes, DirectAnswer], bool]
"""Serves a request with a complete body without a task; False if it needs one, and nothing has happened."""

_OFFER: Final = frozenset({b"upgrade", b"http2-settings"})


class BoundedProtocol(HttpToolsProtocol):
    """One connection. All of it runs in the event loop."""

    def __init__(self, *arguments: Any, **options: Any) -> None:
        """Create it like uvicorn's protocol."""
        super().__init__(*arguments, **options)
        self._in_head = True
        self._is_reading = True
        self._head_bytes = 0
        self._taken = 0
        self._began = 0.0
        self._fault = MALFORMED
        self._timer: asyncio.TimerHandle | None = None
        self._stalled: asyncio.TimerHandle | None = None
        self._begin: Begin | None = getattr(self.app, "begin", None)
        self._in_callback = False
        self._held: RequestResponseCycle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Start the timeout of the first request."""
        super().connection_made(transport)
        self._await_request()

    def connection_lost(self, exc: Exception | None) -> None:
        """Stop the timeouts."""
        self._stop_clock()
        self._may_write()
        super().connection_lost(exc)

    def pause_writing(self) -> None:
        """Start a timeout for a client that does not read: it holds a connection, or a stream."""
        super().pause_writing()
        self._may_write()
        # The client will not read the waiting data; a graceful close would wait for it, too.
        self._stalled = self.loop.call_later(STALLED_SECONDS, self.transport.abort)

    def resume_writing(self) -> None:
        """Stop that timeout: the client reads."""
        self._may_write()
        super().resume_writing()

    def data_received(self, data: bytes) -> None:
        """Parse received data; refuse it if it is not HTTP, or if the headers are too large."""
        self._taken += len(data)
        self._unset_keepalive_if_required()
        try:
            self._feed(data)
        except httptools.HttpParserError:
            self.send_400_response("")
        if self._held is not None:
            # The rest of its body has not arrived yet.
            self._release()
        if self._in_head and self._taken > LONGEST_HEAD and not self.transport.is_closing():
            self._refuse(HEAD_TOO_LARGE)

    def on_message_begin(self) -> None:
        """Start counting; the previous request on this connection is finished."""
        super().on_message_begin()
        self._in_head, self._head_bytes = True, 0
        if not self._is_reading:
            self._await_request()

    def on_url(self, url: bytes) -> None:
        """Count its bytes."""
        self._head_bytes += len(url)
        super().on_url(url)

    def on_header(self, name: bytes, value: bytes) -> None:
        """Count its bytes."""
        self._head_bytes += len(name) + len(value) + 4
        super().on_header(name, value)

    def on_headers_complete(self) -> None:
        """Pass the request on if its headers are small enough.

        Raises:
            ValueError: if they are too large; the library then calls `send_400_response`.
        """
        self._in_head = False
        if self._head_bytes > LONGEST_HEAD:
            self._fault = HEAD_TOO_LARGE
            raise ValueError(HEAD_TOO_LARGE.title)
        if not self._offers_another():
            self._in_callback = True
            super().on_headers_complete()
            self._in_callback = False

    def on_message_complete(self) -> None:
        """Stop the timeout: from here on, the application takes time."""
        if self._offers_another():
            return
        super().on_message_complete()
        self._is_reading = False
        self._stop_clock()
        if self._held is not None:
            self._release()

    def _start_asgi_task(self, cycle: RequestResponseCycle, app: Any) -> None:
        """Serve a request: with a task, or hold it until the data that was received is parsed."""
        if (
            self._begin is not None
            and self._in_callback
            and cycle.scope["method"] == "POST"
            and not cycle.waiting_for_100_continue
            and not self.flow.write_paused
        ):
            self._held = cycle
        else:
            self.start(cycle, app)

    def _release(self) -> None:
        """Serve the held request: without a task if its body has arrived and the application can do that."""
        cycle, self._held = self._held, None
        assert cycle is not None
        assert self._begin is not None
        if cycle.more_body or not self._begin(cycle.scope, bytes(cycle.body), _Answer(self, cycle)):
            self.start(cycle, self.app)

    def start(self, cycle: RequestResponseCycle, app: ASGIApp) -> None:
        """Serve a request with a task."""
        super()._start_asgi_task(cycle, app)  # type: ignore[arg-type]

    def send_400_response(self, msg: str) -> None:  # noqa: ARG002 - the library's text is not for clients
        """Respond to data that is not an HTTP request."""
        self._refuse(self._fault)

    def _feed(self, data: bytes) -> None:
        """Parse data. If a request offers another protocol, parse it again without the offer.

        Java's HTTP client offers HTTP/2 with every request. A server can ignore the offer (RFC 9110, 7.8),
        but the parser assumes that it is accepted: it drops the body, or reads it as the next request.
        """
        while True:
            try:
                self.parser.feed_data(data)
            except httptools.HttpParserUpgrade as upgrade:
                if not self._offers_another():
                    return
                data = self._without_offer() + data[upgrade.args[0] :]
                self.parser = httptools.HttpRequestParser(self)
                # Like uvicorn's own parser: data after the last request does not affect its response.
                self.parser.set_dangerous_leniencies(lenient_data_after_close=True)
            else:
                return

    def _offers_another(self) -> bool:
        """Return whether the request offers another protocol; CONNECT does so without a header."""
        return self.parser.should_upgrade() and any(name == b"upgrade" for name, _ in self.headers)

    def _without_offer(self) -> bytes:
        version = self.parser.get_http_version().encode()
        lines = [b"%b %b HTTP/%b" % (self.parser.get_method(), self.url, version)]
        lines += (b"%b: %b" % header for header in self.headers if header[0] not in _OFFER)
        return b"\r\n".join((*lines, b"", b""))

    def _await_request(self) -> None:
        self._is_reading, self._taken, self._began = True, 0, self.loop.time()
        self._stop_clock()
        self._timer = self.loop.call_later(HEAD_SECONDS, self._check_deadlines)

    def _check_deadlines(self) -> None:
        """Close the connection if the request is late; otherwise check again at its deadline."""
        may_take = HEAD_SECONDS + (0 if self._in_head else self._taken / SLOWEST_BODY)
        left = self._began + may_take - self.loop.time()
        if left > 0:
            self._timer = self.loop.call_later(left, self._check_deadlines)
        elif self._in_head and self._taken:
            self._refuse(REQUEST_TIMEOUT)
        else:
            # No request arrived, or an application waits for the body and notices the disconnect.
            self.transport.close()

    def _stop_clock(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _may_write(self) -> None:
        if self._stalled is not None:
            self._stalled.cancel()
            self._stalled = None

    def _refuse(self, kind: ProblemType) -> None:
        """Respond without the application, and close the connection."""
        self._stop_clock()
        body = orjson.dumps(
            {"type": kind.uri, "title": kind.title, "status": kind.status, "detail": kind.cause, "errors": []}
        )
        head = (
            f"HTTP/1.1 {kind.status} {kind.title}\r\ncontent-type: {MEDIA_TYPE}\r\n"
            f"content-length: {len(body)}\r\nconnection: close\r\n\r\n"
        )
        self.transport.write(head.encode() + body)
        self.transport.close()


class _Answer:
    """Sends the response to one request, as the library's cycle does for a task."""

    __slots__ = ("_cycle", "_protocol")

    def __init__(self, protocol: BoundedProtocol, cycle: RequestResponseCycle) -> None:
        self._protocol = protocol
        self._cycle = cycle

    def respond(self, status: int, headers: Headers, body: bytes) -> None:
        """Send a complete response."""
        cycle = self._cycle
        if cycle.disconnected:
            return
        lines = [STATUS_LINE[status]]
        for name, value in (*cycle.default_headers, *headers):
            lines += (name, b": ", value, b"\r\n")
        if not cycle.keep_alive:
            lines.append(b"connection: close\r\n")
        lines += (b"\r\n", body)
        cycle.response_started = cycle.response_complete = True
        cycle.transport.write(b"".join(lines))
        if not cycle.keep_alive:
            cycle.transport.close()
        cycle.on_response()

    def run(self, app: ASGIApp) -> None:
        """Let an application respond, in a task."""
        self._protocol.start(self._cycle, app)
