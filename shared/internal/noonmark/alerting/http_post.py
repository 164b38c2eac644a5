"""One POST or GET with a time limit to an operator's URL, without redirects. No text shows the URL."""

from __future__ import annotations

import asyncio
import logging
import ssl
from collections.abc import Mapping
from contextlib import closing
from functools import cached_property
from importlib.metadata import version
from typing import Final
from urllib.parse import parse_qsl, quote, unquote, urlsplit

import httpx

TIMEOUT_SECONDS: Final = 10.0
"""Limit for a whole call."""

_MOST_ANSWER: Final = 64 * 1024
_MOST_SHOWN: Final = 300
_TOKEN: Final = 12
"""A path segment of at least this length may be a token."""
_SHORTEST: Final = 4
_AGENT: Final = f"noonmark/{version('noonmark')}"

# It logs every URL, and these contain secrets.
logging.getLogger("httpx").setLevel(logging.WARNING)


class DeliveryRefusedError(Exception):
    """A call did not succeed; the message says why, without any part of the URL.

    Attributes:
        status: status of the response; None if there was none.
    """

    def __init__(self, message: str, status: int | None = None) -> None:
        super().__init__(message)
        self.status = status


class Poster:
    """Makes calls, each over a new connection. Thread-safe."""

    def __init__(self, timeout_seconds: float = TIMEOUT_SECONDS) -> None:
        """Take the limit for a call, from the DNS lookup to the end of the response."""
        self._timeout_seconds = timeout_seconds

    @cached_property
    def _tls(self) -> ssl.SSLContext:
        # SSL_CERT_FILE may name a private certificate authority.
        return httpx.create_ssl_context(trust_env=True)

    def call(self, url: str, *, body: bytes | None = None, headers: Mapping[str, str] | None = None) -> int:
        """POST a JSON body, or GET if there is none; return the status of success.

        Raises:
            DeliveryRefusedError: it did not succeed.
        """
        sent = {"user-agent": _AGENT, **(headers or {})}
        if body is not None:
            sent["content-type"] = "application/json"
        try:
            _ = self._tls
        except OSError as error:
            raise DeliveryRefusedError(f"cannot read SSL_CERT_FILE: {error}"[:_MOST_SHOWN]) from None
        # A new event loop for each call: its tasks stop at the time limit, even if the server sends slowly.
        with closing(asyncio.new_event_loop()) as loop:
            status, text = loop.run_until_complete(self._bounded(url, body, sent))
        if 300 <= status < 400:
            raise DeliveryRefusedError(
                f"answered {status}: redirects are not followed; set the URL of the target", status
            )
        if not 200 <= status < 300:
            shown = _shown(text, url)
            raise DeliveryRefusedError(
                f"answered {status}: {shown}" if shown else f"answered {status}", status
            )
        return status

    async def _bounded(self, url: str, body: bytes | None, headers: Mapping[str, str]) -> tuple[int, bytes]:
        try:
            return await self._send(url, body, headers)
        except (TimeoutError, httpx.TimeoutException):
            raise DeliveryRefusedError(f"no answer within {self._timeout_seconds:g} s") from None
        except httpx.ConnectError as error:
            raise DeliveryRefusedError(f"cannot be reached: {_first(error)}"[:_MOST_SHOWN]) from None
        except (httpx.HTTPError, httpx.InvalidURL, ValueError) as error:
            # The library's own text may quote the URL.
            raise DeliveryRefusedError(f"no usable answer ({type(error).__name__})") from None

    async def _send(self, url: str, body: bytes | None, headers: Mapping[str, str]) -> tuple[int, bytes]:
        """Return the status and the beginning of the response."""
        method = "GET" if body is None else "POST"
        # No proxies or .netrc of the environment: the body may only go to the given host.
        async with httpx.AsyncClient(verify=self._tls, timeout=None, trust_env=False) as client:  # noqa: S113
            async with asyncio.timeout(self._timeout_seconds) as limit:
                request = client.build_request(method, url, content=body, headers=dict(headers))
                answer = await client.send(request, stream=True)
            text = b""
            try:
                async with asyncio.timeout_at(limit.when()):
                    async for part in answer.aiter_raw():
                        text += part[: _MOST_ANSWER - len(text)]
                        if len(text) >= _MOST_ANSWER:
                            break
            except TimeoutError:
                pass  # The status is enough.
            finally:
                await answer.aclose()
            return answer.status_code, text


def _first(error: BaseException) -> BaseException:
    """Return the root cause of a failed connection; the outer error may only say that all attempts failed."""
    cause = error.__cause__ or error.__context__
    return error if cause is None or not isinstance(cause, Exception) else _first(cause)


def _shown(body: bytes, url: str) -> str:
    """Return the beginning of a response, without any part of the URL, which may contain secrets."""
    text = body.decode("utf-8", "replace")
    for secret in sorted(_secrets(url), key=len, reverse=True):
        text = text.replace(secret, "…")
    return "".join(one if one.isprintable() else " " for one in text[:_MOST_SHOWN]).strip()


def _secrets(url: str) -> set[str]:
    """Return the parts of a URL that may be secret."""
    parts = urlsplit(url)
    path = parts.path.rstrip("/")
    tokens = [segment for segment in path.split("/") if len(segment) >= _TOKEN]
    values = [value for _, value in parse_qsl(parts.query)]
    known = (path, parts.query, parts.username, parts.password, *tokens, *values)
    both = {form for part in known if part for form in (part, unquote(part), quote(part, safe=""))}
    return {part for part in both if len(part) >= _SHORTEST}
