"""Entity tags: which version of an object a caller has seen (RFC 9110, 8.8.3 and 13.1.1)."""

from __future__ import annotations

import hashlib
from typing import Final

from noonmark.api.problem import ProblemError
from noonmark.schemas.problem_types import PRECONDITION_FAILED

_MOST: Final = 50


def etag_of(*parts: object) -> str:
    """Make the strong tag of an object from whatever changes with it, such as version and last change."""
    text = "\0".join(map(str, parts))
    return f'"{hashlib.blake2b(text.encode(), digest_size=9).hexdigest()}"'


def check_if_match(header: str | None, etag: str) -> None:
    """Refuse a change of an object that is not the one the caller has seen; no header, no check.

    Raises:
        ProblemError: none of the header's tags is the object's.
    """
    if header is None or header.strip() == "*":
        return
    given = [part.strip() for part in header.split(",", _MOST)]
    if etag not in given:
        raise ProblemError(
            PRECONDITION_FAILED, f"If-Match is {header[:100]}, and the ETag of the object is {etag}"
        )
