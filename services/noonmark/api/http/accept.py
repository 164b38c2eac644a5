"""The media type of a response, chosen by the `Accept` header of the request (RFC 9110, 12.5.1)."""

from __future__ import annotations

from collections.abc import Sequence

from noonmark.api.http.problems import ProblemError
from noonmark.schemas.problems.types import NOT_ACCEPTABLE


def accepted_type(header: str | None, offered: Sequence[str]) -> str:
    """Return the offered media type that the client prefers; of equal ones, the first.

    Args:
        header: the value of `Accept`; without it, the client accepts everything.
        offered: media types without parameters, the default first.

    Raises:
        ProblemError: the client accepts none of them.
    """
    ranges = [_range(one) for one in (header or "*/*").split(",") if one.strip()]
    quality = {one: _quality(one, ranges) for one in offered}
    best = max(offered, key=lambda one: quality[one])
    if not quality[best]:
        detail = (
            f"the response can be {', '.join(offered[:-1])} or {offered[-1]}, and Accept allows none of them"
        )
        raise ProblemError(NOT_ACCEPTABLE, detail)
    return best


def _range(given: str) -> tuple[str, float]:
    """Return a media range and its weight; one that cannot be read has the full weight."""
    name, *parameters = (part.strip().lower() for part in given.split(";"))
    for parameter in parameters:
        key, _, value = parameter.partition("=")
        if key.strip() == "q":
            try:
                return name, min(max(float(value), 0.0), 1.0)
            except ValueError:
                break
    return name, 1.0


def _quality(offered: str, ranges: Sequence[tuple[str, float]]) -> float:
    """Return the weight of the most specific range that contains the type; 0 if none does."""
    weights = dict(reversed(ranges))
    for name in (offered, f"{offered.partition('/')[0]}/*", "*/*"):
        if name in weights:
            return weights[name]
    return 0.0
