"""Checks that every document must pass before its fields are read.

Postgres stores neither U+0000 nor lone surrogates. Other JSON readers lose digits of integers beyond 64 bits.
Readers disagree which of two members of one name counts (RFC 8259, 4). Deep nesting breaks recursive readers.
All of these are refused with a pointer.
"""

from __future__ import annotations

import json
import math
import re
from typing import Final

import orjson

from noonmark.schemas.problems.refusal import MAX_ERRORS, FieldError, Refused, pointer

MAX_DEPTH: Final = 32
"""Most levels of objects and arrays in a job document; the document itself is the first."""

_MIN_INTEGER: Final = -(2**63)
_MAX_INTEGER: Final = 2**64 - 1

_LONG_INTEGER: Final = re.compile(rb"[0-9]{20}|-[0-9]{19}")
"""Every integer beyond 64 bits has at least this many digits. orjson silently reads them as floats."""

_DIGITS_ALIKE: Final = bytes.maketrans(b"123456789", b"000000000")
_NINETEEN: Final = b"0" * 19


_FRAME_BYTES: Final = 5
"""Of a schema registry: a zero byte and the id of the schema, before the document."""

_UTF_32: Final = (b"\xff\xfe\0\0", b"\0\0\xfe\xff", b"{\0\0\0", b"[\0\0\0", b"\0\0\0{", b"\0\0\0[")
_UTF_16: Final = (b"\xff\xfe", b"\xfe\xff", b"{\x00", b"\x00{", b"[\x00", b"\x00[")
_UTF_8_MARK: Final = b"\xef\xbb\xbf"


class _Unreadable:
    """Placeholder for a number that JSON readers disagree about, to find its pointer."""

    def __init__(self, literal: str) -> None:
        self.literal = literal


class _Repeated(dict[str, object]):
    """An object that had several members of one name."""

    def __init__(self, pairs: list[tuple[str, object]]) -> None:
        super().__init__(pairs)
        seen: set[str] = set()
        self.names: list[str] = []
        for name, _ in pairs:
            if name in seen and name not in self.names:
                self.names.append(name)
            seen.add(name)


def _object(pairs: list[tuple[str, object]]) -> dict[str, object]:
    made = dict(pairs)
    return made if len(made) == len(pairs) else _Repeated(pairs)


def parse_json(raw: bytes, *, max_depth: int = MAX_DEPTH) -> object:
    """Parse JSON that can be stored and passed on.

    Raises:
        Refused: if it is not JSON, or contains a value that `screen` refuses.
    """
    try:
        value: object = orjson.loads(raw)
    except orjson.JSONDecodeError as error:
        raise Refused(_locate(raw, max_depth) or [_unreadable(raw, error, max_depth)]) from None
    # These byte scans alone clear most documents, without a walk over their values.
    if (b"\\" in raw and b"\\u0000" in raw) or (
        raw.count(b"{") + raw.count(b"[") > max_depth and not _no_deeper(value, max_depth)
    ):
        problems = screen(value, max_depth=max_depth)
        if problems:
            raise Refused(problems)
    written = orjson.dumps(value)
    # A document that reads back as the same bytes has lost nothing: no member and no digit of an integer.
    if written == raw:
        return value
    if _can_repeat_a_name(raw, written):
        problems = _locate(raw, max_depth)
        if problems:
            raise Refused(problems)
    # `translate` finds a run of digits four times as fast as the expression, and most events have none.
    if _NINETEEN in raw.translate(_DIGITS_ALIKE) and _LONG_INTEGER.search(raw):
        problems = _locate(raw, max_depth)
        if problems:
            raise Refused(problems)
    return value


def _unreadable(raw: bytes, error: orjson.JSONDecodeError, max_depth: int) -> FieldError:
    """Say why bytes cannot be parsed."""
    if str(error).startswith("depth limit"):
        return FieldError("", "is nested too deeply", f"at most {max_depth} levels of nesting")
    return FieldError("", _encoding_of(raw) or f"is not JSON: {error}", "a JSON object in UTF-8")


def _encoding_of(raw: bytes) -> str:
    """Say what bytes are that are not JSON in UTF-8, if they show it."""
    if raw.startswith(_UTF_32):
        return "is UTF-32, not UTF-8"
    if raw.startswith(_UTF_16):
        return "is UTF-16, not UTF-8"
    if raw.startswith(_UTF_8_MARK):
        return "begins with a byte order mark"
    number = int.from_bytes(raw[1:_FRAME_BYTES], "big")
    # Registries number schemas from 1.
    if raw[:1] == b"\0" and number and len(raw) > _FRAME_BYTES:
        frame = f"has the frame of a schema registry (zero byte, schema {number})"
        if raw[_FRAME_BYTES:].lstrip()[:1] in {b"{", b"["}:
            return f"{frame} before the JSON: use a serializer without a registry"
        return f"{frame} and no JSON after it, perhaps Avro or Protobuf: send JSON, without a registry"
    return ""


