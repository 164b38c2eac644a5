"""What some attempts leave in addition to their outcome: emitted events, logs, notes, callbacks.

They are separate so that attempts without them cost nothing.
"""

from __future__ import annotations

import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol
from uuid import UUID

import psycopg

from noonmark.core.states import RunState
from noonmark.store.database.row_types import StartedRun
from noonmark.store.outcomes.attempt_logs import AttemptLog, write_logs
from noonmark.store.outcomes.callback_rows import Expected, close_callbacks
from noonmark.store.outcomes.emitted_events import EmittedEvent, write_emits
from noonmark.store.outcomes.notes import Note, insert_notes


@dataclass(slots=True)
class OutcomeExtras:
    """What an attempt leaves in addition to its outcome.

    Attributes:
        emits: events for Kafka, committed only with a success.
        log: what it printed and logged, stored with any outcome.
        note: its progress and checkpoint, stored with any outcome.
        callback: set if a callback was opened for it; the callback is closed with the outcome.
    """

    emits: list[EmittedEvent] = field(default_factory=list)
    log: AttemptLog | None = None
    note: Note | None = None
    callback: Expected | None = None

    def logged(self) -> AttemptLog:
        """Return the attempt's log to append to; create it first if necessary."""
        if self.log is None:
            with _log_lock:
                self.log = self.log or AttemptLog()
        return self.log


_log_lock = threading.Lock()


class Ended(Protocol):
    """The parts of an outcome that are needed here."""

    run: StartedRun
    fence: int


def write_extras(
    connection: psycopg.Connection, ended: Sequence[tuple[Ended, OutcomeExtras]], states: Mapping[UUID, str]
) -> None:
    """Write what attempts left, in the transaction that recorded their outcomes.

    Args:
        connection: in that transaction.
        ended: outcomes that were recorded, each with what its attempt left.
        states: the recorded state of each run.
    """
    write_logs(connection, [(outcome, extras.log) for outcome, extras in ended if extras.log is not None])
    insert_notes(connection, [extras.note for _, extras in ended if extras.note is not None])
    close_callbacks(
        connection,
        [
            outcome
            for outcome, extras in ended
            if extras.callback is not None and states[outcome.run.id] != RunState.RUNNING
        ],
    )
    write_emits(
        connection,
        [
            (outcome.run, event)
            for outcome, extras in ended
            if states[outcome.run.id] == RunState.SUCCEEDED
            for event in extras.emits
        ],
    )
