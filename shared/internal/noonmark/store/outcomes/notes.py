"""Notes of running attempts: their progress, and the checkpoint from which the next attempt continues."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple
from uuid import UUID

import orjson
import psycopg

from noonmark.core.output_stream import storable
from noonmark.store.database.row_types import StartedRun
from noonmark.store.database.statements import statement


@dataclass(slots=True)
class Note:
    """What an attempt reported last.

    `version` rises with each report; `saved` is the version that is stored.

    Attributes:
        run: the run.
        fence: the fence of the attempt.
        progress: 0 to 1.
        message: what the attempt is doing.
        checkpoint: JSON; None keeps the stored one.
        version: the version of the last report.
        saved: the version that is stored.
    """

    run: StartedRun
    fence: int
    progress: float | None = None
    message: str = ""
    checkpoint: bytes | None = None
    version: int = 0
    saved: int = 0


class Saving(NamedTuple):
    """The result of saving a batch of notes.

    Attributes:
        saved: runs whose note was written.
        busy: runs whose row was locked: try again.
    """

    saved: set[UUID]
    busy: set[UUID]


def save_notes(connection: psycopg.Connection, worker: int, epoch: int, notes: Sequence[Note]) -> Saving:
    """Write the notes of attempts that the worker still runs, in one statement; skip the others.

    Args:
        connection: in autocommit mode, or in a transaction that is committed at once.
        worker: id of the worker.
        epoch: epoch of the worker's lease.
        notes: one for each run.
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
    """Write the notes that are not stored yet, in the transaction of the attempts' outcomes."""
    unsaved = [note for note in notes if note.version > note.saved]
    if unsaved:
        connection.execute(
            statement("insert_run_notes"),
            {
                "run_ids": [note.run.id for note in unsaved],
                "scheduled_for": [note.run.scheduled_for for note in unsaved],
                "fences": [note.fence for note in unsaved],
                "progress": [note.progress for note in unsaved],
                "messages": [storable(note.message) for note in unsaved],
                "checkpoints": [
                    note.checkpoint.decode() if note.checkpoint is not None else None for note in unsaved
                ],
            },
        )
