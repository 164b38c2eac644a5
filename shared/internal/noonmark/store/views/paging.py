"""Reads for people: listings with filters and keyset paging, and complete objects.

Every function takes a connection of `reader`, runs a small fixed number of statements and returns plain
dictionaries. Pages are newest first. The next one starts at the id of the last row; new rows shift nothing.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Generic, TypeVar
from uuid import UUID

from sqlalchemy import (
    ColumnElement,
    Connection,
    FromClause,
    NullPool,
    Select,
    case,
    func,
    select,
)

from noonmark.core.states import Lane, TimerKind
from noonmark.store.database.engines import engine_of
from noonmark.store.tables import tables as t
from noonmark.store.views.job_columns import job_columns
from noonmark.store.views.task_runs import add_task, held_at, is_task

Row = Mapping[str, Any]
Place = TypeVar("Place", UUID, int)

_LANES = {lane.value: lane.label for lane in Lane}


@dataclass(frozen=True, slots=True)
class Page(Generic[Place]):
    """Some rows of a listing.

    Attributes:
        rows: the rows, newest first.
        next: the value of `before` for the next page; None if there is none.
    """

    rows: Sequence[Row]
    next: Place | None


@contextmanager
def reader(dsn: str, *, statement_timeout_seconds: float = 30) -> Iterator[Connection]:
    """Open a read-only transaction, all of whose statements see the same snapshot."""
    engine = engine_of(
        dsn,
        application="cli",
        statement_timeout_seconds=statement_timeout_seconds,
        poolclass=NullPool,
        isolation_level="REPEATABLE READ",
    )
    with engine.connect() as connection:
        connection.exec_driver_sql("set transaction read only")
        yield connection


def list_runs(connection: Connection, namespace: str, *, limit: int) -> list[Row]:
    """List runs of a namespace, the newest first, with the name of their job; not those of tasks."""
    r, j = t.runs, t.jobs
    query = (
        select(*run_summary(), j.c.name.label("job_name"), j.c.kind, j.c.handler, waits_for())
        .select_from(r.outerjoin(j, j.c.id == r.c.job_id).outerjoin(t.waits, t.waits.c.run_id == r.c.id))
        .where(r.c.namespace == namespace, ~is_task(r))
        .order_by(r.c.id.desc())
    )
    return [with_lane(row) for row in connection.execute(query.limit(limit)).mappings()]


def show_run(connection: Connection, run_id: UUID) -> Row | None:
    """Return a run with everything recorded about it: job, attempts, next attempt, wait, dead letter."""
    r, j = t.runs, t.jobs
    found = (
        connection.execute(
            select(r, _first_start(), held_at(r.c), j.c.name.label("job_name"), j.c.kind, j.c.handler)
            .select_from(r.outerjoin(j, j.c.id == r.c.job_id))
            .where(r.c.id == run_id)
        )
        .mappings()
        .first()
    )
    if found is None:
        return None
    run = with_lane(found)
    add_task(connection, run)
    run["attempts"] = list_attempts(connection, [run_id])
    timers = t.timers
    # Search by the job's id, which is indexed; a timer belongs to one run, or to the next instant.
    retry = select(func.min(timers.c.fire_at)).where(
        timers.c.job_id == run["job_id"], timers.c.kind == TimerKind.RETRY.value, timers.c.run_id == run_id
    )
    run["next_attempt_at"] = connection.execute(retry).scalar()
    report = select(t.callbacks.c.deadline_at).where(
        t.callbacks.c.run_id == run_id, t.callbacks.c.fence == run["fence"]
    )
    run["report_until"] = connection.execute(report).scalar()
    waits = connection.execute(select(t.waits.c.since, waits_for()).where(t.waits.c.run_id == run_id)).first()
    run["waiting_since"], run["waits_for"] = waits or (None, None)
    dead = connection.execute(
        select(t.dead_letters.c.died_at).where(t.dead_letters.c.run_id == run_id)
    ).first()
    run["died_at"] = dead[0] if dead else None
    version = select(t.zone_data.c.version).where(t.zone_data.c.id == run["zone_data"])
    run["zone_data"] = connection.execute(version).scalar()
    return run


def list_attempts(connection: Connection, run_ids: Sequence[UUID]) -> list[Row]:
    """List the attempts that did not succeed, in their order."""
    a = t.attempts
    query = select(a).where(a.c.run_id.in_(run_ids)).order_by(a.c.run_id, a.c.fence)
    return [dict(row) for row in connection.execute(query).mappings()]


def list_jobs(connection: Connection, namespace: str, *, limit: int) -> list[Row]:
    """List jobs of a namespace, the newest first, each with its next due instant and its displayed state."""
    j = t.jobs
    query = select(*job_columns()).where(j.c.namespace == namespace).order_by(j.c.id.desc())
    return [with_lane(row) for row in connection.execute(query.limit(limit)).mappings()]


def find_jobs(
    connection: Connection, *, job: UUID | None = None, name: str | None = None, namespace: str | None = None
) -> list[Row]:
    """Return the jobs with this id or name, the newest first; one-time jobs can share a name."""
    j = t.jobs
    conditions = [j.c.id == job] if job is not None else [j.c.name == name]
    if namespace is not None:
        conditions.append(j.c.namespace == namespace)
    query = select(*job_columns()).where(*conditions).order_by(j.c.id.desc()).limit(20)
    return [with_lane(row) for row in connection.execute(query).mappings()]


def list_rejections(
    connection: Connection,
    *,
    source: str | None = None,
    since: datetime | None = None,
    until: datetime | None = None,
    limit: int = 50,
    before: int | None = None,
) -> Page[int]:
    """List rejected submissions, the newest first, with their stored bytes.

    Args:
        connection: to read with.
        source: only of the publisher with this `source` of its events.
        since: received at or after this instant.
        until: received before this instant.
        limit: maximum number of rows.
        before: only rows with a lower id.
    """
    r = t.rejections
    query = select(r).order_by(r.c.id.desc())
    if source is not None:
        query = query.where(r.c.event_source == source)
    if since is not None:
        query = query.where(r.c.received_at >= since)
    if until is not None:
        query = query.where(r.c.received_at < until)
    return _page(connection, query, r.c.id, limit, before)


def received_events(connection: Connection, source: str) -> list[str]:
    """Return the ids of a publisher's accepted events, each once however often it arrived."""
    rows = connection.execute(select(t.inbox.c.event_id).where(t.inbox.c.source == source))
    return [row[0] for row in rows]


