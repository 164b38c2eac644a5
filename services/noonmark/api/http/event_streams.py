"""Responses that are streams of server-sent events."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from typing import Final

from fastapi import Request
from starlette.responses import StreamingResponse
from starlette.types import Receive, Scope, Send

from noonmark.api.http.problems import ProblemError
from noonmark.core.access.roles import Principal
from noonmark.schemas.problems.types import UNAVAILABLE

EVENT_STREAM: Final = "text/event-stream"
HEARTBEAT_SECONDS: Final = 15.0
CHECK_SECONDS: Final = 3.0
"""Time between two checks of the credential of an open stream."""


class EventStream(StreamingResponse):
    """A stream that proxies must not buffer; its listener is removed when it closes for any reason."""

    media_type = EVENT_STREAM

    def __init__(self, parts: AsyncIterator[bytes], leave: Callable[[], None]) -> None:
        """Stream parts; `leave` is called when the stream is closed."""
        super().__init__(parts, headers={"X-Accel-Buffering": "no"})
        self._leave = leave

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve the stream."""
        try:
            await super().__call__(scope, receive, send)
        finally:
            self._leave()


async def authenticate_again(request: Request) -> Principal | None:
    """Authenticate the request of a stream again; None if its credential is no longer valid."""
    try:
        principal: Principal = await request.scope["noonmark.again"]()
    except ProblemError as error:
        # The database may be away for a moment; the last check stays valid until it responds.
        return request.scope["noonmark.principal"] if error.kind is UNAVAILABLE else None
    return principal


def too_many_streams() -> ProblemError:
    """Create the problem about a stream that the process cannot serve in addition to the open ones."""
    return ProblemError(
        UNAVAILABLE, "the maximum number of streams is open on this server", headers={"Retry-After": "5"}
    )
