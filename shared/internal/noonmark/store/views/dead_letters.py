"""Dead letters for people: a listing, groups by cause, and one dead letter with its whole history."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Any, Final
from uuid import UUID

from sqlalchemy import ColumnElement, Connection, func, select, tuple_

from noonmark.store.runs.dead_letters import DeadSelection
from noonmark.store.tables import tables as t
from noonmark.store.views.paging import Page, Row, list_attempts, show_run

_SAMPLE: Final = 300
"""Maximum length of a group's sample error, in characters."""


def list_dead(
    connection: Connection,
    wanted: DeadSelection,
    *,
    limit: int = 50,
    before: UUID | None = None,
    place: tuple[datetime, UUID] | None = None,
) -> Page[UUID]:
    """List dead letters, the newest first.

    Args:
        connection: a connection of `paging.reader`.
        wanted: the filter.
        limit: maximum number of dead letters.
        before: run id of the last one on the previous page.
        place: its time and run id, for callers that know both, because it may have been deleted since.
    """
    d, j = t.dead_letters, t.jobs
    query = (
        select(*_columns(), j.c.handler)
        .select_from(d.outerjoin(j, j.c.id == d.c.job_id))
        .order_by(d.c.died_at.desc(), d.c.run_id.desc())
        .where(*_meant(wanted))
    )
    if place is not None:
        query = query.where(tuple_(d.c.died_at, d.c.run_id) < place)
    if before is not None:
        last = d.alias()
        of_last = select(last.c.died_at, last.c.run_id).where(last.c.run_id == before).scalar_subquery()
        query = query.where(tuple_(d.c.died_at, d.c.run_id) < of_last)
    rows = [dict(row) for row in connection.execute(query.limit(limit + 1)).mappings()]
    return Page(rows[:limit], rows[limit - 1]["run_id"] if len(rows) > limit else None)


def count_dead(connection: Connection, wanted: DeadSelection, *, after: UUID | None = None) -> int:
    """Count the selected dead letters; with `after`, only those of later run ids."""
    query = select(func.count()).select_from(t.dead_letters).where(*_meant(wanted))
    if after is not None:
        query = query.where(t.dead_letters.c.run_id > after)
    return int(connection.execute(query).scalar_one())


def group_dead(connection: Connection, wanted: DeadSelection, *, limit: int = 50) -> Sequence[Row]:
    """Count dead letters by fingerprint, the most frequent first, each with a sample error."""
    d = t.dead_letters
    query = (
        select(
            d.c.fingerprint,
            func.count().label("runs"),
            func.count(d.c.job_id.distinct()).label("jobs"),
            func.min(d.c.kind).label("kind"),
            func.min(d.c.died_at).label("first_died_at"),
            func.max(d.c.died_at).label("last_died_at"),
            func.min(func.left(func.coalesce(d.c.error, d.c.reason), _SAMPLE)).label("error"),
        )
        .where(*_meant(wanted))
        .group_by(d.c.fingerprint)
        .order_by(func.count().desc(), d.c.fingerprint)
        .limit(limit)
    )
    return [dict(row) for row in connection.execute(query).mappings()]


def show_dead(connection: Connection, run_id: UUID) -> Row | None:
    """Return a dead letter with its job, and all attempts of its run with their output."""
    d = t.dead_letters
    found = connection.execute(select(*_columns()).where(d.c.run_id == run_id)).mappings().first()
    if found is None:
        return None
    run = show_run(connection, run_id)
    logs = t.attempt_logs
    query = select(logs).where(logs.c.run_id == run_id).order_by(logs.c.fence)
    return {
        **found,
        "handler": run["handler"] if run is not None else None,
        "history": list_attempts(connection, [run_id]),
        "logs": [dict(row) for row in connection.execute(query).mappings()],
    }


def _columns() -> list[ColumnElement[Any]]:
    d = t.dead_letters
    return [
        d.c.run_id, d.c.died_at, d.c.name.label("job_name"), d.c.job_id, d.c.namespace, d.c.kind,
        d.c.scheduled_for, d.c.attempts, d.c.reason, d.c.fingerprint, d.c.error,
    ]  # fmt: skip


def _meant(wanted: DeadSelection) -> list[ColumnElement[bool]]:
    d = t.dead_letters
    given = {
        d.c.job_id: wanted.job,
        d.c.name: wanted.name,
        d.c.namespace: wanted.namespace,
        d.c.fingerprint: wanted.fingerprint,
        d.c.reason: wanted.reason,
    }
    conditions: list[ColumnElement[bool]] = [
        column == value for column, value in given.items() if value is not None
    ]
    if wanted.runs is not None:
        conditions.append(d.c.run_id.in_(wanted.runs))
    if wanted.since is not None:
        conditions.append(d.c.died_at >= wanted.since)
    if wanted.until is not None:
        conditions.append(d.c.died_at < wanted.until)
    return conditions
