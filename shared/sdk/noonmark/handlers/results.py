"""Encodes what a handler returns as JSON for Postgres; what cannot be stored fails the attempt."""

from __future__ import annotations

import re
from typing import Final

import orjson

MAX_RESULT_BYTES: Final = 64 * 1024

# An escaped U+0000: an odd number of backslashes before the `u`.
_NUL: Final = re.compile(rb"(?<!\\)(?:\\\\)*\\u0000")


class ResultError(ValueError):
    """The result cannot be stored: the attempt fails with this message."""


def encode_result(value: object) -> bytes | None:
    """Encode the result of a handler; None if it returned None.

    Dataclasses, datetimes, dates and UUIDs are encoded, too; NaN and infinities become null.

    Raises:
        ResultError: the value is not JSON, is longer than 64 KB, or has U+0000, which Postgres cannot store.
    """
    return None if value is None else _encoded(value, "result", "return")


def encode_checkpoint(value: object) -> bytes:
    """Encode a checkpoint; the rules are those of results, but None is a value.

    Raises:
        ResultError: the value is not JSON, is longer than 64 KB, or has U+0000, which Postgres cannot store.
    """
    return _encoded(value, "checkpoint", "store")


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
            f"the handler's {what} is {len(data)} bytes of JSON; the limit is {MAX_RESULT_BYTES}: "
            f"store it elsewhere and {verb} a reference"
        )
    if rb"\u0000" in data and _NUL.search(data):
        raise ResultError(
            f"the handler's {what} contains the character U+0000, which cannot be stored; remove it"
        )
    return data
