"""Finds the jobs of a namespace that a request applies to, in batches."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final, LiteralString
from uuid import UUID

import psycopg

from noonmark.store.database.statements import statement

TO_PAUSE: Final = "find_jobs_to_pause_with_namespace"
TO_RESUME: Final = "find_jobs_to_resume"
TO_PLAN: Final = "find_jobs_to_plan"

BATCH: Final = 500
"""Jobs paused or resumed in one transaction, during which intake and claims of zoned jobs wait."""

_FIRST: Final = UUID(int=0)
_RANGE: Final = 5_000
"""Jobs of any namespace that one statement searches."""


def batches(connection: psycopg.Connection, query: LiteralString, name: str) -> Iterator[Sequence[UUID]]:
    """Search all jobs and yield the ids found, in batches."""
    after = _FIRST
    while True:
        row = connection.execute(
            statement(query), {"namespace": name, "after": after, "limit": _RANGE}
        ).fetchone()
        assert row is not None
        seen, last, found = row
        ids = found or []
        for start in range(0, len(ids), BATCH):
            yield ids[start : start + BATCH]
        if seen < _RANGE:
            return
        after = last


def first_of(
    connection: psycopg.Connection, query: LiteralString, name: str, most: int
) -> tuple[list[list[UUID]], bool]:
    """Return the first batches, with about `most` jobs, and whether these are all."""
    found: list[list[UUID]] = []
    for ids in batches(connection, query, name):
        if sum(map(len, found)) >= most:
            return found, False
        found.append(list(ids))
    return found, True
