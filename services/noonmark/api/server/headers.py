"""Headers of a request by name. Lines of a list are one list; what can be given once must not be repeated."""

from __future__ import annotations

from collections.abc import Collection
from typing import Final

from starlette.types import Scope

ONCE: Final = frozenset(
    {
        b"content-encoding",
        b"content-length",
        b"content-type",
        b"host",
        b"idempotency-key",
        b"last-event-id",
        b"noonmark-request-id",
        b"traceparent",
    }
)
"""Headers that are read and are no lists: two values would mean two things to two readers."""

_LISTS: Final = frozenset({b"accept", b"if-match", b"if-none-match"})
"""Lists that are read: several lines mean the same as one line with commas (RFC 9110, 5.3)."""


def headers_of(scope: Scope) -> dict[str, str]:
    """Return the headers of a request by lower-case name; join the lines of lists, in the request, too."""
    given: list[tuple[bytes, bytes]] = scope["headers"]
    by_name: dict[bytes, bytes] = {}
    joined = False
    for name, value in given:
        if name not in by_name:
            by_name[name] = value
        elif name in _LISTS:
            by_name[name] += b", " + value
            joined = True
    if joined:
        scope["headers"] = [(name, value) for name, value in given if name not in _LISTS]
        scope["headers"] += [(name, by_name[name]) for name in _LISTS if name in by_name]
    return {name.decode("latin-1"): value.decode("latin-1") for name, value in by_name.items()}


def repeated(scope: Scope, names: Collection[bytes]) -> str:
    """Return the first of some headers that a request has more than once, in lower case; "" if none."""
    seen: set[bytes] = set()
    for name, _ in scope["headers"]:
        if name in names:
            if name in seen:
                return str(name, "latin-1")
            seen.add(name)
    return ""
