"""Cursors of listings: opaque, signed, and bound to the filters of their listing."""

from __future__ import annotations

import base64
import hashlib
import hmac
from collections.abc import Mapping
from typing import Annotated, Any, Final

import orjson
from fastapi import Query

from noonmark.api.http.problems import ProblemError
from noonmark.schemas.problems.types import BAD_CURSOR

Limit = Annotated[int, Query(ge=1, le=200, description="Most items of the page.")]
CursorText = Annotated[str | None, Query(max_length=2000, description="`next_cursor` of the previous page.")]
DEFAULT_LIMIT: Final = 50
_SIGNATURE_BYTES: Final = 16


class Cursors:
    """Creates and reads cursors. All API instances with the same key can read each other's cursors."""

    def __init__(self, key: bytes) -> None:
        self._key = key

    def make(self, listing: str, filters: Mapping[str, Any], place: Any) -> str:
        """Create the cursor of a position.

        Args:
            listing: name of the listing.
            filters: filters of the request; JSON values.
            place: position where the next page starts; a JSON value.
        """
        body = orjson.dumps([listing, _digest(filters), place], default=str)
        return base64.urlsafe_b64encode(self._sign(body) + body).decode().rstrip("=")

    def read(self, listing: str, filters: Mapping[str, Any], cursor: str | None) -> Any:
        """Return the position of a cursor; None if there is no cursor.

        Raises:
            ProblemError: if it was changed, or belongs to another listing or other filters.
        """
        if cursor is None:
            return None
        try:
            joined = base64.urlsafe_b64decode(cursor + "=" * (-len(cursor) % 4))
            signature, body = joined[:_SIGNATURE_BYTES], joined[_SIGNATURE_BYTES:]
            sound = hmac.compare_digest(signature, self._sign(body))
            of, digest, place = orjson.loads(body) if sound else (None, None, None)
        except ValueError:
            sound = False
        if not sound:
            raise ProblemError(BAD_CURSOR, "the cursor cannot be read: send it unchanged")
        if of != listing or digest != _digest(filters):
            raise ProblemError(BAD_CURSOR, "the cursor belongs to another listing, or to other filters")
        return place

    def _sign(self, body: bytes) -> bytes:
        return hashlib.blake2b(body, key=self._key, digest_size=_SIGNATURE_BYTES).digest()


def _digest(filters: Mapping[str, Any]) -> str:
    given = {name: value for name, value in filters.items() if value is not None}
    return hashlib.blake2b(
        orjson.dumps(given, default=str, option=orjson.OPT_SORT_KEYS), digest_size=8
    ).hexdigest()
