"""Outcomes of runs whose rows another session has locked: set aside, so that the others are recorded."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Final
from uuid import UUID

import psycopg

from noonmark.service.backoff import Backoff
from noonmark.store.runs.finish import Outcome
from noonmark.store.runs.locked_runs import find_locked

_FIRST_SECONDS: Final = 0.5
_CAP_SECONDS: Final = 5.0


class LockedOutcomes:
    """Outcomes that wait for the end of another session's transaction. Used by the recorder's thread.

    Their runs stay in flight: no offset moves past them, and a drain waits for them as for others.
    """

    def __init__(self) -> None:
        self._outcomes: list[Outcome] = []
        self._backoff = Backoff(_FIRST_SECONDS, _CAP_SECONDS, random_share=lambda: 1.0)
        self._due_at = 0.0

    def __len__(self) -> int:
        return len(self._outcomes)

    def clear(self) -> None:
        """Forget all of them: the lease is lost. Callable from any thread."""
        self._outcomes = []

    def is_due(self) -> bool:
        """Return whether it is time to check them again."""
        return bool(self._outcomes) and time.monotonic() >= self._due_at

    def divide(self, connection: psycopg.Connection, outcomes: Sequence[Outcome]) -> list[Outcome]:
        """Set aside those of the outcomes whose runs are locked now; return the others."""
        locked = _locked(connection, outcomes)
        if locked and not self._outcomes:
            self._backoff.reset()
            self._due_at = time.monotonic() + self._backoff.next_seconds()
        self._outcomes = self._outcomes + [o for o in outcomes if o.run.id in locked]
        return [o for o in outcomes if o.run.id not in locked]

    def take_unlocked(self, connection: psycopg.Connection) -> list[Outcome]:
        """Return and forget those whose runs are not locked any more."""
        self._due_at = time.monotonic() + self._backoff.next_seconds()
        waiting = self._outcomes
        locked = _locked(connection, waiting)
        if self._outcomes is not waiting:
            return []  # the lease was lost meanwhile
        self._outcomes = [o for o in waiting if o.run.id in locked]
        return [o for o in waiting if o.run.id not in locked]


def _locked(connection: psycopg.Connection, outcomes: Sequence[Outcome]) -> set[UUID]:
    return find_locked(connection, [(o.run.id, o.run.scheduled_for) for o in outcomes])
