"""Connections of gRPC jobs: each goes to addresses that the guard has passed, whatever their name means now.

gRPC would resolve names itself, use proxies of the environment, and take a service configuration from DNS.
None of that happens here: the channel is given vetted addresses, and the name only for TLS and `:authority`.
"""

from __future__ import annotations

import asyncio
import ssl
import time
from collections.abc import AsyncIterator, Callable, Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from functools import lru_cache
from ipaddress import ip_address
from pathlib import Path
from typing import Any, Final

import grpc
import grpc.aio

from noonmark.core.kinds.grpc_call import GrpcTarget
from noonmark.worker.http.address_guard import Guard
from noonmark.worker.http.client import GuardedResolver, Lookup, system_lookup
from noonmark.worker.http.tls import tls_context

MAX_ANSWER_BYTES: Final = 4 * 1024 * 1024
MAX_REQUEST_BYTES: Final = 4 * 1024 * 1024

VETTED_SECONDS: Final = 10.0
"""For so long the vetted addresses of a name are used without asking again."""

IDLE_SECONDS: Final = 120.0
_MOST_CHANNELS: Final = 256
_DNS_THREADS: Final = 8

_OPTIONS: Final = (
    ("grpc.enable_http_proxy", 0),
    # No second try of ours nor of the library's: that would be two calls under one fence.
    ("grpc.enable_retries", 0),
    ("grpc.service_config_disable_resolution", 1),
    # Connections are shared by nobody whose name was not vetted together with this one.
    ("grpc.use_local_subchannel_pool", 1),
    ("grpc.max_receive_message_length", MAX_ANSWER_BYTES),
    ("grpc.max_send_message_length", MAX_REQUEST_BYTES),
    ("grpc.max_metadata_size", 16 * 1024),
    ("grpc.absolute_max_metadata_size", 32 * 1024),
    ("grpc.client_idle_timeout_ms", round(IDLE_SECONDS * 1000)),
    # The next attempt says whether a server is back; a connection must not stay away longer than that.
    ("grpc.max_reconnect_backoff_ms", 1000),
    ("grpc.initial_reconnect_backoff_ms", 100),
    ("grpc.min_reconnect_backoff_ms", 5000),
)

_Key = tuple[str, bool, tuple[tuple[str, Any], ...]]


@dataclass(slots=True, eq=False)
class _Open:
    """A channel, the addresses it may connect to, and who uses it."""

    channel: grpc.aio.Channel
    addresses: frozenset[str]
    vetted_until: float
    used_at: float
    users: int = 0
    retired: bool = False


@dataclass(slots=True, eq=False)
class _Place:
    """What is known of a target: one look-up at a time."""

    lock: asyncio.Lock = field(default_factory=asyncio.Lock)
    open: _Open | None = None


