"""Values in JSON: found by a JSON pointer, and compared as JSON compares them, without conversion."""

from __future__ import annotations

import re
from enum import Enum
from typing import Final

MAX_POINTER_LENGTH: Final = 500
MAX_POINTER_DEPTH: Final = 32

_INDEX: Final = re.compile(r"0|[1-9][0-9]{0,8}", re.ASCII)


class Absent(Enum):
    """The type of `NOTHING`."""

    NOTHING = "nothing"


NOTHING: Final = Absent.NOTHING
"""What a pointer finds that leads nowhere. It is not JSON's null, which is a value."""


def pointer_path(text: object) -> tuple[str, ...]:
    """Parse a JSON pointer (RFC 6901).

    Raises:
        ValueError: it is not a JSON pointer, or too long or too deep.
    """
    if not isinstance(text, str) or (text and not text.startswith("/")):
        raise ValueError("a pointer is empty or begins with a slash, as in /status")
    parts = text.split("/")[1:]
    if len(text) > MAX_POINTER_LENGTH or len(parts) > MAX_POINTER_DEPTH:
        raise ValueError(
            f"a pointer has at most {MAX_POINTER_LENGTH} characters and {MAX_POINTER_DEPTH} parts"
        )
    if any("~" in part.replace("~0", "").replace("~1", "") for part in parts):
        raise ValueError("a pointer writes ~ as ~0 and / as ~1")
    return tuple(part.replace("~1", "/").replace("~0", "~") for part in parts)


def value_at(document: object, path: tuple[str, ...]) -> object:
    """Return the value at a parsed pointer, or `NOTHING`."""
    place = document
    for part in path:
        if isinstance(place, dict):
            place = place.get(part, NOTHING)
        elif isinstance(place, list):
            fits = _INDEX.fullmatch(part) is not None and int(part) < len(place)
            place = place[int(part)] if fits else NOTHING
        else:
            return NOTHING
    return place


def same_json(one: object, other: object) -> bool:
    """Compare as JSON does: true is not 1, and 1 is 1.0."""
    if isinstance(one, bool) or isinstance(other, bool):
        return one is other
    if isinstance(one, dict) and isinstance(other, dict):
        return one.keys() == other.keys() and all(same_json(value, other[key]) for key, value in one.items())
    if isinstance(one, list) and isinstance(other, list):
        return len(one) == len(other) and all(map(same_json, one, other))
    return type(one) is type(other) and one == other if not _numbers(one, other) else one == other


def _numbers(*values: object) -> bool:
    return all(isinstance(value, int | float) for value in values)
