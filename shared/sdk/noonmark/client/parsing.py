"""Turns responses into the results of methods. Fields that a newer server adds are never an error."""

from __future__ import annotations

from typing import Any
from urllib.parse import quote

from noonmark.client.answers import Answer, Page


def document(answer: Answer) -> Any:
    """Return a response that is one object, unchanged; the caller declares its type."""
    return answer.data or {}


def items(answer: Answer) -> Any:
    """Return all of a list that has no pages."""
    return answer.data["items"]


def page(answer: Answer) -> Page[Any]:
    """Return a page of objects."""
    return Page(tuple(answer.data["items"]), answer.data.get("next_cursor"))


def nothing(answer: Answer) -> None:
    """Return None: the call succeeded and has no result."""
    del answer


def path(*parts: object) -> str:
    """Join the parts of a path below `/v1`; names and ids are escaped, so they cannot change the path.

    Raises:
        ValueError: a name or id is empty.
    """
    return "/v1/" + "/".join(map(_part, parts))


def _part(part: object) -> str:
    text = str(part)
    if not text:
        raise ValueError("a name or id in the address is empty")
    # A name of only dots would change the path, unless its dots are escaped.
    return text.replace(".", "%2E") if text in {".", ".."} else quote(text, safe="")
