"""Events that runs emit: written with the outcome, so that they are sent if and only if it is."""

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
        topic: that the operator lets jobs write to.
        key: None stands for the job's id.
        value: as it is sent.
        headers: names and values, in order.
    """

    topic: str
    key: bytes | None
    value: bytes
    headers: Headers = ()

    @property
    def size(self) -> int:
        """Bytes of key, value and headers."""
        headers = sum(len(name) + len(value.encode()) for name, value in self.headers)
        return len(self.key or b"") + len(self.value) + headers


def write_emits(connection: psycopg.Connection, events: Sequence[tuple[StartedRun, EmittedEvent]]) -> None:
    """Put events into the outbox slice of their runs, in order, in the transaction of the outcome."""
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
    """Read the headers of an emitted event's row, as producers take them."""
    return [(name, value.encode()) for name, value in orjson.loads(stored)]
