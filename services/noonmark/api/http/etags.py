"""Entity tags: identify the version of an object that a caller has read (RFC 9110, 8.8.3 and 13.1)."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, Final

from fastapi import Depends, Header

from noonmark.api.http.problems import ProblemError
from noonmark.schemas.problems.refusal import printable
from noonmark.schemas.problems.types import MALFORMED, PRECONDITION_FAILED

_MOST: Final = 50
_MOST_CHARS: Final = 1000
# A tag can contain commas (RFC 9110, 8.8.3). Empty elements of a list are ignored (5.6.1.2).
_ELEMENT: Final = re.compile(r'[ \t]*((?:W/)?"[!#-~\x80-\xff]*")?[ \t]*(?:,|$)')
_ANY: Final = "*"


def etag_of(*parts: object) -> str:
    """Create the strong tag of an object from values that change with it, such as its version."""
    text = "\0".join(map(str, parts))
    return f'"{hashlib.blake2b(text.encode(), digest_size=9).hexdigest()}"'


def read_tags(name: str, header: str) -> Sequence[str]:
    """Read a list of entity tags, or `*`, which is returned as the only element.

    Args:
        name: name of the header, for the message.
        header: its value; several lines of it are joined with commas.

    Raises:
        ProblemError: an element is not an entity tag, or there is none.
    """
    if header.strip() == _ANY:
        return (_ANY,)
    tags: list[str] = []
    at = 0
    while at < len(header) and len(tags) <= _MOST:
        element = _ELEMENT.match(header, at)
        if element is None:
            break
        if element[1]:
            tags.append(element[1])
        at = element.end()
    if at < len(header) or not tags:
        shown = printable(header[at:].partition(",")[0].strip()[:100])
        raise ProblemError(
            MALFORMED,
            f"{name}: {shown} is not an entity tag: send the ETag unchanged, in its double"
            f' quotes, as in {name}: "5d1f0a7c3b9e24d816"',
        )
    return tags


@dataclass(frozen=True, slots=True)
class Preconditions:
    """What must be true of an object for a change of it.

    Attributes:
        if_match: value of `If-Match`: the object exists, and has one of these tags.
        if_none_match: value of `If-None-Match`: the object has none of these tags; `*`: it does not exist.
    """

    if_match: str | None = None
    if_none_match: str | None = None

    def check(self, etag: str, *, exists: bool = True) -> None:
        """Refuse a change if a condition is false.

        Args:
            etag: tag of the object as it is.
            exists: whether there is an object; `etag` is then the tag of its absence.

        Raises:
            ProblemError: a condition is false, or is not a list of tags.
        """
        if self.if_match is not None:
            tags = read_tags("If-Match", self.if_match)
            # The strong comparison: a weak tag never matches (RFC 9110, 8.8.3.2).
            if not (exists if tags[0] == _ANY else etag in tags):
                now = f"the ETag of the object is {etag}" if exists else "there is no such object"
                raise ProblemError(PRECONDITION_FAILED, f"If-Match is {self.if_match[:100]}, but {now}")
        if self.if_none_match is not None and (exists and is_listed(etag, self.if_none_match)):
            raise ProblemError(
                PRECONDITION_FAILED,
                f"If-None-Match is {self.if_none_match[:100]}, but the object exists already,"
                f" with the ETag {etag}",
            )


def is_listed(etag: str, if_none_match: str) -> bool:
    """Return whether a value of `If-None-Match` lists the tag of an object, in the weak comparison.

    Raises:
        ProblemError: the value is not a list of tags.
    """
    tags = read_tags("If-None-Match", if_none_match)
    return tags[0] == _ANY or etag.removeprefix("W/") in {tag.removeprefix("W/") for tag in tags}


def _preconditions(
    if_match: Annotated[
        str | None,
        Header(max_length=_MOST_CHARS, description="Make the change only if the object has this ETag."),
    ] = None,
    if_none_match: Annotated[
        str | None,
        Header(
            max_length=_MOST_CHARS,
            description="Make the change only if the object has another ETag; `*`: only if it is new.",
        ),
    ] = None,
) -> Preconditions:
    return Preconditions(if_match, if_none_match)


Conditions = Annotated[Preconditions, Depends(_preconditions)]
"""The parameter of routes that check preconditions."""
