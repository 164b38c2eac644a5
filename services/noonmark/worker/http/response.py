"""What an answer of a target says about the attempt, and what of it is kept."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

import aiohttp
import orjson

from noonmark.core.kinds.http_response import retry_after_seconds
from noonmark.handlers.results import ResultError, encode_result
from noonmark.worker.http.request import Request

MAX_BODY_BYTES: Final = 64 * 1024
"""Decoded bytes of an answer that are read; where there are more, the connection is closed."""

MAX_JUDGED_BYTES: Final = 1024 * 1024
"""The same where the job judges the body, or keeps some of it."""

EXCERPT_BYTES: Final = 4 * 1024
"""Decoded bytes of an answer that are kept as text."""

KEPT_JSON_BYTES: Final = 16 * 1024
"""A JSON answer up to this size is kept as JSON where the job asks for its body."""

_ASKS_FOR_PATIENCE: Final = frozenset({429, 503})


# Made for every call, and a frozen dataclass takes four times as long to make.
@dataclass(slots=True)
class HttpResult:
    """What one request came to.

    Attributes:
        ok: the target answered with an expected status, and its body says what the job demands.
        status: the status, where there was an answer.
        error: a sentence, where it is not ok.
        body_excerpt: the beginning of the answer's body as text.
        timed_out: the time was up before the answer was complete.
        refused: nothing was sent, and the same job will be refused again: a wrong spec, or an
            address that the guard does not let through.
        sent: the target may have seen the request, whatever came back.
        truncated: the body was longer than what is read of it.
        retry_after_seconds: what the target asked for with 429 or 503.
        body: what the job keeps of the body, as JSON or text; None without `keep_body`.
    """

    ok: bool
    status: int | None = None
    error: str | None = None
    body_excerpt: str = ""
    timed_out: bool = False
    refused: bool = False
    sent: bool = False
    truncated: bool = False
    retry_after_seconds: float | None = None
    body: Any = None

    def kept(self) -> dict[str, Any]:
        """Return what the run keeps as its result."""
        kept: dict[str, Any] = {"status": self.status}
        if self.body is not None:
            kept["body"] = self.body
            if self.truncated:
                kept["truncated"] = True
        return kept


@dataclass(slots=True)
class Body:
    """What was read of a body. `truncated`: there was more than the cap."""

    data: bytes
    truncated: bool

    def text(self, limit: int = EXCERPT_BYTES) -> str:
        """Return the beginning as text that Postgres can store."""
        return self.data[:limit].decode("utf-8", "replace").replace("\0", "\N{REPLACEMENT CHARACTER}")


async def read_body(response: aiohttp.ClientResponse, request: Request) -> Body:
    """Read a body up to the cap, decoded as it comes: what lies beyond costs neither time nor memory."""
    cap = MAX_JUDGED_BYTES if request.conditions or request.keep_body else MAX_BODY_BYTES
    wanted = cap if request.conditions or request.keep_body else EXCERPT_BYTES
    data = bytearray()
    read = 0
    async for chunk in response.content.iter_any():
        read += len(chunk)
        data += chunk[: wanted - len(data)]
        if read > cap:
            response.close()
            return Body(bytes(data), truncated=True)
    return Body(bytes(data), truncated=False)


def judge(request: Request, host: str, response: aiohttp.ClientResponse, body: Body) -> HttpResult:
    """Say what a complete answer, or one that was cut at the cap, means for the attempt."""
    status = response.status
    error = _status_error(request, host, status)
    if error is None and request.conditions and not (request.callback and status == 202):
        missed = _missed(request, body)
        error = None if missed is None else f"{host} answered {status}, but {missed}"
    patience = None
    if status in _ASKS_FOR_PATIENCE:
        patience = _patience(response.headers)
    return HttpResult(
        ok=error is None,
        status=status,
        error=error,
        body_excerpt=body.text(),
        sent=True,
        truncated=body.truncated,
        retry_after_seconds=patience,
        body=_kept_body(body) if request.keep_body else None,
    )


def _status_error(request: Request, host: str, status: int) -> str | None:
    if request.expects(status) or (request.callback and status == 202):
        return None
    redirect = ", a redirect, and redirects are not followed" if 300 <= status < 400 else ""
    return f"{host} answered {status}{redirect}; expected is {request.expected_text}"


def _missed(request: Request, body: Body) -> str | None:
    if body.truncated:
        return f"its body is longer than {MAX_JUDGED_BYTES} bytes, so what it says cannot be judged"
    try:
        document = orjson.loads(body.data)
    except orjson.JSONDecodeError:
        return "its body is not JSON"
    return next((missed for one in request.conditions if (missed := one.failure(document))), None)


def _kept_body(body: Body) -> Any:
    if not body.truncated and len(body.data) <= KEPT_JSON_BYTES and b"\\u0000" not in body.data:
        try:
            kept = orjson.loads(body.data)
            encode_result(kept)  # deeper than what is stored, for one
        except (orjson.JSONDecodeError, ResultError):
            pass
        else:
            return kept
    return body.text()


def _patience(headers: Mapping[str, str]) -> float | None:
    return retry_after_seconds(headers.get("Retry-After"), now=time.time(), date=headers.get("Date"))
