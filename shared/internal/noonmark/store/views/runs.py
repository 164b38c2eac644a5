"""Lists the runs of one namespace by any filter, at a bounded cost.

`runs` has no index on columns that change, so that updates stay cheap. A page therefore reads a window of
rows, by the index that leads to the likeliest ones, and keeps those that match. It may contain fewer rows
than requested, or none, and still say where to continue.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any, Final, NamedTuple
from uuid import UUID

from sqlalchemy import ColumnElement, Connection, FromClause, Select, and_, func, or_, select, tuple_

from noonmark.core.states import JobState, Lane, Origin, RunState
from noonmark.store.tables import tables as t
from noonmark.store.views.paging import Row, run_summary, waits_for, with_lane
from noonmark.store.views.task_runs import is_task, its_task, of_workflow, task_columns

WINDOW: Final = 10_000
"""Maximum number of rows that one page reads."""

_SCATTERED: Final = 2_000
"""The same for rows that must be looked up one by one: runs in flight, and runs of one job."""

_LIVE: Final = frozenset({RunState.RUNNING, RunState.CANCELLING})
_DAY: Final = timedelta(days=1)
_FIRST_DAY: Final = datetime(1970, 1, 1, tzinfo=UTC)
_END_DAY: Final = datetime(9999, 1, 1, tzinfo=UTC)
_ABOVE_ALL: Final = UUID(int=2**128 - 1)
_BELOW_ALL: Final = UUID(int=0)


@dataclass(frozen=True, slots=True)
class RunSearch:
    """Selects runs of a namespace; fields that are None or empty do not restrict.

    Attributes:
        namespace: the namespace.
        job: id of their job.
        job_name: name of their job.
        states: any of these states.
        reasons: any of these reasons.
        lanes: any of these lanes.
        pool: their pool.
        origin: what requested them.
        since: due at or after this instant.
        until: due before this instant.
        labels: labels that their jobs must all have.
        tasks: also runs of tasks of workflows; otherwise only if `origin` or `workflow` asks for them.
        workflow: only runs of the tasks of this workflow run.
    """

    namespace: str
    job: UUID | None = None
    job_name: str | None = None
    states: Sequence[RunState] = ()
    reasons: Sequence[str] = ()
    lanes: Sequence[Lane] = ()
    pool: str | None = None
    origin: str | None = None
    since: datetime | None = None
    until: datetime | None = None
    labels: Mapping[str, str] | None = None
    tasks: bool = False
    workflow: UUID | None = None

    @property
    def has_tasks(self) -> bool:
        """Whether runs of tasks can match."""
        return self.tasks or self.workflow is not None or self.origin == Origin.TASK


class _Search(NamedTuple):
    wanted: RunSearch
    limit: int
    window: int


class Found(NamedTuple):
    """A page of runs, and the position of the next one as JSON values; None if there is none."""

    rows: list[dict[str, Any]]
    place: list[str] | None


def search_runs(
    connection: Connection,
    wanted: RunSearch,
    *,
    limit: int,
    place: Sequence[str] | None = None,
    window: int = WINDOW,
) -> Found:
    """List runs, the newest first: runs of one job by their instants, others by their creation.

    Args:
        connection: a connection with the caller's row policies, which must include the namespace.
        wanted: the filter.
        limit: maximum number of runs.
        place: the position from the previous page with the same filter.
        window: maximum number of rows to read.
    """
    search = _Search(wanted, limit, window)
    if wanted.workflow is not None:
        return _of_workflow(connection, search, wanted.workflow, UUID(place[0]) if place else _ABOVE_ALL)
    job = wanted.job or _recurring_job(connection, wanted)
    if job is not None:
        return _of_job(connection, search, job, place)
    before = UUID(place[0]) if place else _ABOVE_ALL
    states = frozenset(wanted.states)
    if states == {RunState.DEAD} and not wanted.has_tasks:  # a dead task has no dead letter
        return _dead(connection, search, before)
    if states == {RunState.WAITING}:
        return _waiting(connection, search, before)
    if states and states <= _LIVE:
        return _live(connection, search, before)
    return _newest(connection, search, before)


def _recurring_job(connection: Connection, wanted: RunSearch) -> UUID | None:
    """Return the recurring job with the wanted name; one-time jobs share names and have no index by name."""
    if wanted.job_name is None:
        return None
    j = t.jobs
    named = select(j.c.id).where(
        j.c.namespace == wanted.namespace,
        j.c.name == wanted.job_name,
        j.c.unique_name,
        j.c.state != JobState.CANCELLED.value,
    )
    found: UUID | None = connection.execute(named).scalar()
    return found


def _of_job(connection: Connection, search: _Search, job: UUID, place: Sequence[str] | None) -> Found:
    """Walk the run key backwards, from day to day."""
    search = search._replace(window=min(search.window, _SCATTERED))
    r = t.runs
    key = (r.c.scheduled_for, r.c.origin, r.c.request_id)
    conditions: list[ColumnElement[bool]] = [r.c.job_id == job, *_due(search.wanted, r)]
    if place is not None:
        at = datetime.fromisoformat(place[0])
        # The first condition prunes days; the second one is the position itself.
        conditions += [r.c.scheduled_for <= at, tuple_(*key) < (at, place[1], place[2])]
    order = [column.desc() for column in key]
    number = func.row_number().over(order_by=order).label("number")
    seen = select(*r.c, number).where(*conditions).order_by(*order).limit(search.window).subquery()
    rows = _marked(connection, search, seen, [seen.c.scheduled_for, seen.c.origin, seen.c.request_id])

    def instant(row: Row) -> list[str]:
        return [row["scheduled_for"].isoformat(), row["origin"], row["request_id"]]

    return _page(rows, search.limit, instant)


def _of_workflow(connection: Connection, search: _Search, workflow: UUID, before: UUID) -> Found:
    """List the runs of the tasks of a workflow run, which have its job and its instant."""
    r = t.runs
    place = select(r.c.job_id, r.c.scheduled_for).where(r.c.id == workflow)
    found = connection.execute(place).first()
    if found is None:
        return Found([], None)
    number = func.row_number().over(order_by=r.c.id.desc()).label("number")
    seen = (
        select(*r.c, number)
        .where(
            r.c.job_id == found.job_id,
            r.c.scheduled_for == found.scheduled_for,
            of_workflow(r, workflow),
            r.c.id < before,
        )
        .order_by(r.c.id.desc())
        .limit(search.window)
        .subquery()
    )
    return _page(_marked(connection, search, seen, [seen.c.id]), search.limit, _by_id)


def _dead(connection: Connection, search: _Search, before: UUID) -> Found:
    d, r = t.dead_letters, t.runs
    number = func.row_number().over(order_by=d.c.run_id.desc()).label("number")
    seen = (
        select(*r.c, number)
        .join_from(d, r, and_(r.c.id == d.c.run_id, r.c.scheduled_for == d.c.scheduled_for))
        .where(d.c.namespace == search.wanted.namespace, d.c.run_id < before)
        .order_by(d.c.run_id.desc())
        .limit(search.window)
        .subquery()
    )
    rows = _marked(connection, search, seen, [seen.c.id])
    return _page(rows, search.limit, _by_id)


def _marked(
    connection: Connection, search: _Search, seen: FromClause, key: Sequence[ColumnElement[Any]]
) -> list[Row]:
    """Return the rows of a window that match, and its last row in any case."""
    fits = and_(*_fitting(search.wanted, seen))
    is_last = seen.c.number == search.window
    query = (
        _summary(search.wanted, seen, seen.c.request_id, fits.label("fits"), is_last.label("is_last"))
        .where(or_(fits, is_last))
        .order_by(*(column.desc() for column in key))
        .limit(search.limit + 1)
    )
    return _read(connection, query)


def _waiting(connection: Connection, search: _Search, before: UUID) -> Found:
    floor = connection.execute(select(func.noonmark_waits_floor(before, search.window))).scalar()
    w, r = t.waits, t.runs
    query = (
        _summary(search.wanted, r)
        .where(
            w.c.run_id == r.c.id,
            w.c.scheduled_for == r.c.scheduled_for,
            w.c.run_id < before,
            w.c.run_id >= (floor or _BELOW_ALL),
            *_fitting(search.wanted, r),
        )
        .order_by(w.c.run_id.desc())
        .limit(search.limit + 1)
    )
    return _above(_read(connection, query), search.limit, floor)


def _live(connection: Connection, search: _Search, before: UUID) -> Found:
    window = min(search.window, _SCATTERED)
    live = func.noonmark_live_runs(before, window).table_valued("run_id", "first_at", "last_at")
    found = connection.execute(select(live)).all()
    if not found:
        return Found([], None)
    floor = found[-1][0] if len(found) == window else None
    r = t.runs
    query = (
        _summary(search.wanted, r)
        .where(
            r.c.id.in_([row[0] for row in found]),
            r.c.scheduled_for.between(min(row[1] for row in found), max(row[2] for row in found)),
            *_fitting(search.wanted, r),
        )
        .order_by(r.c.id.desc())
        .limit(search.limit + 1)
    )
    return _above(_read(connection, query), search.limit, floor)


def _newest(connection: Connection, search: _Search, before: UUID) -> Found:
    wanted = search.wanted
    first = _midnight(wanted.since) if wanted.since else _FIRST_DAY
    # A bound within a day includes the whole day; rows of it that do not match still count for the window.
    end = _midnight(wanted.until - timedelta(microseconds=1)) + _DAY if wanted.until else _END_DAY
    floor = connection.execute(select(func.noonmark_runs_floor(before, first, end, search.window))).scalar()
    r = t.runs
    query = (
        _summary(search.wanted, r)
        .where(
            r.c.id < before,
            r.c.id >= (floor or _BELOW_ALL),
            r.c.scheduled_for >= first,
            r.c.scheduled_for < end,
            *_fitting(search.wanted, r),
        )
        .order_by(r.c.id.desc())
        .limit(search.limit + 1)
    )
    return _above(_read(connection, query), search.limit, floor)


def _summary(wanted: RunSearch, runs: FromClause, *more: ColumnElement[Any]) -> Select[Any]:
    j, w = t.jobs, t.waits
    kinds = task_columns(runs) if wanted.has_tasks else [j.c.kind, j.c.handler]
    query = (
        select(*run_summary(runs), j.c.name.label("job_name"), *kinds, waits_for(), *more)
        .join_from(runs, j, j.c.id == runs.c.job_id, isouter=True)
        .join(w, w.c.run_id == runs.c.id, isouter=True)
    )
    return query.join(t.workflow_tasks, its_task(runs), isouter=True) if wanted.has_tasks else query


def _fitting(wanted: RunSearch, r: FromClause) -> list[ColumnElement[bool]]:
    """Return all conditions except those on the job's id."""
    conditions: list[ColumnElement[bool]] = [r.c.namespace == wanted.namespace, *_due(wanted, r)]
    if not wanted.has_tasks:
        conditions.append(~is_task(r))
    if wanted.job_name is not None:
        conditions.append(t.jobs.c.name == wanted.job_name)
    if wanted.labels:
        conditions.append(t.jobs.c.labels.contains(dict(wanted.labels)))
    for column, values in (
        (r.c.state, [state.value for state in wanted.states]),
        (r.c.reason, list(wanted.reasons)),
        (r.c.lane, [lane.value for lane in wanted.lanes]),
    ):
        if values:
            conditions.append(column.in_(values))
    for column, value in ((r.c.pool, wanted.pool), (r.c.origin, wanted.origin)):
        if value is not None:
            conditions.append(column == value)
    return conditions


