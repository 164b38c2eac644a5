"""Workers and pools for the API, whose role cannot read the tables of the installation."""

from __future__ import annotations

from typing import Final

from sqlalchemy import Connection, case, func, select

from noonmark.store.tables import tables as t
from noonmark.store.views.paging import Row

MOST: Final = 1_000


def list_workers(connection: Connection, *, pool: str | None = None, everyone: bool = False) -> list[Row]:
    """List up to 1,000 workers, the newest first; `everyone` includes those that left or lapsed."""
    w = t.workers
    load = func.noonmark_worker_load().table_valued("worker", "runs").render_derived()
    state = case((w.c.left_at.is_not(None), "left"), (w.c.lapsed_at.is_not(None), "lapsed"), else_="alive")
    query = (
        select(
            w,
            state.label("state"),
            func.extract("epoch", func.noonmark_now() - w.c.beat_at).label("silent_seconds"),
            func.coalesce(load.c.runs, 0).label("started_runs"),
        )
        .select_from(w.outerjoin(load, load.c.worker == w.c.id))
        .order_by(w.c.id.desc())
        .limit(MOST)
    )
    if pool is not None:
        query = query.where(w.c.pool == pool)
    if not everyone:
        query = query.where(w.c.left_at.is_(None), w.c.lapsed_at.is_(None))
    return [dict(row) for row in connection.execute(query).mappings()]


def list_pools(connection: Connection) -> list[Row]:
    """List pools with the number of their live workers."""
    p, w = t.pools, t.workers
    workers = select(func.count()).where(w.c.pool == p.c.name, w.c.left_at.is_(None), w.c.lapsed_at.is_(None))
    query = select(p, workers.scalar_subquery().label("workers")).order_by(p.c.name)
    return [dict(row) for row in connection.execute(query).mappings()]
