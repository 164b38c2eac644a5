"""Lifecycle events and dead letters, written in the transaction of the state change."""

from __future__ import annotations

import zlib
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import psycopg

from noonmark.core.states import Lane, RunState
from noonmark.schemas.events.lifecycle import SettledRun, settled_events
from noonmark.store.database.row_types import ChangedRun
from noonmark.store.database.statements import statement
from noonmark.store.outcomes.dead_letters import record_dead_letters


@dataclass(frozen=True, slots=True)
class EventTopics:
    """The names of the topics on which state changes are announced."""

    lifecycle: str
    dead: str


@dataclass(frozen=True, slots=True)
class RawEvent:
    """An event for the outbox. `key` decides its partition, `slice` its order."""

    slice: int
    topic: str
    key: bytes
    value: bytes


def settled_of(run: ChangedRun) -> SettledRun:
    """Return what is announced about a changed run."""
    return SettledRun(
        run_id=run.id,
        job_id=run.job_id,
        namespace=run.namespace,
        scheduled_for=run.scheduled_for,
        origin=run.origin,
        state=run.state,
        reason=run.reason,
        attempt=run.attempt,
        fence=run.fence,
        lane=Lane(run.lane).label,
        pool=run.pool,
        started_at=run.started_at,
        finished_at=run.finished_at,
        error=run.error,
    )


def announce(
    connection: psycopg.Connection, topics: EventTopics, settled: Sequence[SettledRun], *, shards: int
) -> None:
    """Add the events of a batch of state changes to the outbox, and record dead letters for dead runs."""
    if not settled:
        return
    by_namespace: dict[str, list[SettledRun]] = defaultdict(list)
    for one in settled:
        by_namespace[one.namespace].append(one)
    events = []
    for namespace, members in by_namespace.items():
        key = namespace.encode()
        # One slice per namespace keeps its events in order.
        home = zlib.crc32(key) % shards
        events += [
            RawEvent(home, topics.lifecycle, key, value) for value in settled_events(namespace, members)
        ]
    for one, value in record_dead_letters(connection, [one for one in settled if one.state == RunState.DEAD]):
        home = zlib.crc32(one.namespace.encode()) % shards
        events.append(RawEvent(home, topics.dead, one.job_id.bytes, value))
    insert_events(connection, events)


def insert_events(connection: psycopg.Connection, events: Iterable[RawEvent]) -> None:
    """Add raw events to the outbox."""
    rows = list(events)
    if rows:
        connection.execute(
            statement("insert_events"),
            {
                "slices": [e.slice for e in rows],
                "topics": [e.topic for e in rows],
                "keys": [e.key for e in rows],
                "values": [e.value for e in rows],
            },
        )
