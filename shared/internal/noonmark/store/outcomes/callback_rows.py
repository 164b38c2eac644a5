"""Callbacks as rows: opened before a request is sent, closed with the outcome of its attempt."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import NamedTuple, Protocol
from uuid import UUID

import orjson
import psycopg

from noonmark.store.database.row_types import StartedRun
from noonmark.store.database.statements import statement


class NewCallback(NamedTuple):
    """A callback to open."""

    run_id: UUID
    scheduled_for: datetime
    fence: int
    token: str


@dataclass(frozen=True, slots=True)
class Expected:
    """Marks an attempt for which a callback was opened.

    Attributes:
        seconds: the time in which its target must report, if the attempt continues without its worker.
    """

    seconds: float


class Ended(Protocol):
    """The parts of an outcome that are needed here."""

    run: StartedRun
    fence: int


def token_hash(token: str) -> bytes:
    """Return the hash that is stored for a token. A token is long and random, so a plain digest is safe."""
    return hashlib.sha256(token.encode("utf-8", "surrogatepass")).digest()


def open_callbacks(
    connection: psycopg.Connection, worker: int, epoch: int, wanted: Sequence[NewCallback]
) -> set[UUID]:
    """Open callbacks; return the runs that this worker still owns, whose requests may be sent."""
    rows = connection.execute(
        statement("open_callbacks"),
        {
            "worker": worker,
            "epoch": epoch,
            "ids": [one.run_id for one in wanted],
            "scheduled_for": [one.scheduled_for for one in wanted],
            "fences": [one.fence for one in wanted],
            "token_hashes": [token_hash(one.token) for one in wanted],
        },
    )
    return {row[0] for row in rows}


def close_callbacks(connection: psycopg.Connection, ended: Sequence[Ended]) -> None:
    """Delete the callbacks of finished attempts, and their deadlines, in the transaction of the outcomes."""
    if ended:
        fences = {str(one.run.id): one.fence for one in ended}
        connection.execute(
            statement("close_callbacks"),
            {
                "ids": [one.run.id for one in ended],
                "job_ids": [one.run.job_id for one in ended],
                "fences": orjson.dumps(fences).decode(),
            },
        )
