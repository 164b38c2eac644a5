"""The conditions of an HTTP job on the response, and the target's `Retry-After`. Pure."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC
from email.utils import parsedate_to_datetime
from typing import Any, Final

from noonmark.core.kinds.http_request import BadRequestError
from noonmark.core.kinds.json_values import NOTHING, pointer_path, same_json, value_at

MAX_CONDITIONS: Final = 20

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
        value = value_at(document, self.path)
        place = self.pointer or "the answer"
        if self.test == "exists":
            if (value is not NOTHING) is self.wanted:
                return None
            return f"{place} is {'missing' if self.wanted else 'present'}"
        if value is NOTHING:
            return f"{place} is missing"
        wanted = [self.wanted] if self.test == "equals" else self.wanted
        if any(same_json(value, one) for one in wanted):
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
    try:
        return pointer_path(text)
    except ValueError as error:
        raise BadRequestError(str(error)) from None


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
