"""The current versions of jobs, without their documents."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import NamedTuple
from uuid import UUID

import psycopg

from noonmark.store.database.row_types import row_of


class JobStamp(NamedTuple):
    """A job's name, its version, and when it was last changed."""

    id: UUID
    namespace: str
    name: str | None
    version: int
    updated_at: datetime


def stamps_of(connection: psycopg.Connection, jobs: Sequence[UUID]) -> dict[UUID, JobStamp]:
    """Return the stamps of those jobs that exist."""
    if not jobs:
        return {}
    with connection.cursor(row_factory=row_of(JobStamp)) as cursor:
        rows = cursor.execute(
            "select id, namespace, name, version, updated_at from jobs where id = any (%s)", [list(jobs)]
        ).fetchall()
    return {row.id: row for row in rows}
