"""The rules for requests of HTTP jobs: URL, method and headers.

One set of rules for intake and worker: the intake refuses a submission that breaks them, and the
worker checks again before it sends. Which addresses may be called is not decided here: that depends
on the worker's network, and on what a name resolves to at that moment.

URLs are parsed once, strictly; the request is built from the parsed parts, so that no second parser
can see another host in the same text.
"""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final, Literal, get_args
from urllib.parse import quote

Method = Literal["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"]
METHODS: Final[tuple[str, ...]] = get_args(Method)

MAX_URL_LENGTH: Final = 2048
MAX_HEADERS: Final = 50
MAX_HEADER_VALUE: Final = 8192
"""The most characters of one value: many servers reject longer lines."""
MAX_HEADER_BYTES: Final = 16 * 1024
"""Names and values of all headers together."""

HEADER_NAME: Final = r"^[!#$%&'*+.^_`|~0-9A-Za-z-]{1,200}$"
HEADER_VALUE: Final = r"^[\t\x20-\x7e]*$"
"""Patterns of JSON Schema; a header's value outside ASCII is read differently by every server."""

METADATA_NAMES: Final = frozenset({"metadata.google.internal", "metadata.goog", "instance-data.ec2.internal"})

# A job that set headers of the first kind could smuggle a second request into its own, one that set
# # those of the second could pretend to be another run.
_FRAMING: Final = frozenset(
    {
        *("connection", "content-length", "expect", "host", "keep-alive", "te", "trailer"),
        *("transfer-encoding", "upgrade"),
    }
)
_OURS: Final = frozenset({"idempotency-key", "user-agent"})
_RESERVED_PREFIXES: Final = ("noonmark-", "proxy-", "webhook-")

_URL: Final = re.compile(r"([A-Za-z][A-Za-z0-9+.-]*)://([^/?#]*)([^?#]*)(?:\?([^#]*))?(?:#.*)?", re.DOTALL)
_UNSAFE: Final = re.compile(r"[\x00-\x20\x7f-\xa0\\\u2028\u2029]")
_HOST_PORT: Final = re.compile(r"(\[[^\]]*\]|[^:\[\]]*)(?::([0-9]{1,5}))?")
_LABEL: Final = re.compile(r"[a-z0-9_](?:[a-z0-9_-]{0,61}[a-z0-9_])?")
_NUMBER: Final = re.compile(r"[0-9]+|0x[0-9a-f]*")
_DEFAULT_PORTS: Final = {"http": 80, "https": 443}
_PRINTABLE: Final = "".join(map(chr, range(0x21, 0x7F)))
_NAME: Final = re.compile(HEADER_NAME[1:-1])
_VALUE: Final = re.compile(HEADER_VALUE[1:-1])


class BadRequestError(ValueError):
    """The request of an HTTP job is not valid. Values are never quoted.

    Attributes:
        message: what is wrong and what to do; of a URL, without its subject.
        expected: what is allowed, if the field's general description does not say it.
    """

    def __init__(self, message: str, expected: str = "", *, subject: str = "") -> None:
        super().__init__(f"{subject} {message}" if subject else message)
        self.message = message
        self.expected = expected


def _bad_url(message: str, expected: str = "") -> BadRequestError:
    return BadRequestError(message, expected, subject="the url")


@dataclass(frozen=True, slots=True)
class Target:
    """A parsed URL.

    Attributes:
        scheme: http or https.
        host: lower case; an IPv6 address without brackets.
        port: always set.
        path: at least "/", percent-encoded.
        query: without the question mark, percent-encoded.
        is_address: the host is an IP address, so no name will be resolved.
    """

    scheme: str
    host: str
    port: int
    path: str
    query: str
    is_address: bool

    @property
    def url_host(self) -> str:
        """The host as a URL writes it: an IPv6 address in brackets."""
        return f"[{self.host}]" if ":" in self.host else self.host


def parse_url(url: object) -> Target:
    """Parse a URL strictly: refuse everything that two programs could read differently.

    Raises:
        BadRequestError: not an absolute http or https URL with a plain host.
    """
    if not isinstance(url, str):
        raise _bad_url(f"must be a string, not {type(url).__name__}")
    if len(url) > MAX_URL_LENGTH:
        raise _bad_url(f"is {len(url)} characters long; {MAX_URL_LENGTH} are allowed")
    if _UNSAFE.search(url):
        raise _bad_url("holds a space, a control character or a backslash; percent-encode it")
    match = _URL.fullmatch(url)
    if match is None or match[1].lower() not in _DEFAULT_PORTS:
        raise _bad_url("does not start with http:// or https://")
    scheme = match[1].lower()
    if "@" in match[2]:
        raise _bad_url("holds user information; send credentials in a header")
    place = _HOST_PORT.fullmatch(match[2])
    if place is None:
        raise _bad_url("is not a URL: its host and port cannot be read", "host or host:port after the scheme")
    port = int(place[2]) if place[2] else _DEFAULT_PORTS[scheme]
    if not 1 <= port <= 65535:
        raise _bad_url(f"is not a URL: port {port} does not exist; use 1 to 65535", "a port from 1 to 65535")
    host, is_address = _parse_host(place[1])
    path, query = (quote(part, safe=_PRINTABLE) for part in (match[3] or "/", match[4] or ""))
    return Target(scheme, host, port, path, query, is_address)


