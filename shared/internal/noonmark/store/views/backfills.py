"""Backfills for people: a listing, and one backfill with the states of its runs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any
from uuid import UUID

from sqlalchemy import ColumnElement, Connection, func, select

from noonmark.core.states import Origin
from noonmark.store.tables import tables as t
from noonmark.store.views.paging import Page, Row


def list_backfills(
    connection: Connection,
    *,
    job: UUID | None = None,
    namespace: str | None = None,
    states: Sequence[str] = (),
    limit: int = 50,
    before: UUID | None = None,
) -> Page[UUID]:
    """List backfills, the newest first, each with the name of its job and its progress."""
    b, j = t.backfills, t.jobs
    query = (
        select(*_columns(), j.c.name.label("job_name"))
        .select_from(b.outerjoin(j, j.c.id == b.c.job_id))
        .order_by(b.c.id.desc())
    )
    conditions: list[ColumnElement[bool]] = []
    if job is not None:
        conditions.append(b.c.job_id == job)
    if namespace is not None:
        conditions.append(b.c.namespace == namespace)
    if states:
        conditions.append(b.c.state.in_(states))
    if before is not None:
        conditions.append(b.c.id < before)
    found = connection.execute(query.where(*conditions).limit(limit + 1)).mappings().all()
    rows = [_with_percent(row) for row in found]
    return Page(rows[:limit], rows[limit - 1]["id"] if len(rows) > limit else None)


def show_backfill(connection: Connection, backfill_id: UUID) -> Row | None:
    """Return a backfill with the number of its runs in each state (`runs`)."""
    b, j, r = t.backfills, t.jobs, t.runs
    found = (
        connection.execute(
            select(*_columns(), j.c.name.label("job_name"))
            .select_from(b.outerjoin(j, j.c.id == b.c.job_id))
            .where(b.c.id == backfill_id)
        )
        .mappings()
        .first()
    )
    if found is None:
        return None
    # By the run key and the range of days: one index scan per day, of this job alone.
    states = (
        select(r.c.state, func.count())
        .where(
            r.c.job_id == found["job_id"],
            r.c.scheduled_for >= found["from_at"],
            r.c.scheduled_for < found["until_at"],
            r.c.origin == Origin.BACKFILL.value,
            r.c.request_id == backfill_id.hex,
        )
        .group_by(r.c.state)
        .order_by(r.c.state)
    )
    counts: dict[str, int] = {row[0]: row[1] for row in connection.execute(states)}
    return {**_with_percent(found), "runs": counts}


def _columns() -> list[ColumnElement[Any]]:
    return [column for column in t.backfills.c if column.name not in {"schedule", "ended_to", "shard"}]


def _with_percent(row: Mapping[Any, Any]) -> dict[str, Any]:
    """Add the progress of a backfill, as a share of the instants counted when it was created."""
    found: dict[str, Any] = dict(row)
    # With other zone data there may be more or fewer instants than were counted.
    share = min(100.0, 100.0 * found["instants"] / found["total"]) if found["total"] else 100.0
    found["percent"] = 100.0 if found["state"] == "done" else round(share, 1)
    return found
