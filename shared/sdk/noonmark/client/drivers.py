"""Performs the steps of calls with httpx, blocking or on an event loop. Nothing here knows a route."""

from __future__ import annotations

import asyncio
import ipaddress
import os
import re
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from importlib.metadata import version
from typing import Any, Final, TypeVar

import httpx

from noonmark.client.answers import Answer, Call
from noonmark.client.errors import ClientError, NoAnswerError
from noonmark.client.steps import Outcome, Reply, Retries, Send, Steps, Wait

T = TypeVar("T")

_TOKEN: Final = re.compile(r"[\x21-\x7e]+")
_CONNECT_SECONDS: Final = 10.0
STREAM_SILENCE_SECONDS: Final = 60.0
"""A stream that is silent for longer, without even a comment, is dead."""


class Driver:
    """What both clients share: address, credentials, timeouts and retries."""

    def __init__(
        self, url: str | None, api_key: str | None, timeout: float, *, allow_http: bool, is_net: bool
    ) -> None:
        address = url or os.environ.get("NOONMARK_API_URL", "")
        if not address:
            raise ValueError("give the address of the API, as url=… or in NOONMARK_API_URL")
        # The environment's key is for real servers, not for a transport that the caller passed.
        known = os.environ.get("NOONMARK_API_KEY") if is_net or not url else None
        key = api_key or known or None
        self.url: Final = httpx.URL(address.rstrip("/"))
        self.timeout: Final = timeout
        self.retries = Retries()
        _check(self.url, key, allow_http=allow_http)
        self._headers: Final = {
            "Accept": "application/json",
            "User-Agent": f"noonmark-python/{version('noonmark')}",
            **({"Authorization": f"Bearer {key}"} if key else {}),
        }

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.url.host}>"

    def request_of(self, call: Call[Any]) -> dict[str, Any]:
        """Return the arguments of a request for httpx."""
        return {
            "method": call.method,
            "url": call.path,
            "params": {name: _query(value) for name, value in call.params.items() if value is not None},
            "headers": {name: value for name, value in call.headers.items() if value is not None},
            **({"json": call.json} if call.json is not None else {}),
        }


class Blocking(Driver):
    """Performs steps one after the other in the calling thread."""

    def __init__(
        self,
        url: str | None,
        api_key: str | None,
        timeout: float,
        *,
        allow_http: bool,
        transport: httpx.BaseTransport | None,
    ) -> None:
        super().__init__(url, api_key, timeout, allow_http=allow_http, is_net=transport is None)
        self._http = httpx.Client(base_url=self.url, headers=self._headers, transport=transport)

    def close(self) -> None:
        """Close the connections."""
        self._http.close()

    def drive(self, steps: Steps[T]) -> T:
        """Perform the steps and return their result."""
        outcome: Outcome = None
        while True:
            try:
                step = steps.send(outcome)
            except StopIteration as end:
                result: T = end.value
                return result
            outcome = self._send(step) if isinstance(step, Send) else None
            if isinstance(step, Wait):
                time.sleep(step.seconds)

    def _send(self, step: Send) -> Outcome:
        try:
            answer = self._http.request(**self.request_of(step.call), timeout=_timeout(step.seconds))
        except httpx.TransportError as error:
            return _no_answer(self.url, error)
        return Reply(answer.status_code, answer.reason_phrase, dict(answer.headers), answer.content)

    @contextmanager
    def stream(self, call: Call[Any]) -> Iterator[Iterator[str] | None]:
        """Open a stream of text; None if the server says that there is no more (204).

        Raises:
            ApiError: the server refused.
            NoAnswerError: it cannot be reached, or the stream broke.
        """
        try:
            with self._http.stream(**self.request_of(call), timeout=_stream_timeout()) as answer:
                if not answer.is_success:
                    _refuse(answer, answer.read())
                yield None if answer.status_code == httpx.codes.NO_CONTENT else answer.iter_text()
        except httpx.TransportError as error:
            raise _no_answer(self.url, error) from error