class GrpcChannels:
    """Keeps channels by target and TLS settings. Belongs to one event loop.

    Args:
        allow_networks: CIDR blocks that may be called though they are not public.
        lookup: resolves names; the system's resolver by default.
        clock: monotonic seconds.

    Raises:
        NetworkListError: a block cannot be read.
    """

    def __init__(
        self,
        allow_networks: Iterable[str] = (),
        *,
        lookup: Lookup | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._guard = Guard(allow_networks)
        self._lookup = lookup
        self._clock = clock
        self._threads: ThreadPoolExecutor | None = None
        self._places: dict[_Key, _Place] = {}

    @asynccontextmanager
    async def use(self, target: GrpcTarget, tls: Mapping[str, Any] | None) -> AsyncIterator[grpc.aio.Channel]:
        """Lend a channel to the vetted addresses of a target.

        Args:
            target: taken apart.
            tls: the job's settings, their references resolved.

        Raises:
            AddressRefusedError: an address of the target may not be called.
            BadRequestError: a text in the TLS settings is not what it should be.
            OSError: the name has no address.
        """
        key: _Key = (target.authority, target.tls, tuple(sorted((tls or {}).items())))
        place = self._places.get(key)
        if place is None:
            await self._make_room()
            place = self._places.setdefault(key, _Place())
        async with place.lock:
            lent = await self._current(place, target, tls or {})
            lent.users += 1
        try:
            yield lent.channel
        finally:
            lent.users -= 1
            lent.used_at = self._clock()
            if lent.retired and not lent.users:
                await lent.channel.close()

    async def close(self) -> None:
        """Close all channels; calls under way fail."""
        places, self._places = self._places, {}
        for place in places.values():
            if place.open is not None:
                await place.open.channel.close()
        if self._threads is not None:
            self._threads.shutdown(wait=False, cancel_futures=True)
            self._threads = None

    async def _current(self, place: _Place, target: GrpcTarget, tls: Mapping[str, Any]) -> _Open:
        """Return the place's channel, vetted a moment ago; a new one where the name means something else."""
        now = self._clock()
        known = place.open
        if known is not None and now < known.vetted_until:
            return known
        addresses = await self._vetted(target)
        # Equal sets keep the connection; one that only overlaps could be connected to what is gone.
        if known is not None and known.addresses == frozenset(addresses):
            known.vetted_until = self._clock() + VETTED_SECONDS
            return known
        channel = _channel(target, addresses, tls)
        now = self._clock()
        place.open = _Open(channel, frozenset(addresses), now + VETTED_SECONDS, now)
        if known is not None:
            await self._retire(known)
        return place.open

    async def _vetted(self, target: GrpcTarget) -> list[str]:
        """Return the target's addresses of one family, if every address of it may be called."""
        if target.is_address:
            self._guard.check(target.host, target.port)
            return [target.host]
        if self._lookup is None:
            self._threads = ThreadPoolExecutor(_DNS_THREADS, thread_name_prefix="dns-grpc")
            self._lookup = system_lookup(self._threads)
        found = await GuardedResolver(self._guard, self._lookup).resolve(target.host, target.port)
        # A channel takes one family; the system names first what it would connect to first.
        family = found[0]["family"]
        return [one["host"] for one in found if one["family"] == family]

    async def _make_room(self) -> None:
        """Forget places that nobody has used for a while, or the least used where there are too many."""
        now = self._clock()
        # A place without a channel is one that was refused: it goes first.
        free = [
            (place.open.used_at if place.open is not None else 0.0, key)
            for key, place in self._places.items()
            if not place.lock.locked() and (place.open is None or not place.open.users)
        ]
        idle = [key for used_at, key in free if now - used_at > IDLE_SECONDS]
        if not idle and len(self._places) >= _MOST_CHANNELS and free:
            idle = [min(free, key=lambda one: one[0])[1]]
        for key in idle:
            gone = self._places.pop(key).open
            if gone is not None:
                await self._retire(gone)

    async def _retire(self, gone: _Open) -> None:
        gone.retired = True
        if not gone.users:
            await gone.channel.close()


def _channel(target: GrpcTarget, addresses: Iterable[str], tls: Mapping[str, Any]) -> grpc.aio.Channel:
    where = _uri(addresses, target.port)
    server_name = tls.get("server_name")
    # gRPC wants `:authority` to be a name of the certificate too, so the job's name for it stands in both.
    authority = f"{server_name}:{target.port}" if server_name is not None else target.authority
    options: list[tuple[str, Any]] = [*_OPTIONS, ("grpc.default_authority", authority)]
    if not target.tls:
        return grpc.aio.insecure_channel(where, options=options)
    if server_name is not None:
        options.append(("grpc.ssl_target_name_override", server_name))
    return grpc.aio.secure_channel(where, _credentials(tls), options=options)


def _uri(addresses: Iterable[str], port: int) -> str:
    """Name addresses of one family so that gRPC resolves nothing."""
    parsed = [ip_address(address) for address in addresses]
    if parsed[0].version == 4:
        return "ipv4:" + ",".join(f"{address}:{port}" for address in parsed)
    return "ipv6:" + ",".join(f"[{address}]:{port}" for address in parsed)


def _credentials(tls: Mapping[str, Any]) -> grpc.ChannelCredentials:
    if tls:
        tls_context(tls)  # gRPC tells of a text that is no certificate at the handshake only, and not which
    ca, key, chain = (
        text.encode() if (text := tls.get(name)) is not None else None
        for name in ("ca", "client_key", "client_certificate")
    )
    return grpc.ssl_channel_credentials(ca or _system_roots(), key, chain)


@lru_cache(maxsize=1)
def _system_roots() -> bytes | None:
    """Read the system's authorities, as HTTP jobs trust them; None leaves gRPC its own list."""
    file = ssl.get_default_verify_paths().cafile
    return Path(file).read_bytes() if file else None
