"""Ids of jobs and runs, found by their first digits."""

from __future__ import annotations

from typing import Literal
from uuid import UUID

from sqlalchemy import Connection, literal, select

from noonmark.core.states import JobState, RunState
from noonmark.store.tables import tables as t
from noonmark.store.views.job_columns import shown_state
from noonmark.store.views.paging import Row

IdKind = Literal["job", "run"]
IdState = JobState | RunState


def find_ids(
    connection: Connection, digits: str, kind: IdKind, *, state: IdState | None = None, limit: int
) -> list[Row]:
    """Return jobs or runs whose ids begin with hexadecimal digits, in the order of ids.

    Args:
        connection: a connection of `paging.reader`.
        digits: 1 to 32 digits, without hyphens.
        kind: jobs or runs.
        state: only those in this state, of jobs the one that listings show.
        limit: the maximum number of rows.
    """
    first, last = UUID(digits.ljust(32, "0")), UUID(digits.ljust(32, "f"))
    j, r = t.jobs.c, t.runs.c
    if kind == "job":
        shown = shown_state()
        found = select(
            literal("job").label("kind"), j.id, j.namespace, j.name.label("job_name"), shown.label("state")
        )
        found = found.where(j.id.between(first, last)).order_by(j.id)
    else:
        shown = r.state
        found = select(literal("run").label("kind"), r.id, r.namespace, j.name.label("job_name"), r.state)
        found = found.select_from(t.runs.outerjoin(t.jobs, j.id == r.job_id))
        found = found.where(r.id.between(first, last)).order_by(r.id)
    if state is not None:
        found = found.where(shown == state)
    return [dict(row) for row in connection.execute(found.limit(limit)).mappings()]
