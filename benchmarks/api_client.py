"""A client of the API that costs little: one thread, many connections, each with one request in flight."""

from __future__ import annotations

import re
import selectors
import socket
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Final
from urllib.parse import urlsplit

_LENGTH: Final = re.compile(rb"\r\ncontent-length: *(\d+)", re.IGNORECASE)
_END: Final = b"\r\n\r\n"


class AnswerError(RuntimeError):
    """The API answered something else than was expected."""


@dataclass(slots=True)
class _Line:
    """One connection and what has come of the answer to its request."""

    socket: socket.socket
    received: bytearray = field(default_factory=bytearray)
    asked_at: float = 0.0


class ApiClient:
    """Sends requests to one API."""

    def __init__(self, url: str, token: str) -> None:
        """Note where it is and with which key; nothing is sent."""
        parts = urlsplit(url)
        assert parts.hostname is not None
        self._place = (parts.hostname, parts.port or 80)
        self._head = f"Host: {parts.netloc}\r\nAuthorization: Bearer {token}\r\n"

    def request(self, method: str, path: str, body: bytes | None = None, *, headers: str = "") -> bytes:
        """Return the bytes of a request. `headers` are lines, each with its end."""
        head = f"{method} {path} HTTP/1.1\r\n{self._head}{headers}"
        if body is not None:
            head += f"Content-Type: application/json\r\nContent-Length: {len(body)}\r\n"
        return head.encode() + b"\r\n" + (body or b"")

    def call(self, request: bytes, status: int) -> tuple[bytes, float]:
        """Send one request on a connection of its own; return the body and the seconds it took.

        Raises:
            AnswerError: the status is another.
        """
        answers: list[bytes] = []
        (seconds,) = self.load([request].pop, 1, 1, status, answers.append)
        return answers[0], seconds

    def load(
        self,
        make: Callable[[], bytes],
        clients: int,
        count: int,
        status: int,
        seen: Callable[[bytes], object] = len,
    ) -> list[float]:
        """Let clients send requests, each one at a time, and return the seconds that each request took.

        Args:
            make: gives the next request.
            clients: connections.
            count: requests in all.
            status: of every answer.
            seen: given the body of each.

        Raises:
            AnswerError: an answer has another status, or a connection ended.
        """
        took: list[float] = []
        with selectors.DefaultSelector() as selector:
            lines = [_Line(socket.create_connection(self._place)) for _ in range(clients)]
            try:
                sent = 0
                for line in lines:
                    line.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
                    selector.register(line.socket, selectors.EVENT_READ, line)
                for line in lines[: min(clients, count)]:
                    _send(line, make())
                    sent += 1
                while len(took) < count:
                    for key, _ in selector.select():
                        line = key.data
                        body = _receive(line, status)
                        if body is None:
                            continue
                        took.append(time.perf_counter() - line.asked_at)
                        seen(body)
                        if sent < count:
                            _send(line, make())
                            sent += 1
            finally:
                for line in lines:
                    line.socket.close()
        return took


def _send(line: _Line, request: bytes) -> None:
    line.received.clear()
    line.asked_at = time.perf_counter()
    line.socket.sendall(request)


def _receive(line: _Line, status: int) -> bytes | None:
    """Take in what has come; return the body once it is whole."""
    chunk = line.socket.recv(1 << 20)
    if not chunk:
        raise AnswerError("the API closed a connection")
    line.received += chunk
    end = line.received.find(_END)
    if end < 0:
        return None
    length = _LENGTH.search(line.received, 0, end)
    assert length is not None
    size = end + len(_END) + int(length[1])
    if len(line.received) < size:
        return None
    body = bytes(line.received[end + len(_END) : size])
    got = int(line.received[9:12])
    if got != status:
        raise AnswerError(f"the API answered {got} instead of {status}: {body[:500]!r}")
    return body
