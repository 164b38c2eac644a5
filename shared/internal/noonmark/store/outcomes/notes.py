"""Notes of running attempts: how far they are, and where the next attempt can go on."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple
from uuid import UUID

import orjson
import psycopg

from noonmark.store.database.row_types import StartedRun
from noonmark.store.database.statements import statement
from noonmark.store.outcomes.attempt_logs import storable


@dataclass(slots=True)
class Note:
    """What an attempt has told last. `version` rises with each telling, `saved` is what the table has.

    Attributes:
        run: the run.
        fence: the attempt's.
        progress: 0 to 1.
        message: what is being done.
        checkpoint: JSON; None leaves the one that is there.
    """

    run: StartedRun
    fence: int
    progress: float | None = None
    message: str = ""
    checkpoint: bytes | None = None
    version: int = 0
    saved: int = 0


class Saving(NamedTuple):
    """What became of a batch of notes.

    Attributes:
        saved: runs whose note was written.
        busy: runs whose row was locked: to be tried again.
    """

    saved: set[UUID]
    busy: set[UUID]


def save_notes(connection: psycopg.Connection, worker: int, epoch: int, notes: Sequence[Note]) -> Saving:
    """Write notes of attempts that are still the worker's, in one statement; nothing for the others.

    Args:
        connection: autocommit, or in a transaction that is committed at once.
        worker: who runs them.
        epoch: of the worker's lease.
        notes: one per run.
    """
    days = [note.run.scheduled_for for note in notes]
    given = {
        str(note.run.id): [
            note.fence,
            note.progress,
            storable(note.message),
            note.checkpoint.decode() if note.checkpoint is not None else None,
        ]
        for note in notes
    }
    rows = connection.execute(
        statement("save_run_notes"),
        {
            "worker": worker,
            "epoch": epoch,
            "ids": [note.run.id for note in notes],
            "first": min(days),
            "last": max(days),
            "given": orjson.dumps(given).decode(),
        },
    ).fetchall()
    return Saving({row[0] for row in rows if row[1]}, {row[0] for row in rows if not row[1]})


def insert_notes(connection: psycopg.Connection, notes: Sequence[Note]) -> None:
    """Write what is not written yet, in the transaction of the attempts' outcomes."""
    fresh = [note for note in notes if note.version > note.saved]
    if fresh:
        connection.execute(
            statement("insert_run_notes"),
            {
                "run_ids": [note.run.id for note in fresh],
                "scheduled_for": [note.run.scheduled_for for note in fresh],
                "fences": [note.fence for note in fresh],
                "progress": [note.progress for note in fresh],
                "messages": [storable(note.message) for note in fresh],
                "checkpoints": [
                    note.checkpoint.decode() if note.checkpoint is not None else None for note in fresh
                ],
            },
        )


def checkpoints(connection: psycopg.Connection, run_ids: Sequence[UUID]) -> dict[UUID, bytes]:
    """Return the newest checkpoint of each of the runs that has one, as JSON."""
    rows = connection.execute(
        "select run_id, checkpoint::text from run_notes where run_id = any(%s) and checkpoint is not null",
        [list(run_ids)],
    ).fetchall()
    return {row[0]: row[1].encode() for row in rows}
