"""What a window leaves behind: bytes of the ledger, of jobs, and of noonmark's topics."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Final

import psycopg

_SIZES: Final = """
select coalesce(sum(pg_total_relation_size(inhrelid)) filter (where inhparent = 'runs'::regclass), 0)::bigint,
       pg_total_relation_size('jobs')
from pg_inherits
"""

Stored = Mapping[str, int]
"""Bytes on disk: `ledger`, `jobs`, and `kafka` of one replica."""


def read_stored(connection: psycopg.Connection, folder: Path, prefix: str) -> Stored:
    """Read the sizes of the ledger's days with their indexes, of the jobs, and of topics.

    Args:
        connection: in autocommit.
        folder: of the broker; its logs are somewhere below.
        prefix: with which the topics begin.
    """
    row = connection.execute(_SIZES).fetchone()
    assert row is not None
    logs = (log for topic in folder.rglob(f"{prefix}.*") if topic.is_dir() for log in topic.glob("*.log"))
    return {"ledger": row[0], "jobs": row[1], "kafka": sum(log.stat().st_size for log in logs)}


def growth_per_run(before: Stored, after: Stored, runs: int) -> dict[str, float]:
    """Return the bytes that were added for each run."""
    return {name: round((after[name] - before[name]) / runs, 1) for name in after}
