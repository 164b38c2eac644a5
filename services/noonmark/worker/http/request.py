"""The request of an HTTP job, built from its payload after all fields are checked."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import lru_cache
from typing import Any, Final

import orjson

from noonmark.core.kinds.http_request import BadRequestError, check_headers, check_method
from noonmark.core.kinds.http_response import Condition, parse_conditions

_FIELDS: Final = (
    *("url", "method", "headers", "body", "expected_status", "success", "keep_body", "tls", "callback"),
)
_KNOWN: Final = frozenset(_FIELDS)
_USUAL: Final = ["200-299"]
_WITHOUT_BODY: Final = frozenset({"GET", "HEAD", "OPTIONS"})
_WITH_BODY: Final = frozenset({"POST", "PUT", "PATCH"})
_STATUS_RANGE: Final = re.compile(r"([1-5][0-9]{2})-([1-5][0-9]{2})")
_STATUS_CLASS: Final = re.compile(r"([1-5])xx", re.IGNORECASE)


@dataclass(slots=True)
class Request:
    """A request ready to be sent, without its URL.

    Attributes:
        method: upper case.
        headers: those of the job and our own.
        defaults: the lines of headers that clients send and this job does not set.
        body: the bytes to send; None sends no body.
        expected: inclusive ranges of status codes.
        conditions: what the JSON of the response must contain.
        keep_body: whether the run's result contains the body of the response.
        callback: whether 202 means that the target reports the result later.
    """

    method: str
    headers: Mapping[str, str]
    defaults: str
    body: bytes | None
    expected: tuple[tuple[int, int], ...]
    conditions: tuple[Condition, ...] = ()
    keep_body: bool = False
    callback: bool = False

    def expects(self, status: int) -> bool:
        """Return whether the job defines this status as a success."""
        return any(low <= status <= high for low, high in self.expected)

    @property
    def expected_text(self) -> str:
        """The expected codes as text."""
        return " or ".join(str(low) if low == high else f"{low} to {high}" for low, high in self.expected)


@lru_cache(maxsize=1024)
def instant_text(instant: datetime) -> str:
    """Return an instant as headers have it. Many runs have the same."""
    return instant.astimezone(UTC).isoformat().replace("+00:00", "Z")


def prepare(spec: Mapping[str, Any], own_headers: Mapping[str, str]) -> Request:
    """Check a job's payload and build the request.

    A body that is a string is sent unchanged (text/plain, unless the headers say otherwise);
    any other body is sent as JSON.

    Args:
        spec: the payload; its `url` is ignored here.
        own_headers: added to those of the job, which cannot override them.

    Raises:
        BadRequestError: a field is not valid; the message names it.
    """
    if not spec.keys() <= _KNOWN:
        unknown = sorted(map(str, spec.keys() - _KNOWN))
        raise BadRequestError(f"unknown field {', '.join(unknown)}; an HTTP job has {', '.join(_FIELDS)}")
    method = check_method(spec.get("method") or "POST")
    headers = check_headers(spec.get("headers") or {})
    named = {name.lower() for name in headers}
    body, content_type = _encoded(spec.get("body"))
    if body is not None and "content-type" not in named:
        headers["Content-Type"] = content_type
    if "accept-encoding" not in named:
        # Only a short excerpt of the response is kept: compression would cost both sides more than it saves.
        headers["Accept-Encoding"] = "identity"
    headers.update(own_headers)
    return Request(
        method,
        headers,
        _defaults(method, body, named),
        body,
        _expected(spec.get("expected_status")),
        parse_conditions(spec.get("success") or None),
        spec.get("keep_body") is True,
        spec.get("callback") is not None,
    )


def _defaults(method: str, body: bytes | None, named: Collection[str]) -> str:
    lines = "" if "accept" in named else "Accept: */*\r\n"
    if body is not None:
        return f"{lines}Content-Length: {len(body)}\r\n"
    if method in _WITHOUT_BODY:
        return lines
    if method in _WITH_BODY and "content-type" not in named:
        lines += "Content-Type: application/octet-stream\r\n"
    return f"{lines}Content-Length: 0\r\n"


def _encoded(body: object) -> tuple[bytes | None, str]:
    if body is None:
        return None, ""
    if isinstance(body, str):
        try:
            return body.encode(), "text/plain; charset=utf-8"
        except UnicodeEncodeError:
            raise BadRequestError(
                "the body contains half a surrogate pair, which is not valid text"
            ) from None
    try:
        return orjson.dumps(body), "application/json"
    except TypeError as error:
        raise BadRequestError(f"the body is not JSON: {error}") from error


def _expected(value: object) -> tuple[tuple[int, int], ...]:
    if value is None or value == _USUAL:
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
        f'expected_status {item!r} is not valid; use 204, "2xx", "200-299" or a list of these'
    )
