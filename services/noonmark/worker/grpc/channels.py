"""Connections of gRPC jobs: each connects only to addresses that the guard has checked.

By default, gRPC resolves names itself, uses proxies of the environment, and reads a service configuration
from DNS. Here it does none of that: a channel gets checked addresses, and the name only for TLS and
`:authority`.
"""

from __future__ import annotations

import asyncio
import ssl
import time
from collections.abc import AsyncIterator, Callable, Iterable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from functools import lru_cache
from ipaddress import ip_address
from pathlib import Path
from typing import Any, Final

import grpc
import grpc.aio

from noonmark.core.kinds.grpc_call import GrpcTarget
from noonmark.worker.http.address_guard import Guard
from noonmark.worker.http.client import GuardedResolver, Lookup
from noonmark.worker.http.name_lookup import NameLookup
from noonmark.worker.http.tls import tls_context

MAX_ANSWER_BYTES: Final = 4 * 1024 * 1024
MAX_REQUEST_BYTES: Final = 4 * 1024 * 1024

VETTED_SECONDS: Final = 10.0
"""The checked addresses of a name are used for this time before the name is resolved again."""

IDLE_SECONDS: Final = 120.0
_MOST_CHANNELS: Final = 256

_OPTIONS: Final = (
    ("grpc.enable_http_proxy", 0),
    # The library must not retry: that would be two calls under one fence.
    ("grpc.enable_retries", 0),
    ("grpc.service_config_disable_resolution", 1),
    # Connections are not shared with names that were not checked together with this one.
    ("grpc.use_local_subchannel_pool", 1),
    ("grpc.max_receive_message_length", MAX_ANSWER_BYTES),
    ("grpc.max_send_message_length", MAX_REQUEST_BYTES),
    ("grpc.max_metadata_size", 16 * 1024),
    ("grpc.absolute_max_metadata_size", 32 * 1024),
    ("grpc.client_idle_timeout_ms", round(IDLE_SECONDS * 1000)),
    # The next attempt must find out whether a server is back, so the reconnect delay must stay short.
    ("grpc.max_reconnect_backoff_ms", 1000),
    ("grpc.initial_reconnect_backoff_ms", 100),
    ("grpc.min_reconnect_backoff_ms", 5000),
)

_Key = tuple[str, bool, tuple[tuple[str, Any], ...]]


@dataclass(slots=True, eq=False)
class _Open:
    """A channel, the addresses it can connect to, and its number of users."""

    channel: grpc.aio.Channel
    addresses: frozenset[str]
    vetted_until: float
    used_at: float
    users: int = 0
    retired: bool = False


@dataclass(slots=True, eq=False)
class _TargetChannel:
    """The channel of a target, if it has one, and the task that resolves its name for all who wait."""

    open: _Open | None = None
    opening: asyncio.Task[_Open] | None = None

    def opened(self, task: asyncio.Task[_Open]) -> None:
        """Record that the name is resolved, or cannot be."""
        self.opening = None
        if not task.cancelled():
            task.exception()  # if all callers have given up, it is read nowhere else


