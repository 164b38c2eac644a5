"""The addresses that jobs may call: by default only the public internet.

A name is checked by every address that it resolves to, at connect time, because its addresses can change
between a check and a use. `noonmark.core.kinds.http_request` defines valid URLs.

The table is explicit because `ipaddress.is_global` alone is not enough: it treats 6to4 and NAT64 forms of
loopback, site-local IPv6 and the 6to4 relay as public. Both are checked.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Iterable, Sequence
from functools import lru_cache
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network
from typing import Final

Address = IPv4Address | IPv6Address
Network = IPv4Network | IPv6Network

PUBLIC_PORTS: Final = frozenset({80, 443, 8080, 8443})
"""Ports that may be called outside the allowed networks."""

REFUSED: Final[tuple[tuple[Network, str], ...]] = tuple(
    (ipaddress.ip_network(network), what)
    for network, what in (
        ("0.0.0.0/8", "this network"),
        ("10.0.0.0/8", "private"),
        ("100.64.0.0/10", "carrier-grade NAT"),
        ("127.0.0.0/8", "loopback"),
        ("169.254.0.0/16", "link-local"),
        ("172.16.0.0/12", "private"),
        ("192.0.0.0/24", "protocol assignments"),
        ("192.0.2.0/24", "documentation"),
        ("192.88.99.0/24", "6to4 relay"),
        ("192.168.0.0/16", "private"),
        ("198.18.0.0/15", "benchmarking"),
        ("198.51.100.0/24", "documentation"),
        ("203.0.113.0/24", "documentation"),
        ("224.0.0.0/4", "multicast"),
        ("255.255.255.255/32", "broadcast"),
        ("240.0.0.0/4", "reserved"),
        ("::/128", "unspecified"),
        ("::1/128", "loopback"),
        ("::/96", "IPv4-compatible"),
        ("64:ff9b::/96", "NAT64"),
        ("64:ff9b:1::/48", "local NAT64"),
        ("100::/64", "discard"),
        ("100:0:0:1::/64", "dummy prefix"),
        ("2001::/32", "Teredo"),
        ("2001:db8::/32", "documentation"),
        ("2001::/23", "protocol assignments"),
        ("2002::/16", "6to4"),
        ("3fff::/20", "documentation"),
        ("5f00::/16", "segment routing"),
        ("fc00::/7", "unique local"),
        ("fe80::/10", "link-local"),
        ("fec0::/10", "site-local"),
        ("ff00::/8", "multicast"),
    )
)

METADATA: Final[dict[Address, str]] = {
    ipaddress.ip_address(address): f"metadata service of {cloud}"
    for address, cloud in (
        ("169.254.169.254", "most clouds"),
        ("169.254.169.253", "AWS (resolver)"),
        ("169.254.170.2", "AWS ECS"),
        ("169.254.170.23", "AWS EKS"),
        ("fd00:ec2::254", "AWS"),
        ("fd00:ec2::23", "AWS EKS"),
        ("fd20:ce::254", "Google Cloud"),
        ("100.100.100.200", "Alibaba Cloud"),
        ("168.63.129.16", "Azure"),
        ("192.0.0.192", "Oracle Cloud"),
    )
}
"""Addresses that give out credentials. Allowing a network around one does not allow it."""

_GLOBAL_UNICAST: Final = IPv6Network("2000::/3")
_NAT64: Final = IPv6Network("64:ff9b::/96")
_6TO4: Final = IPv6Network("2002::/16")


class AddressRefusedError(OSError):
    """The guard does not allow this address. An OSError, so that HTTP clients pass it on."""


class NetworkListError(ValueError):
    """An allowed network is not written as a CIDR block."""


def parse_networks(networks: Iterable[str]) -> tuple[Network, ...]:
    """Read CIDR blocks, or single addresses.

    Raises:
        NetworkListError: one of them is neither, or has bits set below its prefix.
    """
    parsed = []
    for text in networks:
        try:
            parsed.append(ipaddress.ip_network(text.strip()))
        except ValueError as error:
            raise NetworkListError(
                f"{text!r} in NOONMARK_HTTP_ALLOW_NETWORKS is not a network ({error}); "
                "write for example 10.20.0.0/16"
            ) from error
    return tuple(parsed)


def vet(address: str | Address, allowed: Sequence[Network] = ()) -> str | None:
    """Return why an address may not be called, or None if it may.

    IPv4 addresses inside IPv6 addresses are checked, too: mapped ones (`::ffff:a.b.c.d`) instead of the whole
    address; NAT64 and 6to4 addresses are refused by default, and if their prefix is allowed, the IPv4 address
    inside must be allowed as well.

    Args:
        address: as text or parsed.
        allowed: networks that the operator allows.
    """
    try:
        parsed = ipaddress.ip_address(address)
    except ValueError:
        return f"{address!r} is not an IP address"
    if isinstance(parsed, IPv6Address):
        if parsed.scope_id is not None:
            return f"{parsed} has a zone id"
        if parsed.ipv4_mapped is not None:
            reason = vet(parsed.ipv4_mapped, allowed)
            return reason and f"{parsed} stands for {parsed.ipv4_mapped}: {reason}"
    if parsed in METADATA and not any(parsed in net and net.num_addresses == 1 for net in allowed):
        return f"{parsed} is the {METADATA[parsed]}"
    inner = _wrapped(parsed)
    if any(parsed in net for net in allowed):
        reason = vet(inner, allowed) if inner is not None else None
        return reason and f"{parsed} leads to {inner}: {reason}"
    return _refusal(parsed, inner)


def _wrapped(address: Address) -> IPv4Address | None:
    if isinstance(address, IPv4Address):
        return None
    if address in _NAT64:
        return IPv4Address(int(address) & 0xFFFFFFFF)
    return address.sixtofour if address in _6TO4 else None


def _refusal(address: Address, inner: IPv4Address | None) -> str | None:
    for network, what in REFUSED:
        if address in network:
            leads = f", leading to {inner}" if inner else ""
            return f"{address} is not public ({what}, {network}{leads})"
    if isinstance(address, IPv6Address) and address not in _GLOBAL_UNICAST:
        return f"{address} is not public (outside global unicast, {_GLOBAL_UNICAST})"
    if not address.is_global:
        return f"{address} is not public"
    return None


class Guard:
    """The rules of the operator for outbound calls.

    Args:
        allow_networks: CIDR blocks that may be called on any port although they are not public.

    Raises:
        NetworkListError: a block cannot be read.
    """

    def __init__(self, allow_networks: Iterable[str] = ()) -> None:
        self.allowed = parse_networks(allow_networks)
        self._refusal = lru_cache(maxsize=4096)(self._judge)

    def refusal(self, address: str, port: int) -> str | None:
        """Return why this address and port may not be connected to, or None if they may."""
        return self._refusal(address, port)

    def _judge(self, address: str, port: int) -> str | None:
        reason = vet(address, self.allowed)
        if reason is not None and "is not public" in reason:
            return f"{reason}, and not in NOONMARK_HTTP_ALLOW_NETWORKS of this worker"
        if reason is not None or port in PUBLIC_PORTS:
            return reason
        parsed = ipaddress.ip_address(address)
        inside = getattr(parsed, "ipv4_mapped", None) or parsed
        if any(inside in net for net in self.allowed):
            return None
        ports = ", ".join(map(str, sorted(PUBLIC_PORTS)))
        return (
            f"port {port} may not be called on {address}, which is not in an allowed network; "
            f"allowed ports are {ports}"
        )

    def check(self, address: str, port: int) -> None:
        """Raise `AddressRefusedError` if this address and port may not be connected to."""
        reason = self.refusal(address, port)
        if reason is not None:
            raise AddressRefusedError(reason)
