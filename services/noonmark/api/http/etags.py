"""Entity tags: identify the version of an object that a caller has read (RFC 9110, 8.8.3 and 13.1.1)."""

from __future__ import annotations

import hashlib
import re
from typing import Final

from noonmark.api.http.problems import ProblemError
from noonmark.schemas.problems.refusal import printable
from noonmark.schemas.problems.types import MALFORMED, PRECONDITION_FAILED

_MOST: Final = 50
_TAG: Final = re.compile(r'(W/)?"[^"]*"')


def etag_of(*parts: object) -> str:
    """Create the strong tag of an object from values that change with it, such as its version."""
    text = "\0".join(map(str, parts))
    return f'"{hashlib.blake2b(text.encode(), digest_size=9).hexdigest()}"'


def check_if_match(header: str | None, etag: str) -> None:
    """Refuse a change if the object is not in the version that the caller has read. Without header: no check.

    Raises:
        ProblemError: if none of the header's tags matches the object, or one of them is not a valid tag.
    """
    if header is None or header.strip() == "*":
        return
    # Empty elements of a list are ignored (RFC 9110, 5.6.1.2).
    given = [part.strip() for part in header.split(",", _MOST) if part.strip()] or [""]
    bare = next((part for part in given if not _TAG.fullmatch(part)), None)
    if bare is not None:
        raise ProblemError(
            MALFORMED,
            f"If-Match: {printable(bare[:100])} is not an entity tag: send the ETag unchanged, in its double"
            f' quotes, as in If-Match: "5d1f0a7c3b9e24d816"',
        )
    if etag not in given:
        raise ProblemError(
            PRECONDITION_FAILED, f"If-Match is {header[:100]}, but the ETag of the object is {etag}"
        )
