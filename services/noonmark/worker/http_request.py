"""What an HTTP job may ask to send, checked field by field."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

import orjson

METHODS: Final = ("GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS")
MAX_HEADERS: Final = 64
MAX_HEADER_BYTES: Final = 16 * 1024

_FIELDS: Final = frozenset({"url", "method", "headers", "body", "expected_status"})
_TOKEN: Final = re.compile(r"[A-Za-z0-9!#$%&'*+.^_`|~-]+")
_VALUE: Final = re.compile(r"[\t\x20-\x7e]*")
_RESERVED: Final = frozenset(
    {
        *("connection", "content-length", "expect", "host", "keep-alive", "te", "trailer", "upgrade"),
        *("transfer-encoding", "user-agent", "idempotency-key", "webhook-id"),
    }
)
_RESERVED_PREFIXES: Final = ("proxy-", "noonmark-")
_STATUS_RANGE: Final = re.compile(r"([1-5][0-9]{2})-([1-5][0-9]{2})")
_STATUS_CLASS: Final = re.compile(r"([1-5])xx", re.IGNORECASE)


class BadRequestError(ValueError):
    """The spec of an HTTP job cannot be sent; the message says which field and what would be right."""


@dataclass(frozen=True, slots=True)
class Request:
    """A request ready to be sent, its URL apart.

    Attributes:
        method: upper case.
        headers: the job's and our own.
        body: None sends none.
        expected: inclusive ranges of status codes.
    """

    method: str
    headers: Mapping[str, str]
    body: bytes | None
    expected: tuple[tuple[int, int], ...]

    def expects(self, status: int) -> bool:
        """Tell whether the status is one that the job calls a success."""
        return any(low <= status <= high for low, high in self.expected)

    @property
    def expected_text(self) -> str:
        """The expected codes in words."""
        return " or ".join(str(low) if low == high else f"{low} to {high}" for low, high in self.expected)


def prepare(spec: Mapping[str, Any], own_headers: Mapping[str, str]) -> Request:
    """Check a job's payload and make the request of it.

    A body that is a string is sent as it stands (text/plain unless the headers say otherwise);
    any other body is sent as JSON.

    Args:
        spec: the payload; its `url` is not looked at.
        own_headers: added to those of the job, which cannot override them.

    Raises:
        BadRequestError: naming the field.
    """
    unknown = sorted(map(str, spec.keys() - _FIELDS))
    if unknown:
        raise BadRequestError(
            f"unknown field {', '.join(unknown)}; an HTTP job has url, method, headers, body, expected_status"
        )
    method = spec.get("method") or "POST"
    if not isinstance(method, str) or method.upper() not in METHODS:
        raise BadRequestError(f"method {method!r} is not possible; use one of {', '.join(METHODS)}")
    headers = _checked_headers(spec.get("headers") or {})
    named = {name.lower() for name in headers}
    body, content_type = _encoded(spec.get("body"))
    if body is not None and "content-type" not in named:
        headers["Content-Type"] = content_type
    if "accept-encoding" not in named:
        # A short excerpt is kept of the answer; packing it would cost both sides more than it saves.
        headers["Accept-Encoding"] = "identity"
    headers.update(own_headers)
    return Request(method.upper(), headers, body, _expected(spec.get("expected_status")))


def _checked_headers(headers: object) -> dict[str, str]:
    if not isinstance(headers, Mapping):
        raise BadRequestError("headers must be an object of names and values")
    if len(headers) > MAX_HEADERS:
        raise BadRequestError(f"{len(headers)} headers are too many; {MAX_HEADERS} are allowed")
    checked: dict[str, str] = {}
    for name, value in headers.items():
        if not isinstance(name, str) or _TOKEN.fullmatch(name) is None:
            raise BadRequestError(f"header name {name!r} holds a character that is not allowed in one")
        # The value is not shown: it may be a secret.
        if not isinstance(value, str):
            raise BadRequestError(f"the value of header {name} must be a string")
        if _VALUE.fullmatch(value) is None:
            raise BadRequestError(
                f"the value of header {name} holds a line break, another control character or non-ASCII text"
            )
        if name.lower() in _RESERVED or name.lower().startswith(_RESERVED_PREFIXES):
            raise BadRequestError(f"header {name} is set by noonmark and cannot be given")
        checked[name] = value
    if sum(len(name) + len(value) for name, value in checked.items()) > MAX_HEADER_BYTES:
        raise BadRequestError(f"the headers are longer than {MAX_HEADER_BYTES} bytes")
    return checked


def _encoded(body: object) -> tuple[bytes | None, str]:
    if body is None:
        return None, ""
    if isinstance(body, str):
        try:
            return body.encode(), "text/plain; charset=utf-8"
        except UnicodeEncodeError:
            raise BadRequestError("the body holds half a surrogate pair, which is no text") from None
    try:
        return orjson.dumps(body), "application/json"
    except TypeError as error:
        raise BadRequestError(f"the body is not JSON: {error}") from error


def _expected(value: object) -> tuple[tuple[int, int], ...]:
    if value is None:
        return ((200, 299),)
    items = value if isinstance(value, list | tuple) else [value]
    if not items:
        raise BadRequestError("expected_status is an empty list; leave it out for 200 to 299")
    return tuple(map(_status_range, items))


def _status_range(item: object) -> tuple[int, int]:
    if isinstance(item, int) and not isinstance(item, bool) and 100 <= item <= 599:
        return item, item
    if isinstance(item, str):
        if match := _STATUS_CLASS.fullmatch(item):
            return int(match[1]) * 100, int(match[1]) * 100 + 99
        if (match := _STATUS_RANGE.fullmatch(item)) and match[1] <= match[2]:
            return int(match[1]), int(match[2])
    raise BadRequestError(
        f'expected_status {item!r} is not possible; use 204, "2xx", "200-299" or a list of these'
    )
