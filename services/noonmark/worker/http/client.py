"""The client of HTTP jobs: sends one guarded request per attempt, and describes what went wrong.

The guard checks three times: the URL, every address that its name resolves to, and the address of each socket
just before it connects. A request whose failure would be final gets a new connection, because a kept one may
be closed already at the other end. `exchange.py` sends it, once.
"""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from functools import lru_cache
from importlib.metadata import version
from ipaddress import ip_address
from ssl import SSLContext
from typing import Any, Final, Self

import aiohttp
from aiohttp.abc import AbstractResolver, ResolveResult
from aiohttp.http import HttpProcessingError
from yarl import URL

from noonmark.core.kinds.http_request import BadRequestError, Target, parse_url
from noonmark.handlers import Context
from noonmark.worker.http.address_guard import AddressRefusedError, Guard
from noonmark.worker.http.exchange import Destination, Sending, encode, exchange
from noonmark.worker.http.name_lookup import NameLookup
from noonmark.worker.http.request import instant_text, prepare
from noonmark.worker.http.response import HttpResult, judge
from noonmark.worker.http.tls import tls_context
from noonmark.worker.time_limits import TimeLimit, TimeLimits

# Below the shortest common idle timeout of servers (5 s), because a request that is lost on a connection that
# the server has just closed costs an attempt.
_KEEPALIVE_SECONDS: Final = 4.0
_AGENT: Final = f"noonmark/{version('noonmark')}"

Sign = Callable[[bytes], Mapping[str, str]]
"""Returns the headers that sign a body."""

Lookup = Callable[[str], Awaitable[Sequence[str]]]
"""Resolves a name to all its addresses, IPv4 and IPv6, as text."""

_CONNECTION_ERRORS: Final[tuple[tuple[type[Exception], str], ...]] = (
    # The first class that matches decides, so subclasses come before their bases.
    (aiohttp.ClientConnectorDNSError, "{host} cannot be resolved: {cause}"),
    (aiohttp.ClientConnectorCertificateError, "the TLS certificate of {place} is not trusted: {cause}"),
    (aiohttp.ClientConnectorSSLError, "no TLS connection to {place}: {cause}"),
    (aiohttp.ClientConnectorError, "no connection to {place}: {cause}"),
    (aiohttp.ServerDisconnectedError, "{place} closed the connection without a response"),
    (aiohttp.ClientPayloadError, "the response of {place} broke off: {cause}"),
    (HttpProcessingError, "the response of {place} is not valid HTTP: {cause}"),
    (Exception, "the connection to {place} failed: {cause}"),
)

_parsed = lru_cache(maxsize=4096)(parse_url)


class HttpExecutor:
    """Sends the requests of HTTP jobs over one pool of connections. Belongs to one event loop.

    Use it as an async context manager, or call `close`.

    Args:
        allow_networks: CIDR blocks that may be called although they are not public.
        lookup: resolves names; the system's resolver by default.
        dns_cache_seconds: how long checked addresses of a name are reused for new connections; 0
            resolves the name for each.

    Raises:
        NetworkListError: a block cannot be read.
    """

    def __init__(
        self,
        allow_networks: Iterable[str] = (),
        *,
        lookup: Lookup | None = None,
        dns_cache_seconds: int = 10,
    ) -> None:
        self._guard = Guard(allow_networks)
        self._names = NameLookup()
        self._lookup = lookup or self._names
        self._dns_cache_seconds = dns_cache_seconds
        self._connectors: dict[bool, aiohttp.TCPConnector] = {}
        self._limits: TimeLimits | None = None
        # Without those that have TLS settings of their own, whose certificates would all stay in memory.
        self._destination = lru_cache(maxsize=4096)(_destination)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_exc: object) -> None:
        await self.close()

    async def close(self) -> None:
        """Close all connections; requests in flight fail."""
        connectors, self._connectors = self._connectors, {}
        for connector in connectors.values():
            await connector.close()
        self._names.close()

    async def execute(
        self,
        spec: Mapping[str, Any],
        ctx: Context,
        timeout_seconds: float,
        *,
        sign: Sign | None = None,
        fresh: bool = False,
        before_send: Callable[[], None] | None = None,
    ) -> HttpResult:
        """Send the request of one attempt.

        Args:
            spec: the job's payload with secrets resolved: `url`, and optionally `method` (POST), `headers`,
                `body`, `expected_status` (200 to 299), `success`, `keep_body`, `tls`, `callback`.
            ctx: the attempt; its ids are sent as headers.
            timeout_seconds: for everything: DNS, connect, TLS, sending, the whole response.
            sign: returns further headers for the bytes of the body.
            fresh: send the request over a new connection, and close it afterwards.
            before_send: called when the request has its connection; if it raises, nothing is sent, and
                `execute` raises the same.
        """
        try:
            target = _target_of(spec)
            if target.is_address:
                self._guard.check(target.host, target.port)
            request = prepare(spec, _own_headers(ctx))
            tls = spec.get("tls")
            destination = self._destination(target) if tls is None else _with_tls(target, tls)
        except (BadRequestError, AddressRefusedError) as error:
            return HttpResult(ok=False, error=f"not sent: {error}", refused=True)
        signature = sign(request.body or b"") if sign is not None else {}
        data = encode(request, destination, signature, last=fresh)
        sending = Sending(before_send)
        try:
            with self._limit(timeout_seconds):
                response = await exchange(self._connector(fresh=fresh), destination, request, data, sending)
        except TimeoutError:
            error_text = f"{target.host} sent no complete response within {timeout_seconds:g} s"
            return HttpResult(ok=False, error=error_text, timed_out=True, sent=sending.sent)
        except (aiohttp.ClientError, HttpProcessingError, OSError) as error:
            refused = isinstance(getattr(error, "os_error", error), AddressRefusedError)
            text = _describe(error, target)[:1000]
            return HttpResult(ok=False, error=text, refused=refused, sent=sending.sent)
        return judge(request, target.host, response.status, response.headers, response.body)

    def _limit(self, seconds: float) -> TimeLimit:
        if self._limits is None:
            self._limits = TimeLimits(asyncio.get_running_loop())
        return self._limits.limit(seconds)

    def _connector(self, *, fresh: bool) -> aiohttp.TCPConnector:
        if fresh not in self._connectors:
            # A kept connection cannot be tested: the reset of a target that has closed it comes only after
            # the request was written.
            keeping = {"force_close": True} if fresh else {"keepalive_timeout": _KEEPALIVE_SECONDS}
            self._connectors[fresh] = self._open_connector(keeping)
        return self._connectors[fresh]

    def _open_connector(self, keeping: Mapping[str, Any]) -> aiohttp.TCPConnector:
        return aiohttp.TCPConnector(
            resolver=GuardedResolver(self._guard, self._lookup),
            use_dns_cache=self._dns_cache_seconds > 0,
            ttl_dns_cache=self._dns_cache_seconds,
            socket_factory=self._vetted_socket,
            # The worker's slots limit the number of requests; a second limit would only add waits.
            limit=0,
            **keeping,
        )

    def _vetted_socket(self, info: tuple[Any, ...]) -> socket.socket:
        family, kind, protocol, _, place = info
        self._guard.check(place[0], place[1])
        return socket.socket(family, kind, protocol)