def find_rejection(connection: Connection, rejection: int) -> Row | None:
    """Return a rejected submission with its stored bytes."""
    found = connection.execute(select(t.rejections).where(t.rejections.c.id == rejection)).mappings().first()
    return dict(found) if found is not None else None


def list_pool_keys(connection: Connection, pool_name: str) -> list[Row]:
    """List the signing keys of a pool, newest first, without their secrets."""
    k = t.pool_keys
    query = select(k.c.key_id, k.c.created_at, k.c.retired_at).where(k.c.pool == pool_name)
    return [
        dict(row) for row in connection.execute(query.order_by(k.c.created_at.desc(), k.c.key_id)).mappings()
    ]


def list_pools(connection: Connection) -> list[Row]:
    """List pools with the number of their live workers and valid keys."""
    p, w, k = t.pools, t.workers, t.pool_keys
    workers = select(func.count()).where(w.c.pool == p.c.name, w.c.left_at.is_(None), w.c.lapsed_at.is_(None))
    keys = select(func.count()).where(k.c.pool == p.c.name, k.c.retired_at.is_(None))
    query = select(
        p, workers.scalar_subquery().label("workers"), keys.scalar_subquery().label("keys")
    ).order_by(p.c.name)
    return [dict(row) for row in connection.execute(query).mappings()]


def _first_start(r: FromClause = t.runs) -> ColumnElement[Any]:
    """Return the column with a run's first start, because its row contains only the latest attempt."""
    a = t.attempts
    earlier = select(func.min(a.c.started_at)).where(a.c.run_id == r.c.id).scalar_subquery()
    return func.least(r.c.started_at, earlier).label("first_started_at")


def waits_for() -> ColumnElement[Any]:
    """Return the column with the limit that a run waits for, and the key it is counted by."""
    w = t.waits
    name, key = w.c.limit_name, w.c.limit_key
    return case((key.is_not(None), name + "/" + key), else_=name).label("waits_for")


def run_summary(r: FromClause = t.runs) -> list[ColumnElement[Any]]:
    """Return the columns of a listing of runs, from `runs` or from a subquery with all of its columns."""
    return [
        r.c.id, r.c.job_id, r.c.namespace, r.c.state, r.c.reason, r.c.attempt, r.c.fence, r.c.lane, r.c.pool,
        r.c.origin, r.c.scheduled_for, r.c.queued_at, r.c.started_at, r.c.finished_at, r.c.instants,
        r.c.error, r.c.due_at, _first_start(r),
    ]  # fmt: skip


def _page(
    connection: Connection,
    query: Select[Any],
    place: ColumnElement[Any],
    limit: int,
    before: Place | None = None,
) -> Page[Place]:
    if before is not None:
        query = query.where(place < before)
    rows = [with_lane(row) for row in connection.execute(query.limit(limit + 1)).mappings()]
    name = place.key or ""
    return Page(rows[:limit], rows[limit - 1][name] if len(rows) > limit else None)


def with_lane(row: Mapping[Any, Any]) -> dict[str, Any]:
    """Replace the number of the lane by its name."""
    found = dict(row)
    if "lane" in found:
        found["lane"] = _LANES[found["lane"]]
    return found
