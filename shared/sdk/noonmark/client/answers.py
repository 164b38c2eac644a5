"""Requests and responses as values: one definition for the blocking and the async client."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final, Generic, TypeVar

from noonmark.client.errors import ApiError, ClientError

T = TypeVar("T")

REPEATABLE: Final = frozenset({"GET", "HEAD", "PUT", "DELETE"})
"""Idempotent methods."""

IDEMPOTENCY_KEY: Final = "Idempotency-Key"
REQUEST_ID: Final = "Noonmark-Request-Id"


@dataclass(frozen=True, slots=True)
class Answer:
    """A successful response of the server.

    Attributes:
        status: the HTTP status.
        headers: by name in lower case.
        data: the body decoded from JSON; None if there is no body.
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
        """The id of the call in the server's log and audit log."""
        return self.headers.get(REQUEST_ID.lower())

    @classmethod
    def of(cls, status: int, reason: str, headers: Mapping[str, str], body: bytes) -> Answer:
        """Read a response.

        Raises:
            ApiError: the server refused the call.
            ClientError: the response does not come from noonmark's API.
        """
        lower = {name.lower(): value for name, value in headers.items()}
        is_json = lower.get("content-type", "").partition(";")[0].strip().endswith("json")
        data = _decoded(body) if is_json and body else None
        if status >= 400:
            raise ApiError.of(status, reason, data, lower.get(REQUEST_ID.lower()))
        if status >= 300:
            raise ClientError(
                f"the server answered {status} and redirects to {lower.get('location', 'nowhere')!r}: give"
                " the client the address of the API itself; redirects are not followed"
            )
        if body and not is_json:
            raise ClientError(
                f"the server answered {lower.get('content-type', 'without a type')!r} instead of JSON: the"
                " address is not the one of noonmark's API"
            )
        return cls(status, lower, data)


def _decoded(body: bytes) -> Any:
    try:
        return json.loads(body)
    except ValueError:
        return None


@dataclass(frozen=True, slots=True)
class Call(Generic[T]):
    """One request to the API, and how to read its response.

    Attributes:
        method: GET, POST, PUT, PATCH or DELETE.
        path: below the address of the API, with `/v1`.
        parse: makes the typed result from the response.
        params: of the query; those that are None are left out, lists are repeated.
        json: the body; None for none.
        headers: in addition to those of every call; those that are None are left out.
        harmless: the call is idempotent, although its method is not.
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
        """Whether the call may be sent again if its outcome is not known."""
        keyed = (value for name, value in self.headers.items() if name.lower() == IDEMPOTENCY_KEY.lower())
        return self.harmless or self.method in REPEATABLE or any(value is not None for value in keyed)


@dataclass(frozen=True, slots=True)
class Page(Generic[T]):
    """A part of a list.

    Attributes:
        items: at most the requested number.
        next_cursor: the cursor of the next page; None at the end.
    """

    items: tuple[T, ...]
    next_cursor: str | None