class GrpcChannels:
    """Keeps channels by target and TLS settings. Belongs to one event loop.

    Args:
        allow_networks: CIDR blocks that may be called although they are not public.
        lookup: resolves names; the system's resolver by default.
        clock: returns the monotonic time in seconds.

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
        self._names = NameLookup()
        self._lookup = lookup or self._names
        self._clock = clock
        self._targets: dict[_Key, _TargetChannel] = {}

    @asynccontextmanager
    async def use(
        self, target: GrpcTarget, tls: Mapping[str, Any] | None, *, fresh: bool = False
    ) -> AsyncIterator[grpc.aio.Channel]:
        """Provide a channel to the checked addresses of a target.

        Args:
            target: the parsed target.
            tls: the job's TLS settings with their references resolved.
            fresh: open a new channel, and close it afterwards: the connection of a kept one may be closed
                already at the other end.

        Raises:
            AddressRefusedError: an address of the target may not be called.
            BadRequestError: a text in the TLS settings is not valid.
            OSError: the name has no address.
        """
        if fresh:
            channel = _channel(target, await self._vetted(target), tls or {})
            try:
                yield channel
            finally:
                await channel.close()
            return
        async with self._kept(target, tls or {}) as channel:
            yield channel

    @asynccontextmanager
    async def _kept(self, target: GrpcTarget, tls: Mapping[str, Any]) -> AsyncIterator[grpc.aio.Channel]:
        key: _Key = (target.authority, target.tls, tuple(sorted(tls.items())))
        cached = self._targets.get(key)
        if cached is None:
            await self._evict_idle()
            cached = self._targets.setdefault(key, _TargetChannel())
        channel = await self._current(cached, target, tls)
        channel.users += 1
        try:
            yield channel.channel
        finally:
            channel.users -= 1
            channel.used_at = self._clock()
            if channel.retired and not channel.users:
                await channel.channel.close()

    async def close(self) -> None:
        """Close all channels; calls in flight fail."""
        targets, self._targets = self._targets, {}
        for cached in targets.values():
            if cached.opening is not None:
                cached.opening.cancel()
            if cached.open is not None:
                await cached.open.channel.close()
        self._names.close()

    async def _current(self, cached: _TargetChannel, target: GrpcTarget, tls: Mapping[str, Any]) -> _Open:
        """Return the channel of a target, recently checked; a new one if its addresses have changed.

        The name is resolved once for all who wait. One after the other, the last of them would wait as many
        times as long for a name that no server answers.
        """
        while True:
            known = cached.open
            if known is not None and self._clock() < known.vetted_until:
                return known
            if cached.opening is None:
                cached.opening = asyncio.create_task(self._reopen(cached, target, tls))
                cached.opening.add_done_callback(cached.opened)
            channel = await asyncio.shield(cached.opening)
            if not channel.retired:
                return channel

    async def _reopen(self, cached: _TargetChannel, target: GrpcTarget, tls: Mapping[str, Any]) -> _Open:
        known = cached.open
        addresses = await self._vetted(target)
        # The same addresses keep the connection; otherwise it could lead to an address that is gone.
        if known is not None and known.addresses == frozenset(addresses):
            known.vetted_until = self._clock() + VETTED_SECONDS
            return known
        channel = _channel(target, addresses, tls)
        now = self._clock()
        cached.open = _Open(channel, frozenset(addresses), now + VETTED_SECONDS, now)
        if known is not None:
            await self._retire(known)
        return cached.open

    async def _vetted(self, target: GrpcTarget) -> list[str]:
        """Return the addresses of one family of the target, if all its addresses may be called."""
        if target.is_address:
            self._guard.check(target.host, target.port)
            return [target.host]
        found = await GuardedResolver(self._guard, self._lookup).resolve(target.host, target.port)
        # A channel takes one family: that of the address that the system prefers.
        family = found[0]["family"]
        return [one["host"] for one in found if one["family"] == family]

    async def _evict_idle(self) -> None:
        """Evict targets that were not used for a while, or the least recently used one of too many."""
        now = self._clock()
        # A target without a channel was refused: evict it first.
        free = [
            (cached.open.used_at if cached.open is not None else 0.0, key)
            for key, cached in self._targets.items()
            if cached.opening is None and (cached.open is None or not cached.open.users)
        ]
        idle = [key for used_at, key in free if now - used_at > IDLE_SECONDS]
        if not idle and len(self._targets) >= _MOST_CHANNELS and free:
            idle = [min(free, key=lambda one: one[0])[1]]
        for key in idle:
            gone = self._targets.pop(key).open
            if gone is not None:
                await self._retire(gone)

    async def _retire(self, gone: _Open) -> None:
        gone.retired = True
        if not gone.users:
            await gone.channel.close()


def _channel(target: GrpcTarget, addresses: Iterable[str], tls: Mapping[str, Any]) -> grpc.aio.Channel:
    where = _uri(addresses, target.port)
    server_name = tls.get("server_name")
    # gRPC requires `:authority` to be a name of the certificate, too, so the job's name is used for both.
    authority = f"{server_name}:{target.port}" if server_name is not None else target.authority
    options: list[tuple[str, Any]] = [*_OPTIONS, ("grpc.default_authority", authority)]
    if not target.tls:
        return grpc.aio.insecure_channel(where, options=options)
    if server_name is not None:
        options.append(("grpc.ssl_target_name_override", server_name))
    return grpc.aio.secure_channel(where, _credentials(tls), options=options)


def _uri(addresses: Iterable[str], port: int) -> str:
    """Format addresses of one family so that gRPC resolves nothing."""
    parsed = [ip_address(address) for address in addresses]
    if parsed[0].version == 4:
        return "ipv4:" + ",".join(f"{address}:{port}" for address in parsed)
    return "ipv6:" + ",".join(f"[{address}]:{port}" for address in parsed)


def _credentials(tls: Mapping[str, Any]) -> grpc.ChannelCredentials:
    if tls:
        tls_context(tls)  # gRPC would report an invalid certificate only at the handshake, and not which one
    ca, key, chain = (
        text.encode() if (text := tls.get(name)) is not None else None
        for name in ("ca", "client_key", "client_certificate")
    )
    return grpc.ssl_channel_credentials(ca or _system_roots(), key, chain)


@lru_cache(maxsize=1)
def _system_roots() -> bytes | None:
    """Read the certificate authorities of the system, as for HTTP jobs; None uses the list of gRPC."""
    file = ssl.get_default_verify_paths().cafile
    return Path(file).read_bytes() if file else None
