"""An ASGI application called as it is: paths reach it as they stand, and a call costs next to nothing."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any
from urllib.parse import unquote_to_bytes

from anyio.from_thread import BlockingPortal, start_blocking_portal


@dataclass(frozen=True, slots=True)
class Answer:
    """What came back."""

    status: int
    headers: Mapping[str, str]
    body: bytes

    def json(self) -> Any:
        return json.loads(self.body)


class Caller:
    """Sends requests, one after the other."""

    def __init__(self, app: Any, portal: BlockingPortal) -> None:
        self._app = app
        self._portal = portal

    def __call__(
        self,
        method: str,
        target: str,
        *,
        key: str | None = None,
        body: Any = None,
        headers: Mapping[str, str] | None = None,
        repeated: Sequence[tuple[str, str]] = (),
        chunks: list[bytes] | None = None,
        is_cut: bool = False,
    ) -> Answer:
        """Send a request.

        Args:
            method: of HTTP.
            target: path and query, encoded as they would be on the wire.
            key: token of the `Authorization` header.
            body: JSON value, or bytes as they are.
            headers: further ones; they win.
            repeated: lines after these, also of the same names.
            chunks: a body in parts whose length nobody says.
            is_cut: the connection ends before the body does.
        """
        raw_path, _, query = target.partition("?")
        sent: dict[str, str] = {"host": "127.0.0.1"}
        parts: list[bytes] = chunks or [b""]
        if body is not None:
            parts = [body if isinstance(body, bytes) else json.dumps(body).encode()]
            sent |= {"content-type": "application/json", "content-length": str(len(parts[0]))}
        elif chunks is not None:
            sent |= {"content-type": "application/json", "transfer-encoding": "chunked"}
        if key is not None:
            sent["authorization"] = f"Bearer {key}"
        sent |= {name.lower(): value for name, value in (headers or {}).items()}
        scope = {
            "type": "http",
            "asgi": {"version": "3.0"},
            "http_version": "1.1",
            "method": method,
            "scheme": "http",
            "path": unquote_to_bytes(raw_path).decode("utf-8", "replace"),
            "raw_path": raw_path.encode(),
            "query_string": query.encode(),
            "root_path": "",
            "headers": [
                (name.lower().encode(), value.encode("latin-1")) for name, value in (*sent.items(), *repeated)
            ],
            "client": ("127.0.0.1", 1),
            "server": ("127.0.0.1", 80),
        }
        return self._portal.call(self._exchange, scope, parts, is_cut)

    def websocket(self, path: str, key: str) -> list[dict[str, Any]]:
        """Ask for a websocket; return what the application says to it."""
        scope = {"type": "websocket", "path": path, "headers": [(b"authorization", f"Bearer {key}".encode())]}
        told: list[dict[str, Any]] = []

        async def receive() -> dict[str, Any]:
            return {"type": "websocket.connect"}

        async def send(message: dict[str, Any]) -> None:
            told.append(message)

        self._portal.call(self._app, scope, receive, send)
        return told

    async def _exchange(self, scope: dict[str, Any], parts: list[bytes], is_cut: bool) -> Answer:
        waiting = list(parts)
        got: list[dict[str, Any]] = []

        async def receive() -> dict[str, Any]:
            if waiting:
                part = waiting.pop(0)
                return {"type": "http.request", "body": part, "more_body": bool(waiting) or is_cut}
            return {"type": "http.disconnect"}

        async def send(message: dict[str, Any]) -> None:
            got.append(message)

        await self._app(scope, receive, send)
        start = next(message for message in got if message["type"] == "http.response.start")
        headers = {name.decode().lower(): value.decode("latin-1") for name, value in start["headers"]}
        body = b"".join(message.get("body", b"") for message in got)
        return Answer(start["status"], headers, body)


@contextmanager
def calling(app: Any) -> Iterator[Caller]:
    """Open a caller of an application, in an event loop of its own."""
    with start_blocking_portal() as portal:
        yield Caller(app, portal)
