"""Listing the runs of one namespace by any filter, at a bounded cost.

`runs` has no index on what changes in a run, so that its updates stay cheap. A page therefore looks at a
window of so many rows, where an index leads to the likeliest ones, and keeps those that fit. It may hold
fewer than were asked for, or none, and still say where to go on.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any, Final, NamedTuple
from uuid import UUID

from sqlalchemy import ColumnElement, Connection, FromClause, Select, and_, func, or_, select, tuple_

from noonmark.core.vocabulary import JobState, Lane, RunState
from noonmark.store.tables import tables as t
from noonmark.store.views.paging import Row, run_summary, waits_for, with_lane

WINDOW: Final = 10_000
"""Rows that one page looks at, at most."""

_SCATTERED: Final = 2_000
"""The same where each of them is looked up, for they lie apart: runs under way, and those of one job."""

_LIVE: Final = frozenset({RunState.RUNNING, RunState.CANCELLING})
_DAY: Final = timedelta(days=1)
_FIRST_DAY: Final = datetime(1970, 1, 1, tzinfo=UTC)
_END_DAY: Final = datetime(9999, 1, 1, tzinfo=UTC)
_ABOVE_ALL: Final = UUID(int=2**128 - 1)
_BELOW_ALL: Final = UUID(int=0)


@dataclass(frozen=True, slots=True)
class RunSearch:
    """Which runs of a namespace are wanted; what is None or empty does not matter.

    Attributes:
        namespace: whose runs.
        job: id of their job.
        job_name: name of their job.
        states: any of these.
        reasons: any of these.
        lanes: any of these.
        pool: that they are for.
        origin: what asked for them.
        since: due at or after this instant.
        until: due before this one.
        labels: their jobs have all of these.
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


class _Ask(NamedTuple):
    wanted: RunSearch
    limit: int
    window: int


class Found(NamedTuple):
    """Some runs, and where the next page begins: JSON values; None: there is none."""

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
    """List runs, the newest first: those of one job by their instants, others as they were made.

    Args:
        connection: bound to whoever asks; the namespace must be one of his.
        wanted: see there.
        limit: runs at most.
        place: of the page before; its filters must have been the same.
        window: rows to look at.
    """
    ask = _Ask(wanted, limit, window)
    job = wanted.job or _recurring_job(connection, wanted)
    if job is not None:
        return _of_job(connection, ask, job, place)
    before = UUID(place[0]) if place else _ABOVE_ALL
    states = frozenset(wanted.states)
    if states == {RunState.DEAD}:
        return _dead(connection, ask, before)
    if states == {RunState.WAITING}:
        return _waiting(connection, ask, before)
    if states and states <= _LIVE:
        return _live(connection, ask, before)
    return _newest(connection, ask, before)


def _recurring_job(connection: Connection, wanted: RunSearch) -> UUID | None:
    """Return the recurring job of the wanted name; one-time jobs share names, and no index leads to them."""
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


def _of_job(connection: Connection, ask: _Ask, job: UUID, place: Sequence[str] | None) -> Found:
    """Walk the run key backwards, from day to day."""
    ask = ask._replace(window=min(ask.window, _SCATTERED))
    r = t.runs
    key = (r.c.scheduled_for, r.c.origin, r.c.request_id)
    conditions: list[ColumnElement[bool]] = [r.c.job_id == job, *_due(ask.wanted, r)]
    if place is not None:
        at = datetime.fromisoformat(place[0])
        # The first condition leaves days out; the second is the place itself.
        conditions += [r.c.scheduled_for <= at, tuple_(*key) < (at, place[1], place[2])]
    order = [column.desc() for column in key]
    number = func.row_number().over(order_by=order).label("number")
    seen = select(*r.c, number).where(*conditions).order_by(*order).limit(ask.window).subquery()
    rows = _marked(connection, ask, seen, [seen.c.scheduled_for, seen.c.origin, seen.c.request_id])

    def instant(row: Row) -> list[str]:
        return [row["scheduled_for"].isoformat(), row["origin"], row["request_id"]]

    return _page(rows, ask.limit, instant)


def _dead(connection: Connection, ask: _Ask, before: UUID) -> Found:
    d, r = t.dead_letters, t.runs
    number = func.row_number().over(order_by=d.c.run_id.desc()).label("number")
    seen = (
        select(*r.c, number)
        .join_from(d, r, and_(r.c.id == d.c.run_id, r.c.scheduled_for == d.c.scheduled_for))
        .where(d.c.namespace == ask.wanted.namespace, d.c.run_id < before)
        .order_by(d.c.run_id.desc())
        .limit(ask.window)
        .subquery()
    )
    rows = _marked(connection, ask, seen, [seen.c.id])
    return _page(rows, ask.limit, _by_id)


