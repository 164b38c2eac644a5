"""Records of a submission topic that were not taken: kept in a table, and told on a topic of their own."""

from __future__ import annotations

import zlib
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Final, NamedTuple

import orjson
import psycopg

from noonmark.schemas.events.lifecycle import rejection_event
from noonmark.schemas.problems.refusal import FieldError, Refused, printable
from noonmark.store.database.statements import statement
from noonmark.store.outcomes.events import RawEvent, insert_events

_MOST_TOLD_BYTES: Final = 256 * 1024
"""More of a value would not fit into a message, as base64 and beside the problems."""


Place = tuple[str, int, int]
"""Topic, partition and offset of a record."""


@dataclass(frozen=True, slots=True)
class RejectedRecord:
    """A refused record: where it stands, why, and what it was.

    Attributes:
        topic: where it stands; with `partition` and `offset` its identity.
        partition: likewise.
        offset: likewise.
        source: of its event, as far as it could be read.
        event_id: likewise.
        reason: a word of `noonmark.telemetry.declared.labels.REJECTION_REASONS`.
        refused: the problems, with pointers into the event.
        value: all its bytes.
    """

    topic: str
    partition: int
    offset: int
    source: str | None
    event_id: str | None
    reason: str
    refused: Refused
    value: bytes


def record_rejections(
    connection: psycopg.Connection,
    records: Sequence[RejectedRecord],
    *,
    topic: str,
    cap_bytes: int,
    shards: int,
) -> set[Place]:
    """Keep refused records and tell of them, inside the caller's transaction; return the places that are new.

    A record that was kept before is neither kept nor told again.

    Args:
        connection: in a transaction.
        records: refused now.
        topic: the topic of rejections.
        cap_bytes: of each value so many bytes are kept, at most; a message may hold fewer.
        shards: of the installation.
    """
    if not records:
        return set()
    kept = connection.execute(statement("insert_rejections"), _columns(records, cap_bytes)).fetchall()
    places: dict[Place, datetime] = {(row[0], row[1], row[2]): row[3] for row in kept}
    new = set(places)
    events = []
    for record in records:
        at = places.pop((record.topic, record.partition, record.offset), None)
        if at is None:
            continue
        key = f"{record.topic}/{record.partition}".encode()
        value = rejection_event(
            record.refused,
            topic=record.topic,
            partition=record.partition,
            offset=record.offset,
            value=record.value,
            cap_bytes=min(cap_bytes, _MOST_TOLD_BYTES),
            event_source=record.source,
            event_id=record.event_id,
            at=at,
        )
        # Those of one partition stay in order: one slice, one key.
        events.append(RawEvent(zlib.crc32(key) % shards, topic, key, value))
    insert_events(connection, events)
    return new


class RefusedMessage(NamedTuple):
    """A run message that a worker did not believe: where it stands, why, and its first bytes."""

    topic: str
    partition: int
    offset: int
    reason: str
    detail: str
    value: bytes
    truncated: bool


def keep_messages(connection: psycopg.Connection, messages: Sequence[RefusedMessage]) -> int:
    """Keep refused run messages beside the refused submissions, and tell nobody; return how many were new."""
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
    """Write the problems as JSON that Postgres takes: they may quote what it cannot hold."""
    problems = [
        {
            "pointer": printable(problem.pointer),
            "message": printable(problem.message),
            "expected": printable(problem.expected),
        }
        for problem in refused.errors
    ]
    return orjson.dumps(problems).decode()
