"""What earlier attempts of a run leave to the next one: a checkpoint, and how often workers rejected it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple
from uuid import UUID

import psycopg

from noonmark.store.database.statements import statement


class EarlierAttempts(NamedTuple):
    """What the earlier attempts of a run left.

    Attributes:
        checkpoint: the newest checkpoint, as JSON.
        rejections: the number of newest attempts that were rejected, one after the other. Attempts that were
            handed back between them do not count, and do not end the sequence.
    """

    checkpoint: bytes | None
    rejections: int


def read_earlier_attempts(
    connection: psycopg.Connection, run_ids: Sequence[UUID]
) -> dict[UUID, EarlierAttempts]:
    """Return what earlier attempts left to runs; runs to which they left nothing are absent."""
    rows = connection.execute(statement("read_earlier_attempts"), {"ids": list(run_ids)})
    return {
        run_id: EarlierAttempts(checkpoint.encode() if checkpoint is not None else None, rejections)
        for run_id, checkpoint, rejections in rows
        if checkpoint is not None or rejections
    }
