"""What most documents of an application share, so that it is checked once and not for each of them."""

from __future__ import annotations

from typing import Any, Final

import orjson

_OWN: Final = frozenset({"name", "idempotency_key", "run_at", "payload"})
"""Fields that make one document differ from the next one of its sort."""

_MOST: Final = 2048
_LONGEST: Final = 2048
_LONGEST_LINE: Final = 200


def shape_of(data: dict[str, Any]) -> bytes | None:
    """Return what a screened document says but for the fields of its own; None where others may differ, too.

    As JSON text, which tells 1 from 1.0 and from true. Of Python jobs alone, as payloads of other kinds have
    rules, and without a schedule, which is read with what holds at its moment.
    """
    if data.get("type") != "python" or "schedule" in data:
        return None
    shape = orjson.dumps({name: value for name, value in data.items() if name not in _OWN})
    return shape if len(shape) <= _LONGEST else None


def is_plain_line(text: object) -> bool:
    """Whether this is surely a line as names are, or null; false says nothing."""
    if text is None:
        return True
    return (
        type(text) is str
        and 0 < len(text) <= _LONGEST_LINE
        and text.isascii()
        and text.isprintable()
        and text[0] != " "
        and text[-1] != " "
    )


class Shapes:
    """Values of fields, by the shape of a document that was found right. Safe to use from many threads."""

    def __init__(self, most: int = _MOST) -> None:
        """Make it empty; it is emptied where there are more than `most`."""
        self._most = most
        self._known: dict[bytes, dict[str, Any]] = {}

    def get(self, shape: bytes) -> dict[str, Any] | None:
        """Return what is known of a shape. It is shared: nobody changes it."""
        return self._known.get(shape)

    def keep(self, shape: bytes, fields: dict[str, Any]) -> None:
        """Remember a shape."""
        if len(self._known) >= self._most:
            self._known.clear()
        self._known[shape] = fields
