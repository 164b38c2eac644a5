"""Parts that the responses of all resources share.

Generated from `noonmark.schemas.api.common` by `noonmark.schemas.client_types`; do not edit it by hand.
"""

from __future__ import annotations

from typing import TypedDict


class ProblemField(TypedDict):
    """One problem of a request."""

    pointer: str
    """RFC 6901 pointer into the body; "" is the whole body."""

    message: str
    """What is wrong."""

    expected: str
    """Allowed values; empty if the message says so."""


class Problem(TypedDict):
    """An error: a problem document of RFC 9457. docs/problems.md lists the types."""

    type: str

    title: str

    status: int

    detail: str
    """What is wrong in this case and what to do."""

    errors: list[ProblemField]

    request_id: str
    """Same as the `Noonmark-Request-Id` header."""
