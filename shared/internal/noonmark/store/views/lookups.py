"""Single facts about one job, one run or the installation, read by id."""

from __future__ import annotations

from datetime import datetime
from typing import NamedTuple
from uuid import UUID

import psycopg
from sqlalchemy import Connection, select

from noonmark.store.tables import tables as t
from noonmark.store.views.job_columns import shown_state
from noonmark.store.views.paging import Row
from noonmark.store.views.task_runs import held_at


class RunLocation(NamedTuple):
    """Where a run is stored: its namespace, and the instant that its partition is chosen by."""

    namespace: str
    scheduled_for: datetime


def namespace_of_job(connection: Connection, job_id: UUID) -> str | None:
    """Return the namespace of a job; None if the connection sees no such job."""
    namespace: str | None = connection.execute(
        select(t.jobs.c.namespace).where(t.jobs.c.id == job_id)
    ).scalar()
    return namespace


def job_state(connection: Connection, job_id: UUID) -> str | None:
    """Return the state of a job as listings show it; None if the connection sees no such job."""
    state: str | None = connection.execute(select(shown_state()).where(t.jobs.c.id == job_id)).scalar()
    return state


def namespace_of_run(connection: Connection, run_id: UUID) -> str | None:
    """Return the namespace of a run; None if the connection sees no such run."""
    found = locate_run(connection, run_id)
    return found.namespace if found else None


def locate_run(connection: Connection, run_id: UUID) -> RunLocation | None:
    """Return where a run is stored; None if the connection sees no such run."""
    r = t.runs.c
    row = connection.execute(select(r.namespace, r.scheduled_for).where(r.id == run_id)).first()
    return RunLocation(*row) if row else None


def run_status(connection: Connection, run_id: UUID, scheduled_for: datetime) -> Row | None:
    """Return the state of a run, and what identifies it; None if the connection sees no such run.

    These are `state`, `fence`, `attempt`, `reason` and `held_at`, which its entity tag is made of, `origin`,
    `request_id` and `pool`.
    """
    r = t.runs.c
    query = select(r.state, r.fence, r.attempt, r.reason, r.origin, r.request_id, r.pool, held_at(r))
    found = connection.execute(query.where(r.id == run_id, r.scheduled_for == scheduled_for)).mappings()
    row = found.first()
    return dict(row) if row is not None else None


def run_state(connection: Connection, run_id: UUID) -> str | None:
    """Return the state of a run; None if the connection sees no such run."""
    state: str | None = connection.execute(select(t.runs.c.state).where(t.runs.c.id == run_id)).scalar()
    return state


def read_cursor_key(connection: psycopg.Connection) -> bytes:
    """Read the key that signs the paging cursors of this installation."""
    row = connection.execute("select cursor_key from install").fetchone()
    assert row is not None
    return bytes(row[0])
