"""Caches the parts that many documents of an application share, so that they are checked only once."""

from __future__ import annotations

from typing import Any, Final

import orjson

_OWN: Final = frozenset({"name", "idempotency_key", "run_at", "payload"})
"""Fields that usually differ between the documents of one application."""

_MOST: Final = 2048
_LONGEST: Final = 2048
_LONGEST_LINE: Final = 200


def shape_of(data: dict[str, Any]) -> bytes | None:
    """Return the shared part of a screened document as JSON text; None if the document cannot be cached.

    JSON text distinguishes 1 from 1.0 and from true. Only Python jobs are cached, because payloads of other
    kinds have rules, and only jobs without a schedule, whose meaning depends on when it is read.
    """
    if data.get("type") != "python" or "schedule" in data:
        return None
    shape = orjson.dumps({name: value for name, value in data.items() if name not in _OWN})
    return shape if len(shape) <= _LONGEST else None


def is_plain_line(text: object) -> bool:
    """Whether this is certainly a valid name, or null; False means that it needs the full check."""
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
    """Cache of checked field values by the shape of their document. Thread-safe."""

    def __init__(self, most: int = _MOST) -> None:
        """Create an empty cache. It is cleared when it has `most` entries."""
        self._most = most
        self._known: dict[bytes, dict[str, Any]] = {}

    def get(self, shape: bytes) -> dict[str, Any] | None:
        """Return the cached fields of a shape. They are shared: do not change them."""
        return self._known.get(shape)

    def keep(self, shape: bytes, fields: dict[str, Any]) -> None:
        """Cache the fields of a shape."""
        if len(self._known) >= self._most:
            self._known.clear()
        self._known[shape] = fields
