"""The conditions of an HTTP job on the response, and the target's `Retry-After`. Pure."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC
from email.utils import parsedate_to_datetime
from typing import Any, Final

from noonmark.core.kinds.http_request import BadRequestError

MAX_CONDITIONS: Final = 20
MAX_POINTER_LENGTH: Final = 500
MAX_POINTER_DEPTH: Final = 32

_ABSENT: Final = object()
_TESTS: Final = ("equals", "in", "exists")


@dataclass(frozen=True, slots=True)
class Condition:
    """One condition on the JSON of a response.

    Attributes:
        pointer: a JSON pointer (RFC 6901); empty means the whole answer.
        path: the parsed pointer.
        test: `equals`, `in` or `exists`.
        wanted: the value, the list of values, or whether there must be one.
    """

    pointer: str
    path: tuple[str, ...]
    test: str
    wanted: Any

    def failure(self, document: object) -> str | None:
        """Return why the response fails the condition, without its values; None if it meets it."""
        value = _at(document, self.path)
        place = self.pointer or "the answer"
        if self.test == "exists":
            if (value is not _ABSENT) is self.wanted:
                return None
            return f"{place} is {'missing' if self.wanted else 'present'}"
        if value is _ABSENT:
            return f"{place} is missing"
        wanted = [self.wanted] if self.test == "equals" else self.wanted
        if any(_same(value, one) for one in wanted):
            return None
        return (
            f"{place} is not {'what is expected' if self.test == 'equals' else 'one of the values expected'}"
        )


def parse_conditions(value: object) -> tuple[Condition, ...]:
    """Read the field `success`: one condition or a list of them, all of which must hold.

    Raises:
        BadRequestError: saying which part is wrong.
    """
    if value is None:
        return ()
    items: Sequence[object] = value if isinstance(value, list | tuple) else [value]
    if not 1 <= len(items) <= MAX_CONDITIONS:
        raise BadRequestError(f"success has {len(items)} conditions; 1 to {MAX_CONDITIONS} are allowed")
    return tuple(map(_condition, items))


def parse_pointer(text: object) -> tuple[str, ...]:
    """Parse a JSON pointer.

    Raises:
        BadRequestError: it is not a JSON pointer, or too long or too deep.
    """
    if not isinstance(text, str) or (text and not text.startswith("/")):
        raise BadRequestError("a pointer is empty or begins with a slash, as in /status")
    parts = text.split("/")[1:]
    if len(text) > MAX_POINTER_LENGTH or len(parts) > MAX_POINTER_DEPTH:
        raise BadRequestError(
            f"a pointer has at most {MAX_POINTER_LENGTH} characters and {MAX_POINTER_DEPTH} parts"
        )
    if any("~" in part.replace("~0", "").replace("~1", "") for part in parts):
        raise BadRequestError("a pointer writes ~ as ~0 and / as ~1")
    return tuple(part.replace("~1", "/").replace("~0", "~") for part in parts)


def retry_after_seconds(value: str | None, *, now: float, date: str | None = None) -> float | None:
    """Read `Retry-After`: seconds, or a date, which is compared with the response's `Date` if it has one.

    Returns:
        Seconds above 0, or None if the value is missing, in the past or not valid.
    """
    if value is None:
        return None
    text = value.strip()
    if text.isascii() and text.isdigit():
        seconds = float(text) if len(text) <= 12 else math.inf
    else:
        until = _instant(text)
        if until is None:
            return None
        # The target's date is compared with the target's clock.
        base = _instant(date or "")
        seconds = until - (now if base is None else base)
    return seconds if 0 < seconds < math.inf else None


def _instant(text: str) -> float | None:
    try:
        moment = parsedate_to_datetime(text)
    except (ValueError, TypeError, OverflowError):
        return None
    if moment.tzinfo is None:
        moment = moment.replace(tzinfo=UTC)
    try:
        return moment.timestamp()
    except (OverflowError, ValueError):
        return None


def _condition(item: object) -> Condition:
    if not isinstance(item, Mapping):
        raise BadRequestError("a condition of success is an object with a pointer and equals, in or exists")
    unknown = sorted(map(str, item.keys() - {"pointer", *_TESTS}))
    if unknown:
        raise BadRequestError(
            f"unknown field {', '.join(unknown)} in success; a condition has pointer, equals, in, exists"
        )
    tests = [name for name in _TESTS if name in item]
    if len(tests) != 1:
        raise BadRequestError("a condition of success has exactly one of equals, in and exists")
    (test,) = tests
    wanted = item[test]
    if test == "exists" and not isinstance(wanted, bool):
        raise BadRequestError("exists is true or false")
    if test == "in" and (not isinstance(wanted, list | tuple) or not wanted):
        raise BadRequestError("in is a list of at least one value")
    pointer = item.get("pointer", "")
    return Condition(pointer, parse_pointer(pointer), test, wanted)


def _at(document: object, path: tuple[str, ...]) -> object:
    place = document
    for part in path:
        if isinstance(place, dict):
            place = place.get(part, _ABSENT)
        elif isinstance(place, list):
            fits = part.isascii() and part.isdigit() and (part == "0" or part[0] != "0") and len(part) < 10
            place = place[int(part)] if fits and int(part) < len(place) else _ABSENT
        else:
            return _ABSENT
        if place is _ABSENT:
            return _ABSENT
    return place


def _same(one: object, other: object) -> bool:
    """Compare as JSON does: true is not 1, and 1 is 1.0."""
    if isinstance(one, bool) or isinstance(other, bool):
        return one is other
    if isinstance(one, dict) and isinstance(other, dict):
        return one.keys() == other.keys() and all(_same(value, other[key]) for key, value in one.items())
    if isinstance(one, list) and isinstance(other, list):
        return len(one) == len(other) and all(map(_same, one, other))
    return type(one) is type(other) and one == other if not _numbers(one, other) else one == other


def _numbers(*values: object) -> bool:
    return all(isinstance(value, int | float) for value in values)