class Awaiting(Driver):
    """Performs steps on the running event loop."""

    def __init__(
        self,
        url: str | None,
        api_key: str | None,
        timeout: float,
        *,
        allow_http: bool,
        transport: httpx.AsyncBaseTransport | None,
    ) -> None:
        super().__init__(url, api_key, timeout, allow_http=allow_http, is_net=transport is None)
        self._http = httpx.AsyncClient(base_url=self.url, headers=self._headers, transport=transport)

    async def close(self) -> None:
        """Close the connections."""
        await self._http.aclose()

    async def drive(self, steps: Steps[T]) -> T:
        """Perform the steps and return their result."""
        outcome: Outcome = None
        while True:
            try:
                step = steps.send(outcome)
            except StopIteration as end:
                result: T = end.value
                return result
            outcome = await self._send(step) if isinstance(step, Send) else None
            if isinstance(step, Wait):
                await asyncio.sleep(step.seconds)

    async def _send(self, step: Send) -> Outcome:
        try:
            answer = await self._http.request(**self.request_of(step.call), timeout=_timeout(step.seconds))
        except httpx.TransportError as error:
            return _no_answer(self.url, error)
        return Reply(answer.status_code, answer.reason_phrase, dict(answer.headers), answer.content)

    @asynccontextmanager
    async def stream(self, call: Call[Any]) -> AsyncIterator[AsyncIterator[str] | None]:
        """Open a stream of text; see `Blocking.stream`."""
        try:
            async with self._http.stream(**self.request_of(call), timeout=_stream_timeout()) as answer:
                if not answer.is_success:
                    _refuse(answer, await answer.aread())
                yield None if answer.status_code == httpx.codes.NO_CONTENT else answer.aiter_text()
        except httpx.TransportError as error:
            raise _no_answer(self.url, error) from error


def _refuse(answer: httpx.Response, body: bytes) -> None:
    Answer.of(answer.status_code, answer.reason_phrase, dict(answer.headers), body)
    raise ClientError(f"the server answered {answer.status_code} instead of a stream of events")


def _no_answer(url: httpx.URL, error: httpx.TransportError) -> NoAnswerError:
    """Describe the failure. The address is shown without a user or password."""
    place = f"{url.scheme}://{url.host}" + (f":{url.port}" if url.port else "")
    what = "gave no answer in time" if isinstance(error, httpx.TimeoutException) else "cannot be reached"
    reason = f": {error}" if str(error) else ""
    found = NoAnswerError(f"noonmark at {place} {what}{reason}")
    found.__cause__ = error
    return found


def _timeout(seconds: float) -> httpx.Timeout:
    return httpx.Timeout(seconds, connect=min(seconds, _CONNECT_SECONDS))


def _stream_timeout() -> httpx.Timeout:
    return httpx.Timeout(STREAM_SILENCE_SECONDS, connect=_CONNECT_SECONDS)


def _query(value: object) -> Any:
    """Format a value of the query as the API reads it."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, list | tuple):
        return [_query(one) for one in value]
    if hasattr(value, "isoformat"):
        return value.isoformat()
    return str(value)


def _check(url: httpx.URL, key: str | None, *, allow_http: bool) -> None:
    """Refuse an address or a key that cannot be used; the messages never show the key.

    Raises:
        ValueError: one of them cannot be used.
    """
    if url.scheme not in {"http", "https"} or not url.host:
        raise ValueError("the address of the API is not a URL: use https://host[:port]")
    if url.userinfo:
        raise ValueError("the address of the API holds a user or password: give an api_key instead")
    if key is None:
        return
    if not _TOKEN.fullmatch(key):
        raise ValueError("the API key has a character that no key has: remove spaces and line breaks")
    if url.scheme == "http" and not allow_http and not _is_loopback(url.host):
        raise ValueError(
            f"the API key would be sent to {url.host} unencrypted: use https, or allow_http=True where the"
            " network between is trusted"
        )


def _is_loopback(host: str) -> bool:
    if host == "localhost" or host.endswith(".localhost"):
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False
