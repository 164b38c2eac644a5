"""The outbound guard as a table: hundreds of ways to write or resolve a place that must not be called.

Every row is a request through the executor itself, with a resolver that answers as the row says. Nothing may
be sent: a socket that is opened at all fails the test.
"""

from __future__ import annotations

import asyncio
import ipaddress
import uuid
from datetime import UTC, datetime

import pytest
import uvloop

from noonmark.core.kinds.http_request import METADATA_NAMES
from noonmark.handlers import Context
from noonmark.worker.http.address_guard import METADATA
from noonmark.worker.http.client import HttpExecutor

PUBLIC_4, PUBLIC_6 = "93.184.216.34", "2606:4700:4700::1111"

# Kept apart from the guard's own table: what is refused by default, by its standards.
FORBIDDEN_4 = (
    *("0.0.0.0", "0.255.255.255", "10.0.0.0", "10.255.255.255", "100.64.0.0", "100.127.255.255", "127.0.0.1"),
    *("127.0.0.2", "127.255.255.255", "169.254.0.1", "169.254.169.254", "169.254.170.2", "169.254.255.255"),
    *("172.16.0.0", "172.31.255.255", "192.0.0.1", "192.0.0.192", "192.0.2.1", "192.88.99.1", "192.168.0.1"),
    *("192.168.255.255", "198.18.0.1", "198.19.255.255", "198.51.100.1", "203.0.113.1", "224.0.0.1"),
    *("239.255.255.255", "240.0.0.1", "255.255.255.254", "255.255.255.255", "168.63.129.16"),
    "100.100.100.200",
)
FORBIDDEN_6 = (
    *(
        "::",
        "::1",
        "100::1",
        "100:0:0:1::1",
        "2001::1",
        "2001:db8::1",
        "2001:2::1",
        "2001:10::1",
        "2001:20::1",
    ),
    *("3fff::1", "5f00::1", "fc00::1", "fd00::1", "fd00:ec2::254", "fd20:ce::254", "fe80::1", "febf::1"),
    *("fec0::1", "feff::1", "ff02::1", "ff0e::1", "4000::1", "8000::1", "1::1", "64:ff9b:1::1"),
    *("::ffff:0:7f00:1", "::7f00:1"),
)


def mapped(address: str) -> str:
    return f"::ffff:{address}"


def wrapped(address: str) -> list[str]:
    """Forms of an IPv4 address inside IPv6 that some network may translate back."""
    number = int(ipaddress.IPv4Address(address))
    made = (
        0xFFFF << 32 | number,  # mapped
        number,  # compatible
        0xFFFF << 48 | number,  # translated (SIIT)
        0x64FF9B << 96 | number,  # NAT64
        0x64FF9B0001 << 80 | number,  # NAT64 of a local prefix
        0x2002 << 112 | number << 80 | 1,  # 6to4
        0x20010000 << 96 | number << 64 | (number ^ 0xFFFFFFFF),  # Teredo: server, and client inverted
    )
    return [str(ipaddress.IPv6Address(one)) for one in made]


INSIDE = tuple(form for address in FORBIDDEN_4 for form in wrapped(address))
RESOLVED = (*FORBIDDEN_4, *FORBIDDEN_6, *INSIDE, *map(str, METADATA), "fe80::1%eth0", "fe80::1%1")

NUMBER_HOSTS = (
    *("2130706433", "0x7f000001", "0X7F000001", "017700000001", "127.1", "127.0.1", "0177.0.0.1", "0x7f.1"),
    *(
        "0x7f.0.0.1",
        "127.0.0.01",
        "127.0.0.0x1",
        "127.0.0.1.",
        "00.00.00.00",
        "0",
        "1",
        "010.0.0.1",
        "3232235521",
    ),
    *("169.254.43518", "0xa9fea9fe", "2852039166", "0251.0376.0251.0376", "256.1.1.1", "1.2.3", "1.2.3.4.5"),
    *("127.0.0.1.1", "99999999999999999999", "0x", "a.0x7f000001", "example.com.127"),
)
ODD_HOSTS = (
    *("user@127.0.0.1", "example.com@127.0.0.1", "127.0.0.1:80@example.com", "127.0.0.1%00.example.com"),
    *(
        "127.0.0.1\\@example.com",
        "example.com\\.evil",
        "①②⑦.⓪.⓪.①",
        "127。0。0。1",
        "loc\u00adalhost",
        "ⓛocalhost",
    ),
    *(
        "[::1",
        "::1",
        "[::1]x",
        "[::1%25lo]",
        "[::1%lo]",
        "[fe80::1%25eth0]",
        "[v1.fe80::a]",
        "[127.0.0.1]",
        "[]",
    ),
    *("", ".", "..", "-", "a..b", ".example.com", "exa mple.com", "example.com\r\nX: y", "example.com\tx"),
    *("example.com:0", "example.com:65536", "example.com:99999", "example.com:80:80", "example.com:+80"),
    *("example.com:8O", "example.com:-1", "*.example.com", "example.com,127.0.0.1", "a" * 64 + ".com"),
    *("%31%32%37.0.0.1", "127.0.0.1#@example.com", "127.0.0.1?@example.com", *sorted(METADATA_NAMES)),
    *("METADATA.google.INTERNAL", "metadata.google.internal."),
)
SCHEMES = (
    *("file:///etc/passwd", "ftp://example.com/", "gopher://127.0.0.1:6379/_x", "dict://127.0.0.1:11211/"),
    *(
        "ldap://127.0.0.1/",
        "jar:http://127.0.0.1!/",
        "data:text/plain,x",
        "javascript:alert(1)",
        "ws://example.com/",
    ),
    *(
        "//example.com/",
        "/path",
        "example.com",
        "http:example.com",
        "http:/example.com",
        "http:///example.com",
    ),
    *("unix:///var/run/docker.sock", "http+unix://x/", " http://example.com/", "http://example.com/\x00"),
)
PORTS = (1, 22, 25, 53, 111, 139, 445, 2375, 3306, 5432, 6379, 8081, 9092, 9200, 10250, 11211, 27017, 65535)

