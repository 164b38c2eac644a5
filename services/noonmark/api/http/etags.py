"""Entity tags: which version of an object a caller has seen (RFC 9110, 8.8.3 and 13.1.1)."""

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
    """Make the strong tag of an object from whatever changes with it, such as version and last change."""
    text = "\0".join(map(str, parts))
    return f'"{hashlib.blake2b(text.encode(), digest_size=9).hexdigest()}"'


def check_if_match(header: str | None, etag: str) -> None:
    """Refuse a change of an object that is not the one the caller has seen; no header, no check.

    Raises:
        ProblemError: none of the header's tags is the object's, or one of them is no tag.
    """
    if header is None or header.strip() == "*":
        return
    # Empty elements of a list mean nothing (RFC 9110, 5.6.1.2).
    given = [part.strip() for part in header.split(",", _MOST) if part.strip()] or [""]
    bare = next((part for part in given if not _TAG.fullmatch(part)), None)
    if bare is not None:
        raise ProblemError(
            MALFORMED,
            f"If-Match: {printable(bare[:100])} is no entity tag: send the ETag as it came, in its double"
            f' quotes, as in If-Match: "5d1f0a7c3b9e24d816"',
        )
    if etag not in given:
        raise ProblemError(
            PRECONDITION_FAILED, f"If-Match is {header[:100]}, and the ETag of the object is {etag}"
        )