def _parse_host(text: str) -> tuple[str, bool]:
    if text.startswith("["):
        return _parse_ipv6(text[1:-1]), True
    if not text:
        raise _bad_url("has no host")
    if not text.isascii():
        raise _bad_url("has a host that is not ASCII; write an international name in its xn-- form")
    host = text.lower()
    labels = host.removesuffix(".").split(".")
    if _NUMBER.fullmatch(labels[-1]):
        # Resolvers read 127.1, 0177.0.0.1, 0x7f000001 and 2130706433 as 127.0.0.1.
        try:
            return str(ipaddress.IPv4Address(host)), True
        except ValueError:
            raise _bad_url(
                "has a number form of an address as its host; write four decimal numbers, as in 192.0.2.1",
                "an address as four decimal numbers from 0 to 255, or a host name",
            ) from None
    if len(host) > 253 or not all(map(_LABEL.fullmatch, labels)):
        raise _bad_url(
            "has an invalid host name",
            "labels of at most 63 letters, digits, - and _, joined by dots",
        )
    if host.removesuffix(".") in METADATA_NAMES:
        raise _bad_url("names a cloud's metadata service, which is never called", "the URL of another host")
    return host, False


def _parse_ipv6(text: str) -> str:
    try:
        # A zone id names an interface of the worker's machine; no URL of a job needs one.
        return str(ipaddress.IPv6Address(text.replace("%", "/")))
    except ValueError:
        raise _bad_url(
            "has a host in brackets that is not an IPv6 address, or that has a zone id",
            "an IPv6 address without a zone id, as in [2001:db8::1]",
        ) from None


def check_method(method: object) -> str:
    """Return the method in upper case.

    Raises:
        BadRequestError: it is not one of `METHODS`, in any case.
    """
    if not isinstance(method, str) or method.upper() not in METHODS:
        raise BadRequestError(f"method {method!r} is not supported; use one of {', '.join(METHODS)}")
    return method.upper()


def check_headers(headers: object) -> dict[str, str]:
    """Return a copy of a job's headers if all may be sent.

    Raises:
        BadRequestError: naming the header; its value, which may be a secret, is not shown.
    """
    if not isinstance(headers, Mapping):
        raise BadRequestError("headers must be an object of names and values")
    if not headers:
        return {}
    if len(headers) > MAX_HEADERS:
        raise BadRequestError(f"{len(headers)} headers are too many; {MAX_HEADERS} are allowed")
    checked: dict[str, str] = {}
    seen: set[str] = set()
    for name, value in headers.items():
        _check_name(name)
        if name.lower() in seen:
            raise BadRequestError(f"header {name!r} is given twice", "names that differ in more than case")
        _check_value(name, value)
        seen.add(name.lower())
        checked[name] = value
    if sum(len(name) + len(value) for name, value in checked.items()) > MAX_HEADER_BYTES:
        raise BadRequestError(
            f"the headers are longer than {MAX_HEADER_BYTES} bytes",
            f"names and values of at most {MAX_HEADER_BYTES} bytes together",
        )
    for name, value in checked.items():
        if len(value) > MAX_HEADER_VALUE:
            raise BadRequestError(f"the value of header {name} is longer than {MAX_HEADER_VALUE} bytes")
    return checked


def _check_name(name: object) -> None:
    if not isinstance(name, str) or _NAME.fullmatch(name) is None:
        raise BadRequestError(
            f"header name {name!r} holds a character that is not allowed in one or has not 1 to 200 of them"
        )
    lower = name.lower()
    if lower in _FRAMING or lower in _OURS or lower.startswith(_RESERVED_PREFIXES):
        raise BadRequestError(
            f"header {name} is set by noonmark and cannot be given",
            "a header that neither frames the request nor names its run "
            "(not User-Agent, Idempotency-Key, Noonmark-…, Webhook-…)",
        )


def _check_value(name: str, value: object) -> None:
    if not isinstance(value, str):
        raise BadRequestError(f"the value of header {name} must be a string")
    if _VALUE.fullmatch(value) is None:
        raise BadRequestError(
            f"the value of header {name} holds a line break, another control character or non-ASCII text"
        )