class GuardedResolver(AbstractResolver):
    """Returns the addresses of a name only if all of them may be called."""

    def __init__(self, guard: Guard, lookup: Lookup) -> None:
        self._guard = guard
        self._lookup = lookup

    async def resolve(
        self,
        host: str,
        port: int = 0,
        family: socket.AddressFamily = socket.AF_UNSPEC,  # noqa: ARG002 - all families are checked
    ) -> list[ResolveResult]:
        """Resolve a name.

        Raises:
            AddressRefusedError: an address may not be called.
            OSError: the name has no address.
        """
        addresses = await self._lookup(host)
        if not addresses:
            raise OSError(f"{host} has no address")
        for address in addresses:
            self._guard.check(address, port)
        return [
            ResolveResult(
                hostname=host,
                host=address,
                port=port,
                family=socket.AF_INET6 if ip_address(address).version == 6 else socket.AF_INET,
                proto=0,
                flags=socket.AI_NUMERICHOST,
            )
            for address in addresses
        ]

    async def close(self) -> None:
        """Close nothing."""


@lru_cache(maxsize=4096)
def _url(target: Target) -> URL:
    """Build the URL from its parts, without parsing or quoting it again.

    Raises:
        BadRequestError: the client library does not accept the URL, so it can never be sent.
    """
    try:
        return URL.build(
            scheme=target.scheme,
            # With `encoded`, the text is used unchanged, so the brackets of IPv6 must be in it.
            host=target.url_host,
            port=target.port,
            path=target.path,
            query_string=target.query,
            encoded=True,
        )
    except ValueError as error:
        raise BadRequestError(f"the url cannot be called: {error}") from error


def _destination(
    target: Target, context: SSLContext | bool = True, server_name: str | None = None
) -> Destination:
    """Return where the requests of a target go.

    Raises:
        BadRequestError: the client library does not accept the URL, so it can never be sent.
    """
    url = _url(target)
    try:
        connect = aiohttp.ClientRequest(
            "GET", url, loop=asyncio.get_running_loop(), ssl=context, server_hostname=server_name
        )
    except aiohttp.InvalidURL:
        raise BadRequestError("the url cannot be called") from None
    return Destination(connect, url.raw_path_qs, connect.headers["Host"])


def _with_tls(target: Target, tls: Mapping[str, Any]) -> Destination:
    if target.scheme != "https":
        raise BadRequestError("tls is set, but the url is not https")
    return _destination(target, tls_context(tls), tls.get("server_name"))


def _target_of(spec: object) -> Target:
    if not isinstance(spec, Mapping):
        raise BadRequestError("the payload of an HTTP job must be an object with a url")
    url = spec.get("url")
    # Only strings can be cached; for anything else the parser has an error message.
    return _parsed(url) if isinstance(url, str) else parse_url(url)


def _own_headers(ctx: Context) -> dict[str, str]:
    run_id = str(ctx.run_id)
    return {
        "User-Agent": f"{_AGENT} (run {run_id})",
        "webhook-id": run_id,
        "Idempotency-Key": ctx.idempotency_key,
        "Noonmark-Run-Id": run_id,
        "Noonmark-Attempt": str(ctx.attempt),
        "Noonmark-Fence": str(ctx.fence),
        "Noonmark-Scheduled-For": instant_text(ctx.scheduled_for),
    }


def _describe(error: Exception, target: Target) -> str:
    """Describe what went wrong between the worker and the target."""
    cause: Any = getattr(error, "os_error", None) or getattr(error, "certificate_error", None) or error
    if isinstance(cause, AddressRefusedError):
        return f"not sent: {target.host} may not be called: {cause}"
    words = next(words for kind, words in _CONNECTION_ERRORS if isinstance(error, kind))
    detail = getattr(cause, "strerror", None) or getattr(cause, "message", None) or str(cause)
    return words.format(host=target.host, place=f"{target.url_host}:{target.port}", cause=detail)
