"""What a handler returns becomes JSON that Postgres can keep, or a clear failure of the attempt."""

from __future__ import annotations

import re
from typing import Final

import orjson

MAX_RESULT_BYTES: Final = 64 * 1024

# An escaped U+0000: an odd number of backslashes before the `u`.
_NUL: Final = re.compile(rb"(?<!\\)(?:\\\\)*\\u0000")


class ResultError(ValueError):
    """The result cannot be kept: the attempt fails with this message."""


def encode_result(value: object) -> bytes | None:
    """Encode what a handler returned. Nothing returned is nothing kept.

    Dataclasses, datetimes, dates and UUIDs are written as JSON too; NaN and infinities become null.

    Raises:
        ResultError: not JSON, longer than 64 KB, or holding U+0000, which Postgres cannot store.
    """
    return None if value is None else _encoded(value, "result", "return")


def encode_checkpoint(value: object) -> bytes:
    """Encode a checkpoint; the same rules as for results, and None is a value.

    Raises:
        ResultError: not JSON, longer than 64 KB, or holding U+0000, which Postgres cannot store.
    """
    return _encoded(value, "checkpoint", "keep")


def _encoded(value: object, what: str, verb: str) -> bytes:
    try:
        data = orjson.dumps(value)
    except TypeError as error:
        raise ResultError(
            f"the handler's {what} of type {type(value).__name__} is not JSON ({error}); {verb} dicts, "
            "lists, strings, numbers, booleans or None"
        ) from error
    if len(data) > MAX_RESULT_BYTES:
        raise ResultError(
            f"the handler's {what} is {len(data)} bytes of JSON, {MAX_RESULT_BYTES} are kept at most; "
            f"store it elsewhere and {verb} a reference"
        )
    if rb"\u0000" in data and _NUL.search(data):
        raise ResultError(
            f"the handler's {what} holds the character U+0000, which cannot be stored; remove it"
        )
    return data
