"""Events that runs emit: written in the transaction of the outcome, so they are sent only if it commits."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import orjson
import psycopg

from noonmark.store.database.row_types import StartedRun
from noonmark.store.database.statements import statement

Headers = tuple[tuple[str, str], ...]


@dataclass(frozen=True, slots=True)
class EmittedEvent:
    """An event for Kafka.

    Attributes:
        topic: a topic that the operator allows jobs to write to.
        key: the message key; None means the job's id.
        value: the message value.
        headers: names and values, in order.
    """

    topic: str
    key: bytes | None
    value: bytes
    headers: Headers = ()

    @property
    def size(self) -> int:
        """The number of bytes of key, value and headers."""
        headers = sum(len(name) + len(value.encode()) for name, value in self.headers)
        return len(self.key or b"") + len(self.value) + headers


def write_emits(connection: psycopg.Connection, events: Sequence[tuple[StartedRun, EmittedEvent]]) -> None:
    """Add events to the outbox slice of their runs, in order, in the transaction of the outcome."""
    if events:
        connection.execute(
            statement("insert_emits"),
            {
                "slices": [run.shard for run, _ in events],
                "topics": [event.topic for _, event in events],
                "keys": [event.key or run.job_id.bytes for run, event in events],
                "values": [event.value for _, event in events],
                "headers": [orjson.dumps(event.headers) for _, event in events],
            },
        )


def headers_of(stored: bytes) -> list[tuple[str, str | bytes | None]]:
    """Return the stored headers of an emitted event in the form that producers accept."""
    return [(name, value.encode()) for name, value in orjson.loads(stored)]
