"""How answers become what methods return. Fields that a newer server adds are never an error."""

from __future__ import annotations

from typing import Any
from urllib.parse import quote

from noonmark.client.answers import Answer, Page


def document(answer: Answer) -> Any:
    """Return an answer that is one object, as it came; which one is the caller's to say."""
    return answer.data or {}


def items(answer: Answer) -> Any:
    """Return all of a list that has no pages."""
    return answer.data["items"]


def page(answer: Answer) -> Page[Any]:
    """Return a page of objects."""
    return Page(tuple(answer.data["items"]), answer.data.get("next_cursor"))


def nothing(answer: Answer) -> None:
    """Return nothing: the call was carried out, and that is all there is to say."""
    del answer


def path(*parts: object) -> str:
    """Join the parts of a path below `/v1`; what stands in names and ids cannot lead elsewhere.

    Raises:
        ValueError: a name or id is empty.
    """
    return "/v1/" + "/".join(map(_part, parts))


def _part(part: object) -> str:
    text = str(part)
    if not text:
        raise ValueError("a name or id in the address is empty")
    # Names of dots are steps up and down, unless their dots are written in this way.
    return text.replace(".", "%2E") if text in {".", ".."} else quote(text, safe="")
