"""Calls as values, and what comes back: one definition for blocking and for awaited clients."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final, Generic, TypeVar

from noonmark.client.errors import ApiError, ClientError

T = TypeVar("T")

REPEATABLE: Final = frozenset({"GET", "HEAD", "PUT", "DELETE"})
"""Methods whose second execution changes nothing more."""

IDEMPOTENCY_KEY: Final = "Idempotency-Key"
REQUEST_ID: Final = "Noonmark-Request-Id"


@dataclass(frozen=True, slots=True)
class Answer:
    """What the server answered, without an error.

    Attributes:
        status: the HTTP status.
        headers: by name in lower case.
        data: the body decoded from JSON, None where there is none.
    """

    status: int
    headers: Mapping[str, str]
    data: Any

    @property
    def etag(self) -> str | None:
        """The version of what was read or changed, for `if_match`."""
        return self.headers.get("etag")

    @property
    def request_id(self) -> str | None:
        """Names the call in the server's log and audit log."""
        return self.headers.get(REQUEST_ID.lower())

    @classmethod
    def of(cls, status: int, reason: str, headers: Mapping[str, str], body: bytes) -> Answer:
        """Read an answer.

        Raises:
            ApiError: it is a refusal.
            ClientError: it is no answer of noonmark's API.
        """
        lower = {name.lower(): value for name, value in headers.items()}
        is_json = lower.get("content-type", "").partition(";")[0].strip().endswith("json")
        data = _decoded(body) if is_json and body else None
        if status >= 400:
            raise ApiError.of(status, reason, data, lower.get(REQUEST_ID.lower()))
        if status >= 300:
            raise ClientError(
                f"the server answered {status} and points to {lower.get('location', 'nowhere')!r}: give the"
                " client the address of the API itself, redirects are not followed"
            )
        if body and not is_json:
            raise ClientError(
                f"the server answered {lower.get('content-type', 'without a type')!r} instead of JSON: the"
                " address is not that of noonmark's API"
            )
        return cls(status, lower, data)


def _decoded(body: bytes) -> Any:
    try:
        return json.loads(body)
    except ValueError:
        return None


@dataclass(frozen=True, slots=True)
class Call(Generic[T]):
    """One request to the API and how its answer is read.

    Attributes:
        method: GET, POST, PUT, PATCH or DELETE.
        path: below the address of the API, with `/v1`.
        parse: makes the typed answer.
        params: of the query; those that are None are left out, lists are repeated.
        json: the body; None for none.
        headers: besides those of every call; those that are None are left out.
        harmless: a second execution changes nothing more, although the method does not say so.
    """

    method: str
    path: str
    parse: Callable[[Answer], T]
    params: Mapping[str, Any] = field(default_factory=dict)
    json: Any = None
    headers: Mapping[str, str | None] = field(default_factory=dict)
    harmless: bool = False

    @property
    def repeatable(self) -> bool:
        """Whether the call may be sent again when its fate is not known."""
        keyed = (value for name, value in self.headers.items() if name.lower() == IDEMPOTENCY_KEY.lower())
        return self.harmless or self.method in REPEATABLE or any(value is not None for value in keyed)


@dataclass(frozen=True, slots=True)
class Page(Generic[T]):
    """A part of a list.

    Attributes:
        items: at most as many as asked for.
        next_cursor: where the next page begins; None at the end.
    """

    items: tuple[T, ...]
    next_cursor: str | None
