"""The two clients of the REST API."""

from __future__ import annotations

from collections.abc import Mapping
from types import TracebackType
from typing import Any, Final, Self

import httpx

from noonmark.client.answers import Answer, Call
from noonmark.client.drivers import Awaiting, Blocking
from noonmark.client.groups.jobs import Jobs
from noonmark.client.groups.runs import DeadLetters, Runs
from noonmark.client.groups.settings import (
    Alerts,
    Audit,
    Backfills,
    Calendars,
    Ids,
    Keys,
    Lanes,
    Limits,
    Namespaces,
    Pools,
    Rejections,
    Workers,
)
from noonmark.client.steps import Steps, execute

TIMEOUT_SECONDS: Final = 30.0


class Client:
    """Calls the REST API; thread-safe, one per process is enough.

    Args:
        url: address of the API, without `/v1`; by default `NOONMARK_API_URL`.
        api_key: by default `NOONMARK_API_KEY`. Never logged or shown.
        namespace: used if a call names none; by default the server uses the key's only namespace.
        timeout: seconds for a call, including its retries.
        transport: replaces the network connection, for example in tests.
        allow_http: allow to send the key unencrypted to another machine.

    Raises:
        ValueError: the address or the key cannot be used.
    """

    def __init__(
        self,
        url: str | None = None,
        api_key: str | None = None,
        *,
        namespace: str | None = None,
        timeout: float = TIMEOUT_SECONDS,
        transport: httpx.BaseTransport | None = None,
        allow_http: bool = False,
    ) -> None:
        driver = Blocking(url, api_key, timeout, allow_http=allow_http, transport=transport)
        self._driver = driver
        self.namespace: Final = namespace
        self.jobs: Final = Jobs(driver, namespace)
        self.runs: Final = Runs(driver, namespace)
        self.dead_letters: Final = DeadLetters(driver, namespace)
        self.backfills: Final = Backfills(driver, namespace)
        self.namespaces: Final = Namespaces(driver, namespace)
        self.calendars: Final = Calendars(driver, namespace)
        self.limits: Final = Limits(driver, namespace)
        self.workers: Final = Workers(driver, namespace)
        self.pools: Final = Pools(driver, namespace)
        self.lanes: Final = Lanes(driver, namespace)
        self.rejections: Final = Rejections(driver, namespace)
        self.ids: Final = Ids(driver, namespace)
        self.keys: Final = Keys(driver, namespace)
        self.alerts: Final = Alerts(driver, namespace)
        self.audit: Final = Audit(driver, namespace)

    def request(
        self,
        method: str,
        path: str,
        *,
        json: Any = None,
        params: Mapping[str, Any] | None = None,
        headers: Mapping[str, str | None] | None = None,
    ) -> Answer:
        """Make any call, also one without its own method.

        Like every call, it is retried if that is safe and may help: GET, PUT, DELETE, and calls with an
                `Idempotency-Key`.

        Args:
            method: GET, POST, PUT, PATCH or DELETE.
            path: such as `/v1/jobs`.
            json: the body.
            params: of the query; those that are None are left out.
            headers: in addition to those of every call.

        Raises:
            ApiError: the server refused.
            NoAnswerError: no answer came in time.
        """
        return self._driver.drive(_any(self._driver, method, path, json, params, headers))

    def close(self) -> None:
        """Close the connections."""
        self._driver.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"<noonmark.client.Client of {self._driver.url.host}>"


class AsyncClient:
    """Calls the REST API from an event loop; it has the methods of `Client`, to be awaited."""

    def __init__(
        self,
        url: str | None = None,
        api_key: str | None = None,
        *,
        namespace: str | None = None,
        timeout: float = TIMEOUT_SECONDS,
        transport: httpx.AsyncBaseTransport | None = None,
        allow_http: bool = False,
    ) -> None:
        driver = Awaiting(url, api_key, timeout, allow_http=allow_http, transport=transport)
        self._driver = driver
        self.namespace: Final = namespace
        self.jobs: Final = Jobs(driver, namespace)
        self.runs: Final = Runs(driver, namespace)
        self.dead_letters: Final = DeadLetters(driver, namespace)
        self.backfills: Final = Backfills(driver, namespace)
        self.namespaces: Final = Namespaces(driver, namespace)
        self.calendars: Final = Calendars(driver, namespace)
        self.limits: Final = Limits(driver, namespace)
        self.workers: Final = Workers(driver, namespace)
        self.pools: Final = Pools(driver, namespace)
        self.lanes: Final = Lanes(driver, namespace)
        self.rejections: Final = Rejections(driver, namespace)
        self.ids: Final = Ids(driver, namespace)
        self.keys: Final = Keys(driver, namespace)
        self.alerts: Final = Alerts(driver, namespace)
        self.audit: Final = Audit(driver, namespace)

    async def request(
        self,
        method: str,
        path: str,
        *,
        json: Any = None,
        params: Mapping[str, Any] | None = None,
        headers: Mapping[str, str | None] | None = None,
    ) -> Answer:
        """Make any call; see `Client.request`."""
        return await self._driver.drive(_any(self._driver, method, path, json, params, headers))

    async def close(self) -> None:
        """Close the connections."""
        await self._driver.close()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()

    def __repr__(self) -> str:
        return f"<noonmark.client.AsyncClient of {self._driver.url.host}>"


def _any(  # noqa: PLR0917 - those of `request`, once for both clients
    driver: Blocking | Awaiting,
    method: str,
    path: str,
    json: Any,
    params: Mapping[str, Any] | None,
    headers: Mapping[str, str | None] | None,
) -> Steps[Answer]:
    call = Call(method.upper(), path, lambda answer: answer, params or {}, json, headers or {})
    return execute(call, driver.retries, driver.timeout)