def _can_repeat_a_name(raw: bytes, written: bytes) -> bool:
    """Whether an object can have two members of one name, of which the parser has kept the last; quick.

    A member has a colon, and so may strings. Written again, the value has as many of them as before, unless a
    member was dropped. Only an escape can hide a colon: then a closer look is due.

    Args:
        raw: the document.
        written: its value, written again.
    """
    return b"\\u" in raw or raw.count(b":") > written.count(b":")


def screen(value: object, *, max_depth: int = MAX_DEPTH) -> list[FieldError]:
    """Return the problems of a parsed value; empty if it passes."""
    if _sound(value, max_depth):
        return []
    problems: list[FieldError] = []
    _walk(value, [], max_depth, problems)
    return problems


def _no_deeper(value: object, depth: int) -> bool:
    """Whether objects and arrays are nested at most this deep; other values are not checked."""
    inner = value.values() if isinstance(value, dict) else value if isinstance(value, list) else None
    if inner is None:
        return True
    return depth > 0 and all(
        _no_deeper(item, depth - 1) for item in inner if type(item) is dict or type(item) is list
    )


def _sound(value: object, depth: int) -> bool:
    kind = type(value)
    if kind is str:
        return _sound_text(value)  # type: ignore[arg-type]
    if kind is dict:
        return depth > 0 and all(
            type(key) is str and _sound_text(key) and _sound(item, depth - 1)
            for key, item in value.items()  # type: ignore[attr-defined]
        )
    if kind is list:
        return depth > 0 and all(_sound(item, depth - 1) for item in value)  # type: ignore[attr-defined]
    if kind is int:
        return _MIN_INTEGER <= value <= _MAX_INTEGER  # type: ignore[operator]
    if kind is float:
        return math.isfinite(value)  # type: ignore[arg-type]
    return value is None or kind is bool


def _sound_text(text: str) -> bool:
    if "\0" in text:
        return False
    if text.isascii():
        return True
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def _walk(value: object, path: list[str | int], depth: int, problems: list[FieldError]) -> None:
    """Collect problems with pointers. The depth limit bounds the recursion."""
    if len(problems) > MAX_ERRORS:
        return
    if isinstance(value, _Repeated):
        problems += [
            FieldError(pointer([*path, name]), "is given more than once in its object", "each name once")
            for name in value.names
        ]
    if isinstance(value, dict | list):
        if depth == 0:
            problems.append(FieldError(pointer(path), "is nested too deeply", "fewer levels of nesting"))
            return
        items = value.items() if isinstance(value, dict) else enumerate(value)
        for key, item in items:
            here = [*path, key if isinstance(key, int) else str(key)]
            if isinstance(value, dict):
                problems.extend(_text_problems(key, here, "the name of this field "))
            _walk(item, here, depth - 1, problems)
    elif isinstance(value, str):
        problems.extend(_text_problems(value, path, ""))
    elif (message := _scalar_problem(value)) is not None:
        problems.append(FieldError(pointer(path), message[0], message[1]))


def _text_problems(text: object, path: list[str | int], subject: str) -> list[FieldError]:
    if not isinstance(text, str):
        return [FieldError(pointer(path), f"{subject}is not a string", "a string as field name")]
    if "\0" in text:
        return [
            FieldError(
                pointer(path), f"{subject}contains U+0000, which cannot be stored", "text without U+0000"
            )
        ]
    if not _sound_text(text):
        return [
            FieldError(pointer(path), f"{subject}contains half of a surrogate pair", "valid Unicode text")
        ]
    return []


def _scalar_problem(value: object) -> tuple[str, str] | None:
    if isinstance(value, _Unreadable):
        if value.literal.lstrip("-").isdigit():
            return "is an integer beyond 64 bits, which other readers round", "a string of digits"
        return f"is {value.literal}, which is not JSON", "a finite number"
    if _sound(value, 0):
        return None
    if isinstance(value, int):
        return "is an integer beyond 64 bits, which other readers round", "a string of digits"
    if isinstance(value, float):
        return "is not a finite number", "a finite number"
    return f"is a {type(value).__name__}, which is not JSON", "a JSON value"


def _locate(raw: bytes, max_depth: int) -> list[FieldError]:
    """Find what the strict parser refused or rounded, with the lenient one; empty if that fails, too."""

    def integer(literal: str) -> object:
        # int() of a literal of thousands of digits is itself an attack.
        if len(literal) > 20:
            return _Unreadable(literal[:21])
        return int(literal)

    try:
        value = json.loads(raw, parse_int=integer, parse_constant=_Unreadable, object_pairs_hook=_object)
    except (ValueError, RecursionError):
        return []
    return screen(value, max_depth=max_depth)
