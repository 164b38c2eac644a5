"""What some attempts leave besides their outcome: events to emit, logs. Only those pay for it."""

from __future__ import annotations

import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol
from uuid import UUID

import psycopg

from noonmark.core.vocabulary import RunState
from noonmark.store.database.row_types import StartedRun
from noonmark.store.outcomes.attempt_logs import AttemptLog, write_logs
from noonmark.store.outcomes.callback_rows import Expected, close_callbacks
from noonmark.store.outcomes.emitted_events import EmittedEvent, write_emits
from noonmark.store.outcomes.notes import Note, insert_notes


@dataclass(slots=True)
class OutcomeExtras:
    """What an attempt leaves besides its outcome.

    Attributes:
        emits: events for Kafka, committed with a success or not at all.
        log: what it printed and logged, kept whatever the outcome.
        note: its progress and checkpoint, kept likewise.
        callback: that a callback was opened for it; it is closed with the outcome.
    """

    emits: list[EmittedEvent] = field(default_factory=list)
    log: AttemptLog | None = None
    note: Note | None = None
    callback: Expected | None = None

    def logged(self) -> AttemptLog:
        """Return what it printed and logged, to add to it."""
        if self.log is None:
            with _beginning:
                self.log = self.log or AttemptLog()
        return self.log


_beginning = threading.Lock()


class Ended(Protocol):
    """An outcome, as far as it matters here."""

    run: StartedRun
    fence: int


def write_extras(
    connection: psycopg.Connection, ended: Sequence[tuple[Ended, OutcomeExtras]], states: Mapping[UUID, str]
) -> None:
    """Write what attempts left, in the transaction that recorded their outcomes.

    Args:
        connection: in that transaction.
        ended: outcomes that the ledger took, with what they left.
        states: of their runs as they were recorded.
    """
    if not ended:
        return
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
