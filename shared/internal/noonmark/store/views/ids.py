"""Ids of jobs, runs, backfills and alerts, found by their first digits."""

from __future__ import annotations

from collections.abc import Callable
from types import MappingProxyType
from typing import Any, Final, Literal
from uuid import UUID

from sqlalchemy import ColumnElement, Connection, FromClause, case, literal, select

from noonmark.core.states import BackfillState, JobState, RunState
from noonmark.store.tables import tables as t
from noonmark.store.views.job_columns import shown_state
from noonmark.store.views.paging import Row

IdKind = Literal["job", "run", "backfill", "alert"]
IdState = JobState | RunState | BackfillState | Literal["open", "resolved"]

_TABLES: Final = MappingProxyType[IdKind, FromClause](
    {"job": t.jobs, "run": t.runs, "backfill": t.backfills, "alert": t.alerts}
)
_STATES: Final = MappingProxyType[IdKind, Callable[[], ColumnElement[Any]]](
    {
        "job": shown_state,
        "run": lambda: t.runs.c.state,
        "backfill": lambda: t.backfills.c.state,
        "alert": lambda: case((t.alerts.c.resolved_at.is_(None), "open"), else_="resolved"),
    }
)


def find_ids(
    connection: Connection, digits: str, kind: IdKind, *, state: IdState | None = None, limit: int
) -> list[Row]:
    """Return objects of a kind whose ids begin with hexadecimal digits, in the order of ids.

    Args:
        connection: a connection of `paging.reader`.
        digits: 1 to 32 digits, without hyphens.
        kind: the kind of the objects.
        state: only those in this state, the one that listings show.
        limit: the maximum number of rows.
    """
    first, last = UUID(digits.ljust(32, "0")), UUID(digits.ljust(32, "f"))
    table, shown, jobs = _TABLES[kind], _STATES[kind](), t.jobs
    source = table if table is jobs else table.outerjoin(jobs, jobs.c.id == table.c.job_id)
    found = (
        select(
            literal(kind).label("kind"),
            table.c.id,
            table.c.namespace,
            jobs.c.name.label("job_name"),
            shown.label("state"),
        )
        .select_from(source)
        .where(table.c.id.between(first, last))
        .order_by(table.c.id)
    )
    if state is not None:
        found = found.where(shown == state)
    return [dict(row) for row in connection.execute(found.limit(limit)).mappings()]
