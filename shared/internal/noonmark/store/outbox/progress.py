"""Progress that the dispatcher measures and stores: what consumer groups have passed, what is unfinished."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import NamedTuple

import psycopg

from noonmark.core.states import Lane
from noonmark.store.database.statements import statement


class Unfinished(NamedTuple):
    """Counts of runs without a verdict. `unsent` are queued runs whose message is still in the outbox."""

    waiting: int
    running: int
    unsent: int


def pools(connection: psycopg.Connection) -> list[str]:
    """Return the registered pools."""
    return [row[0] for row in connection.execute("select name from pools order by name")]


def acknowledged_until(
    connection: psycopg.Connection, lanes: Sequence[tuple[str, Lane]]
) -> dict[tuple[str, Lane], datetime]:
    """Return, per pool and lane, an instant before which Kafka had acknowledged every run message.

    Call this before you read the topics' end offsets: then each of these messages is below them.
    """
    rows = connection.execute(
        statement("read_acknowledged_watermark"),
        {"pools": [pool for pool, _ in lanes], "lanes": [int(lane) for _, lane in lanes]},
    ).fetchall()
    return {(pool, Lane(lane)): until for pool, lane, until in rows}


def note_passed(connection: psycopg.Connection, topic: str, until: datetime, *, lost: bool = False) -> None:
    """Store that a topic's group has passed everything acknowledged before `until`.

    Args:
        connection: in autocommit mode.
        topic: a runs topic.
        until: an instant that `acknowledged_until` returned.
        lost: whether the topic has just lost records: runs of any age may wait for a message that is gone.
    """
    connection.execute(
        statement("upsert_topic_progress"), {"topic": topic, "passed_until": until, "lost": lost}
    )


def unfinished(connection: psycopg.Connection) -> Unfinished:
    """Count runs without a verdict, without a scan of the ledger."""
    row = connection.execute(statement("count_unfinished")).fetchone()
    assert row is not None
    return Unfinished(*row)
