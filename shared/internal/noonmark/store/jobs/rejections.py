"""Rejected records of the submission topics: stored in a table, and published to the rejections topic."""

from __future__ import annotations

import zlib
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Final, NamedTuple

import orjson
import psycopg

from noonmark.schemas.events.lifecycle import rejection_event
from noonmark.schemas.problems.refusal import FieldError, Refused, printable
from noonmark.store.database.statements import statement
from noonmark.store.outcomes.events import RawEvent, insert_events

_MOST_PUBLISHED_BYTES: Final = 256 * 1024
"""A longer value, as base64 and together with the problems, would not fit into a message."""


Place = tuple[str, int, int]
"""Topic, partition and offset of a record."""


@dataclass(frozen=True, slots=True)
class RejectedRecord:
    """A rejected record, or a rejected event of a CloudEvents batch, with its position and the reason.

    Attributes:
        topic: its topic; identifies it together with `partition` and `offset`.
        partition: its partition.
        offset: its offset.
        source: the source of its event, if it could be read.
        event_id: the id of its event, if it could be read.
        reason: one of `noonmark.telemetry.declared.labels.REJECTION_REASONS`.
        refused: the problems, with pointers into the event.
        value: all its bytes; of an event of a batch: those of the event.
        index: index of the event in its batch; None: the whole record is rejected.
        batch: all bytes of the batch.
    """

    topic: str
    partition: int
    offset: int
    source: str | None
    event_id: str | None
    reason: str
    refused: Refused
    value: bytes
    index: int | None = None
    batch: bytes | None = None

    @property
    def place(self) -> Place:
        """Topic, partition and offset."""
        return self.topic, self.partition, self.offset


def record_rejections(
    connection: psycopg.Connection,
    records: Sequence[RejectedRecord],
    *,
    topic: str,
    cap_bytes: int,
    shards: int,
) -> set[Place]:
    """Store and publish rejected records in the caller's transaction; return the positions that are new.

    A record that was stored before is neither stored nor published again. The rejected events of a batch are
    one row, whose pointers begin with their indexes, and a message each.

    Args:
        connection: a connection in a transaction.
        records: the rejected records, at least one.
        topic: the rejections topic.
        cap_bytes: how many bytes of each value are stored at most; a message may contain fewer.
        shards: number of shards of the installation.
    """
    columns = _columns(_one_per_record(records), cap_bytes)
    stored = connection.execute(statement("insert_rejections"), columns).fetchall()
    places: dict[Place, datetime] = {(row[0], row[1], row[2]): row[3] for row in stored}
    new = set(places)
    events = []
    for record in records:
        at = places.get(record.place)
        if at is None:
            continue
        key = f"{record.topic}/{record.partition}".encode()
        value = rejection_event(
            record.refused,
            topic=record.topic,
            partition=record.partition,
            offset=record.offset,
            value=record.value,
            cap_bytes=min(cap_bytes, _MOST_PUBLISHED_BYTES),
            event_source=record.source,
            event_id=record.event_id,
            at=at,
            index=record.index,
        )
        # Records of one partition share a slice and a key, so they stay in order.
        events.append(RawEvent(zlib.crc32(key) % shards, topic, key, value))
    insert_events(connection, events)
    return new


class RefusedMessage(NamedTuple):
    """A run message that a worker refused, with its position, the reason and its first bytes."""

    topic: str
    partition: int
    offset: int
    reason: str
    detail: str
    value: bytes
    truncated: bool


def keep_messages(connection: psycopg.Connection, messages: Sequence[RefusedMessage]) -> int:
    """Store refused run messages in the table of rejections, unpublished; return how many were new."""
    problems = [Refused([FieldError("", message.detail)]) for message in messages]
    rows = connection.execute(
        statement("insert_rejections"),
        {
            "topics": [message.topic for message in messages],
            "partitions": [message.partition for message in messages],
            "offsets": [message.offset for message in messages],
            "sources": [None] * len(messages),
            "ids": [None] * len(messages),
            "reasons": [message.reason for message in messages],
            "errors": [_errors_text(problem) for problem in problems],
            "values": [message.value for message in messages],
            "truncated": [message.truncated for message in messages],
        },
    )
    return len(rows.fetchall())


def _one_per_record(records: Sequence[RejectedRecord]) -> list[RejectedRecord]:
    """Return one rejection per record: the rejected events of a batch together."""
    found: dict[Place, list[RejectedRecord]] = {}
    for record in records:
        found.setdefault(record.place, []).append(record)
    return [_together(events) for events in found.values()]


def _together(events: Sequence[RejectedRecord]) -> RejectedRecord:
    first = events[0]
    if first.index is None or first.batch is None:
        return first
    problems = [problem for event in events for problem in event.refused.below(f"/{event.index}").errors]
    one = len(events) == 1
    return replace(
        first,
        source=first.source if one else None,
        event_id=first.event_id if one else None,
        refused=Refused(problems),
        value=first.batch,
    )


def _columns(records: Sequence[RejectedRecord], cap_bytes: int) -> dict[str, object]:
    return {
        "topics": [record.topic for record in records],
        "partitions": [record.partition for record in records],
        "offsets": [record.offset for record in records],
        "sources": [record.source for record in records],
        "ids": [record.event_id for record in records],
        "reasons": [record.reason for record in records],
        "errors": [_errors_text(record.refused) for record in records],
        "values": [record.value[:cap_bytes] for record in records],
        "truncated": [len(record.value) > cap_bytes for record in records],
    }


def _errors_text(refused: Refused) -> str:
    """Return the problems as JSON that Postgres accepts: they may quote characters that it cannot store."""
    problems = [
        {
            "pointer": printable(problem.pointer),
            "message": printable(problem.message),
            "expected": printable(problem.expected),
        }
        for problem in refused.errors
    ]
    return orjson.dumps(problems).decode()
