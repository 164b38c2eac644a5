"""The progress that processes report, and work that is stuck although a process should do it."""

from __future__ import annotations

import os
import socket
from collections.abc import Mapping, Sequence
from typing import NamedTuple
from uuid import UUID

import psycopg

from noonmark.store.database.statements import statement

Mark = tuple[int, ...]


class Process(NamedTuple):
    """A process: how many seconds ago it reported, and made progress; what is stuck in it."""

    service: str
    host: str
    pid: int
    stuck: str | None
    seen_seconds: float
    progressed_seconds: float


def note(connection: psycopg.Connection, service: str, process: UUID, stuck: str | None) -> None:
    """Record that this process is alive, and that it makes progress unless something is stuck."""
    connection.execute(
        statement("upsert_process_progress"),
        {
            "service": service,
            "id": process,
            "host": socket.gethostname(),
            "pid": os.getpid(),
            "stuck": stuck,
        },
    )


def leave(connection: psycopg.Connection, service: str, process: UUID) -> None:
    """Record that this process stops on request."""
    connection.execute(statement("delete_process"), {"service": service, "id": process})


def read(connection: psycopg.Connection) -> Sequence[Process]:
    """Return all processes that reported lately."""
    return [Process(*row) for row in connection.execute(statement("read_processes")).fetchall()]


def due_heads(connection: psycopg.Connection) -> Mapping[Mark, str]:
    """Return the mark of the first due timer by shard, lane and kind."""
    return {row[:-1]: row[-1] for row in connection.execute(statement("read_due_heads")).fetchall()}


def outbox_heads(connection: psycopg.Connection) -> Mapping[Mark, str]:
    """Return the mark of the first outbox row by slice and lane."""
    return {row[:-1]: row[-1] for row in connection.execute(statement("read_outbox_heads")).fetchall()}