def _due(wanted: RunSearch, r: FromClause) -> list[ColumnElement[bool]]:
    at = r.c.scheduled_for
    since = [at >= wanted.since] if wanted.since is not None else []
    return since + ([at < wanted.until] if wanted.until is not None else [])


def _read(connection: Connection, query: Select[Any]) -> list[Row]:
    return [with_lane(row) for row in connection.execute(query).mappings()]


def _by_id(row: Row) -> list[str]:
    return [str(row["id"])]


def _page(rows: Sequence[Row], limit: int, place: Callable[[Row], list[str]]) -> Found:
    """Build the page from marked rows: the last row of a window is the next position."""
    fits = [_bare(row) for row in rows if row["fits"]]
    if len(fits) > limit:
        return Found(fits[:limit], place(rows[limit - 1]))
    last = next((row for row in rows if row["is_last"]), None)
    return Found(fits, place(last) if last else None)


def _bare(row: Row) -> dict[str, Any]:
    return {name: row[name] for name in row if name not in {"fits", "is_last", "request_id"}}


def _above(rows: Sequence[Row], limit: int, floor: UUID | None) -> Found:
    """Build the page from rows above a floor, below which there may be more."""
    shown = [dict(row) for row in rows[:limit]]
    if len(rows) > limit:
        return Found(shown, _by_id(shown[-1]))
    return Found(shown, [str(floor)] if floor else None)


def _midnight(at: datetime) -> datetime:
    return at.astimezone(UTC).replace(hour=0, minute=0, second=0, microsecond=0)