def _marked(
    connection: Connection, ask: _Ask, seen: FromClause, key: Sequence[ColumnElement[Any]]
) -> list[Row]:
    """Return the rows of a window that fit, and its last one anyway; nothing more is read."""
    fits = and_(*_fitting(ask.wanted, seen))
    is_last = seen.c.number == ask.window
    query = (
        _summary(seen, seen.c.request_id, fits.label("fits"), is_last.label("is_last"))
        .where(or_(fits, is_last))
        .order_by(*(column.desc() for column in key))
        .limit(ask.limit + 1)
    )
    return _read(connection, query)


def _waiting(connection: Connection, ask: _Ask, before: UUID) -> Found:
    floor = connection.execute(select(func.noonmark_waits_floor(before, ask.window))).scalar()
    w, r = t.waits, t.runs
    query = (
        _summary(r)
        .where(
            w.c.run_id == r.c.id,
            w.c.scheduled_for == r.c.scheduled_for,
            w.c.run_id < before,
            w.c.run_id >= (floor or _BELOW_ALL),
            *_fitting(ask.wanted, r),
        )
        .order_by(w.c.run_id.desc())
        .limit(ask.limit + 1)
    )
    return _above(_read(connection, query), ask.limit, floor)


def _live(connection: Connection, ask: _Ask, before: UUID) -> Found:
    window = min(ask.window, _SCATTERED)
    live = func.noonmark_live_runs(before, window).table_valued("run_id", "first_at", "last_at")
    found = connection.execute(select(live)).all()
    if not found:
        return Found([], None)
    floor = found[-1][0] if len(found) == window else None
    r = t.runs
    query = (
        _summary(r)
        .where(
            r.c.id.in_([row[0] for row in found]),
            r.c.scheduled_for.between(min(row[1] for row in found), max(row[2] for row in found)),
            *_fitting(ask.wanted, r),
        )
        .order_by(r.c.id.desc())
        .limit(ask.limit + 1)
    )
    return _above(_read(connection, query), ask.limit, floor)


def _newest(connection: Connection, ask: _Ask, before: UUID) -> Found:
    wanted = ask.wanted
    first = _midnight(wanted.since) if wanted.since else _FIRST_DAY
    # A bound within a day leaves that day in: what the filter leaves out there counts into the window.
    end = _midnight(wanted.until - timedelta(microseconds=1)) + _DAY if wanted.until else _END_DAY
    floor = connection.execute(select(func.noonmark_runs_floor(before, first, end, ask.window))).scalar()
    r = t.runs
    query = (
        _summary(r)
        .where(
            r.c.id < before,
            r.c.id >= (floor or _BELOW_ALL),
            r.c.scheduled_for >= first,
            r.c.scheduled_for < end,
            *_fitting(ask.wanted, r),
        )
        .order_by(r.c.id.desc())
        .limit(ask.limit + 1)
    )
    return _above(_read(connection, query), ask.limit, floor)


def _summary(runs: FromClause, *more: ColumnElement[Any]) -> Select[Any]:
    j, w = t.jobs, t.waits
    columns = (*run_summary(runs), j.c.name.label("job_name"), j.c.kind, j.c.handler, waits_for(), *more)
    return (
        select(*columns)
        .join_from(runs, j, j.c.id == runs.c.job_id, isouter=True)
        .join(w, w.c.run_id == runs.c.id, isouter=True)
    )


def _fitting(wanted: RunSearch, r: FromClause) -> list[ColumnElement[bool]]:
    """Return all conditions but those on the job's id."""
    conditions: list[ColumnElement[bool]] = [r.c.namespace == wanted.namespace, *_due(wanted, r)]
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
    """Make the page of marked rows: the last of a window shows where to go on."""
    fits = [_bare(row) for row in rows if row["fits"]]
    if len(fits) > limit:
        return Found(fits[:limit], place(rows[limit - 1]))
    last = next((row for row in rows if row["is_last"]), None)
    return Found(fits, place(last) if last else None)


def _bare(row: Row) -> dict[str, Any]:
    return {name: row[name] for name in row if name not in {"fits", "is_last", "request_id"}}


def _above(rows: Sequence[Row], limit: int, floor: UUID | None) -> Found:
    """Make the page of rows down to a floor, below which there may be more."""
    shown = [dict(row) for row in rows[:limit]]
    if len(rows) > limit:
        return Found(shown, _by_id(shown[-1]))
    return Found(shown, [str(floor)] if floor else None)


def _midnight(at: datetime) -> datetime:
    return at.astimezone(UTC).replace(hour=0, minute=0, second=0, microsecond=0)
