"""Parts that answers of every resource share.

Made from `noonmark.schemas.api.common`, not by hand: see `noonmark.schemas.client_types`.
"""

from __future__ import annotations

from typing import TypedDict


class ProblemField(TypedDict):
    """One problem of a request."""

    pointer: str
    """RFC 6901 pointer into the body; "" is the whole of it."""

    message: str
    """What is wrong."""

    expected: str
    """What would be right; empty where the message says it."""


class Problem(TypedDict):
    """An error: a problem document of RFC 9457. docs/problems.md lists the types."""

    type: str

    title: str

    status: int

    detail: str
    """What is wrong in this case, and what to do."""

    errors: list[ProblemField]

    request_id: str
    """The same as in the `Noonmark-Request-Id` header."""
