"""Evaluates the response of a target, and selects what of it is stored."""

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
"""Decoded bytes of a response that are read; if it is longer, the connection is closed."""

MAX_JUDGED_BYTES: Final = 1024 * 1024
"""The same limit if the job has conditions for the body, or stores it."""

EXCERPT_BYTES: Final = 4 * 1024
"""Decoded bytes of a response that are stored as text."""

KEPT_JSON_BYTES: Final = 16 * 1024
"""A JSON response up to this size is stored as JSON if the job has `keep_body`."""

_WITH_RETRY_AFTER: Final = frozenset({429, 503})


# Created for every call; creating a frozen dataclass takes four times as long.
@dataclass(slots=True)
class HttpResult:
    """The result of one request.

    Attributes:
        ok: whether the target answered with an expected status and a body that meets the conditions.
        status: the HTTP status; None without a response.
        error: what went wrong, as a sentence; None if ok.
        body_excerpt: the beginning of the body as text.
        timed_out: whether the time was up before the response was complete.
        refused: nothing was sent, and the same job will be refused again: its payload is not valid, or
            the guard does not allow the address.
        sent: whether the target may have received the request.
        truncated: whether the body was longer than the limit.
        retry_after_seconds: the delay that the target requested with 429 or 503.
        body: the body to store, as JSON or text; None without `keep_body`.
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
        """Return the result of the run."""
        kept: dict[str, Any] = {"status": self.status}
        if self.body is not None:
            kept["body"] = self.body
            if self.truncated:
                kept["truncated"] = True
        return kept


@dataclass(slots=True)
class Body:
    """The part of a body that was read. `truncated`: it was longer than the limit."""

    data: bytes
    truncated: bool

    def text(self, limit: int = EXCERPT_BYTES) -> str:
        """Return the beginning as text that Postgres can store."""
        return self.data[:limit].decode("utf-8", "replace").replace("\0", "\N{REPLACEMENT CHARACTER}")


async def read_body(payload: aiohttp.StreamReader, request: Request) -> Body:
    """Read a body up to the limit, decoding it on the way; the rest costs neither time nor memory."""
    cap = MAX_JUDGED_BYTES if request.conditions or request.keep_body else MAX_BODY_BYTES
    wanted = cap if request.conditions or request.keep_body else EXCERPT_BYTES
    data = bytearray()
    read = 0
    # Most bodies are short, and have arrived with the head.
    while not payload.at_eof():
        chunk = await payload.readany()
        read += len(chunk)
        data += chunk[: wanted - len(data)]
        if read > cap:
            return Body(bytes(data), truncated=True)
    return Body(bytes(data), truncated=False)


def judge(request: Request, host: str, status: int, headers: Mapping[str, str], body: Body) -> HttpResult:
    """Evaluate a response, complete or cut at the limit."""
    error = _status_error(request, host, status)
    if error is None and request.conditions and not (request.callback and status == 202):
        missed = _missed(request, body)
        error = None if missed is None else f"{host} answered {status}, but {missed}"
    retry_after = None
    if status in _WITH_RETRY_AFTER:
        retry_after = _retry_after(headers)
    return HttpResult(
        ok=error is None,
        status=status,
        error=error,
        body_excerpt=body.text(),
        sent=True,
        truncated=body.truncated,
        retry_after_seconds=retry_after,
        body=_kept_body(body) if request.keep_body else None,
    )


def _status_error(request: Request, host: str, status: int) -> str | None:
    if request.expects(status) or (request.callback and status == 202):
        return None
    redirect = ", a redirect, and redirects are not followed" if 300 <= status < 400 else ""
    return f"{host} answered {status}{redirect}; expected {request.expected_text}"


def _missed(request: Request, body: Body) -> str | None:
    if body.truncated:
        return f"its body is longer than {MAX_JUDGED_BYTES} bytes, so it cannot be evaluated"
    try:
        document = orjson.loads(body.data)
    except orjson.JSONDecodeError:
        return "its body is not JSON"
    return next((missed for one in request.conditions if (missed := one.failure(document))), None)


def _kept_body(body: Body) -> Any:
    if not body.truncated and len(body.data) <= KEPT_JSON_BYTES and b"\\u0000" not in body.data:
        try:
            kept = orjson.loads(body.data)
            encode_result(kept)  # for example, it can be nested too deeply
        except (orjson.JSONDecodeError, ResultError):
            pass
        else:
            return kept
    return body.text()


def _retry_after(headers: Mapping[str, str]) -> float | None:
    return retry_after_seconds(headers.get("Retry-After"), now=time.time(), date=headers.get("Date"))
