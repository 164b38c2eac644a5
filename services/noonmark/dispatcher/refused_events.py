"""Tries events that Kafka refused again: all of them, once a minute, a few at a time."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import Final

import psycopg

from noonmark.store.database.row_types import OutboxRow
from noonmark.store.outbox import relay

ROUND_SECONDS: Final = 60.0
SOON_SECONDS: Final = 2.0
_STEP: Final = 100
"""Events of one step: they are sent with the others and must not delay them."""


class RefusedRound:
    """Goes through the refused events of the owned slices, again and again.

    Args:
        clock: monotonic seconds.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._after = 0
        self._next_at = 0.0

    def soon(self) -> None:
        """Begin the next round in a moment: an event was refused that may have been judged too early."""
        self._next_at = min(self._next_at, self._clock() + SOON_SECONDS)

    def read(self, connection: psycopg.Connection, slices: Sequence[int]) -> list[OutboxRow]:
        """Return the next refused events to try; empty between two rounds."""
        now = self._clock()
        if now < self._next_at:
            return []
        rows = relay.read_refused(connection, slices, _STEP, after=self._after)
        if len(rows) < _STEP:
            self._after = 0
            self._next_at = now + ROUND_SECONDS
        else:
            self._after = rows[-1].seq
        return rows