LITERALS = tuple(
    f"[{address}]" if ":" in address else address for address in (*FORBIDDEN_4, *FORBIDDEN_6, *INSIDE)
)


class Sentinel:
    """A resolver for the rows, and a guard against packets."""

    def __init__(self, *answers: list[str]) -> None:
        self.answers = list(answers)
        self.asked = 0

    async def __call__(self, host: str) -> list[str]:
        del host
        self.asked += 1
        return self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]


@pytest.fixture(autouse=True)
def no_packets(monkeypatch):
    """No socket may be made: not even an attempt to connect leaves the process."""
    opened = []

    def refuse(self, info):
        self._guard.check(info[4][0], info[4][1])
        opened.append(info)
        raise AssertionError(f"a socket was opened for {info[4]}")

    monkeypatch.setattr(HttpExecutor, "_vetted_socket", refuse)
    yield
    assert opened == []


CONTEXT = Context(
    run_id=uuid.UUID(int=1),
    job_id=uuid.UUID(int=2),
    namespace="default",
    attempt=1,
    scheduled_for=datetime(2026, 6, 1, 9, tzinfo=UTC),
    fence=1,
)


def call(*rows):
    """Send each (url, resolver) once; return the results in their order."""

    async def one(url, resolver):
        async with HttpExecutor(lookup=resolver, dns_cache_seconds=0) as executor:
            return await executor.execute({"url": url, "method": "GET"}, CONTEXT, 5)

    async def every():
        return await asyncio.gather(*(one(*row) for row in rows))

    return uvloop.run(every())


def unrefused(rows):
    return [
        (url, result.error)
        for (url, _), result in zip(rows, call(*rows), strict=True)
        if not result.refused or result.sent
    ]


def test_the_table_is_as_large_as_it_says():
    forms = {*RESOLVED, *LITERALS, *NUMBER_HOSTS, *ODD_HOSTS, *SCHEMES, *PORTS}

    assert len(forms) > 600


def test_no_name_that_resolves_to_a_forbidden_address_is_called():
    assert unrefused([("http://target.example/", Sentinel([address])) for address in RESOLVED]) == []


def test_no_name_that_has_a_public_address_beside_a_forbidden_one_is_called():
    rows = [
        ("https://target.example/", Sentinel(answer))
        for address in RESOLVED
        for answer in ([PUBLIC_4, address], [address, PUBLIC_6], [PUBLIC_6, PUBLIC_4, address])
    ]

    assert unrefused(rows) == []


def test_no_forbidden_address_is_called_by_its_number():
    resolver = Sentinel([PUBLIC_4])

    assert unrefused([(f"http://{literal}/", resolver) for literal in LITERALS]) == []
    assert resolver.asked == 0


@pytest.mark.parametrize("hosts", [NUMBER_HOSTS, ODD_HOSTS], ids=["numbers", "odd"])
def test_hosts_that_two_programs_read_in_two_ways_are_not_even_resolved(hosts):
    resolver = Sentinel([PUBLIC_4])

    assert unrefused([(f"http://{host}/", resolver) for host in hosts]) == []
    assert resolver.asked == 0


def test_only_http_and_https_are_spoken():
    resolver = Sentinel([PUBLIC_4])

    assert unrefused([(url, resolver) for url in SCHEMES]) == []
    assert resolver.asked == 0


@pytest.mark.parametrize("host", [PUBLIC_4, f"[{PUBLIC_6}]", "target.example"])
def test_only_web_ports_are_called(host):
    rows = [(f"http://{host}:{port}/", Sentinel([PUBLIC_4])) for port in PORTS]

    assert unrefused(rows) == []


def test_a_name_is_judged_by_what_it_means_now():
    """The first answer was public; each later call resolves anew and is refused."""
    rebound = Sentinel([PUBLIC_4], ["127.0.0.1"])
    asyncio.run(rebound("target.example"))

    assert unrefused([("http://target.example/", rebound)] * 3) == []
