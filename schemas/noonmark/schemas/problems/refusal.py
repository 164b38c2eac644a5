"""Field errors and refusals: each problem of a document with its JSON pointer and the expected value."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final, Self

from noonmark.core.zones.zones import UNKNOWN_ZONE, ZONE_RULE

MAX_ERRORS: Final = 100
"""Most problems listed per document; further ones are only counted."""

_CONTROL: Final = re.compile(r"[\x00-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]")
_MAX_POINTER: Final = 500
_MAX_SHOWN: Final = 60
_EXPECTED: Final = "; expected "
"""Between what is wrong and what is expected, in messages for people."""
_USE_ZONE: Final = "; use "
"""The same in messages about unknown time zones."""


@dataclass(slots=True, frozen=True)
class FieldError:
    """One problem of a document.

    Attributes:
        pointer: RFC 6901 pointer to the value; "" is the whole document.
        message: what is wrong.
        expected: allowed values; "" if the message already says so.
    """

    pointer: str
    message: str
    expected: str = ""

    @classmethod
    def from_text(cls, pointer: str, text: str) -> Self:
        """Return the problem of a value from a message of the core, which ends with what is expected."""
        message, _, expected = text.partition(_EXPECTED if _EXPECTED in text else _USE_ZONE)
        if not expected and UNKNOWN_ZONE in message:
            # The message has a name to use instead, but not what is expected.
            expected = ZONE_RULE
        return cls(pointer, message, expected)

    def __str__(self) -> str:
        where = self.pointer or "document"
        return f"{where}: {self.message}" + (f"{_EXPECTED}{self.expected}" if self.expected else "")


class Refused(Exception):  # noqa: N818 - describes the input, not a failure of noonmark
    """The input is refused. `errors` lists the problems found: at most `MAX_ERRORS`, then a count."""

    def __init__(self, errors: Iterable[FieldError]) -> None:
        found = list(errors)
        if len(found) > MAX_ERRORS:
            more = len(found) - MAX_ERRORS
            found = [*found[:MAX_ERRORS], FieldError("", f"{more} further problems are not listed")]
        self.errors: Final[tuple[FieldError, ...]] = tuple(found)
        super().__init__("; ".join(map(str, found)))

    def below(self, prefix: str) -> Refused:
        """Return the same refusal with pointers that start at an outer document."""
        return Refused(FieldError(prefix + item.pointer, item.message, item.expected) for item in self.errors)


def pointer(parts: Sequence[str | int]) -> str:
    """Return the RFC 6901 pointer of a path.

    The pointer can always be stored and sent: control characters and lone surrogates are escaped, and a very
    long pointer is cut with an ellipsis.
    """
    text = "".join("/" + printable(str(part)).replace("~", "~0").replace("/", "~1") for part in parts)
    return text if len(text) <= _MAX_POINTER else text[: _MAX_POINTER - 1] + "…"


def printable(text: str) -> str:
    """Escape control characters and lone surrogates, which Postgres, UTF-8 or terminals cannot handle."""
    if text.isascii() and text.isprintable():
        return text
    escaped = _CONTROL.sub(lambda found: f"\\u{ord(found[0]):04x}", text)
    return escaped.encode("utf-8", "backslashreplace").decode()


def shown(value: object) -> str:
    """Return the value as short JSON text for a message."""
    if isinstance(value, dict):
        return "an object"
    if isinstance(value, list | tuple):
        return "an array"
    if isinstance(value, int) and not isinstance(value, bool) and value.bit_length() > 200:
        return "an integer of more than 60 digits"
    text = printable(json.dumps(value, ensure_ascii=False, default=lambda other: type(other).__name__))
    return text if len(text) <= _MAX_SHOWN else text[: _MAX_SHOWN - 1] + "…"


def kind_of(value: object) -> str:
    """Return the JSON type of a value with its article."""
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "a boolean"
    names: tuple[tuple[type, str], ...] = (
        (str, "a string"),
        (int, "an integer"),
        (float, "a number with a fraction"),
        (dict, "an object"),
        (list, "an array"),
    )
    return next((name for kind, name in names if isinstance(value, kind)), f"a {type(value).__name__}")
