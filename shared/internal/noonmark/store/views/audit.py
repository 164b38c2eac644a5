"""Listings of the audit log. `store.access.audit` writes it, also in services without SQLAlchemy."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from sqlalchemy import Connection, select

from noonmark.store.access.audit import Outcome
from noonmark.store.tables import tables as t
from noonmark.store.views.paging import Page


@dataclass(frozen=True, slots=True)
class AuditFilter:
    """Selects entries; fields that are None do not restrict."""

    namespace: str | None = None
    actor: str | None = None
    action: str | None = None
    object: str | None = None
    outcome: Outcome | None = None
    since: datetime | None = None
    until: datetime | None = None


def list_entries(
    connection: Connection, wanted: AuditFilter, *, limit: int = 50, before: int | None = None
) -> Page[int]:
    """List entries, the newest first; `before` is the id of the last one of the previous page."""
    a = t.audit_log
    query = select(a).order_by(a.c.id.desc()).limit(limit + 1)
    for column, value in (
        (a.c.namespace, wanted.namespace),
        (a.c.actor, wanted.actor),
        (a.c.action, wanted.action),
        (a.c.object, wanted.object),
        (a.c.outcome, wanted.outcome),
    ):
        if value is not None:
            query = query.where(column == value)
    if wanted.since is not None:
        query = query.where(a.c.at >= wanted.since)
    if wanted.until is not None:
        query = query.where(a.c.at < wanted.until)
    if before is not None:
        query = query.where(a.c.id < before)
    rows = [dict(row) for row in connection.execute(query).mappings()]
    return Page(rows[:limit], rows[limit - 1]["id"] if len(rows) > limit else None)
