"""One bounded POST or GET to an address that an operator gave: no redirects, and no address in any text."""

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
"""For a call as a whole."""

_MOST_ANSWER: Final = 64 * 1024
_MOST_SHOWN: Final = 300
_TOKEN: Final = 12
"""A segment of a path that is so long may be a token."""
_SHORTEST: Final = 4
_AGENT: Final = f"noonmark/{version('noonmark')}"

# It logs every address, and these hold secrets.
logging.getLogger("httpx").setLevel(logging.WARNING)


class DeliveryRefusedError(Exception):
    """A call was not answered with success; the message says why, and shows nothing of the address.

    Attributes:
        status: of the answer; None where none came.
    """

    def __init__(self, told: str, status: int | None = None) -> None:
        super().__init__(told)
        self.status = status


class Poster:
    """Makes calls, each over a connection of its own. Thread-safe."""

    def __init__(self, timeout_seconds: float = TIMEOUT_SECONDS) -> None:
        """Take how long a call may last, from the name's look-up to the end of the answer."""
        self._timeout_seconds = timeout_seconds

    @cached_property
    def _tls(self) -> ssl.SSLContext:
        # SSL_CERT_FILE may name another authority than the public ones.
        return httpx.create_ssl_context(trust_env=True)

    def call(self, url: str, *, body: bytes | None = None, headers: Mapping[str, str] | None = None) -> int:
        """POST a body of JSON, or GET where there is none; return the status of success.

        Raises:
            NotTakenError: it did not succeed.
        """
        sent = {"user-agent": _AGENT, **(headers or {})}
        if body is not None:
            sent["content-type"] = "application/json"
        try:
            _ = self._tls
        except OSError as error:
            raise DeliveryRefusedError(f"SSL_CERT_FILE cannot be read: {error}"[:_MOST_SHOWN]) from None
        # A loop for each call: its tasks are ended when the time is over, whatever the other side drips.
        with closing(asyncio.new_event_loop()) as loop:
            status, told = loop.run_until_complete(self._bounded(url, body, sent))
        if 300 <= status < 400:
            raise DeliveryRefusedError(
                f"answered {status}: redirects are not followed, name the address itself", status
            )
        if not 200 <= status < 300:
            text = _shown(told, url)
            raise DeliveryRefusedError(f"answered {status}: {text}" if text else f"answered {status}", status)
        return status

    async def _bounded(self, url: str, body: bytes | None, headers: Mapping[str, str]) -> tuple[int, bytes]:
        try:
            return await self._ask(url, body, headers)
        except (TimeoutError, httpx.TimeoutException):
            raise DeliveryRefusedError(f"no answer within {self._timeout_seconds:g} s") from None
        except httpx.ConnectError as error:
            raise DeliveryRefusedError(f"cannot be reached: {_first(error)}"[:_MOST_SHOWN]) from None
        except (httpx.HTTPError, httpx.InvalidURL, ValueError) as error:
            # The library's own text may quote the address.
            raise DeliveryRefusedError(f"no usable answer ({type(error).__name__})") from None

    async def _ask(self, url: str, body: bytes | None, headers: Mapping[str, str]) -> tuple[int, bytes]:
        """Return the status and the begin of the answer."""
        method = "GET" if body is None else "POST"
        # Neither proxies nor .netrc of the environment: what is sent may go to the given host alone.
        async with httpx.AsyncClient(verify=self._tls, timeout=None, trust_env=False) as client:  # noqa: S113
            async with asyncio.timeout(self._timeout_seconds) as limit:
                request = client.build_request(method, url, content=body, headers=dict(headers))
                answer = await client.send(request, stream=True)
            told = b""
            try:
                async with asyncio.timeout_at(limit.when()):
                    async for part in answer.aiter_raw():
                        told += part[: _MOST_ANSWER - len(told)]
                        if len(told) >= _MOST_ANSWER:
                            break
            except TimeoutError:
                pass  # The status says enough.
            finally:
                await answer.aclose()
            return answer.status_code, told


def _first(error: BaseException) -> BaseException:
    """Return what a failed connection comes from; the error on top may only say that all attempts failed."""
    cause = error.__cause__ or error.__context__
    return error if cause is None or not isinstance(cause, Exception) else _first(cause)


def _shown(told: bytes, url: str) -> str:
    """Return how an answer begins, without what it repeats of the address, which may hold secrets."""
    text = told.decode("utf-8", "replace")
    for secret in sorted(_secrets(url), key=len, reverse=True):
        text = text.replace(secret, "…")
    return "".join(one if one.isprintable() else " " for one in text[:_MOST_SHOWN]).strip()


def _secrets(url: str) -> set[str]:
    """Return what of an address only those know who were given it."""
    parts = urlsplit(url)
    path = parts.path.rstrip("/")
    tokens = [segment for segment in path.split("/") if len(segment) >= _TOKEN]
    values = [value for _, value in parse_qsl(parts.query)]
    known = (path, parts.query, parts.username, parts.password, *tokens, *values)
    both = {form for part in known if part for form in (part, unquote(part), quote(part, safe=""))}
    return {part for part in both if len(part) >= _SHORTEST}
