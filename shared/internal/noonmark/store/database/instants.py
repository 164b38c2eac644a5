"""Reads instants that Python cannot represent: `infinity`, years before 1 and after 9999."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Final

import psycopg
from psycopg.abc import AdaptContext, Buffer
from psycopg.types.datetime import TimestamptzLoader

LATEST: Final = datetime(9999, 12, 31, tzinfo=UTC)
EARLIEST: Final = datetime(1, 1, 2, tzinfo=UTC)


class _AnyInstantLoader(TimestamptzLoader):
    def load(self, data: Buffer) -> datetime:
        try:
            return super().load(data)
        except psycopg.DataError:
            text = bytes(data)
            return EARLIEST if text.startswith(b"-") or text.endswith(b"BC") else LATEST


def read_any_instant(context: AdaptContext) -> None:
    """Let a connection or a cursor read every instant: those out of range become `EARLIEST` or `LATEST`."""
    context.adapters.register_loader("timestamptz", _AnyInstantLoader)
