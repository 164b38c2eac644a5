"""Alerts for people: a listing, and one alert with its deliveries."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

from sqlalchemy import Connection, Select, case, func, select, tuple_
from sqlalchemy.sql import ColumnElement

from noonmark.store.tables import tables as t
from noonmark.store.views.paging import Page, Row


@dataclass(frozen=True, slots=True)
class AlertFilter:
    """Selects alerts; fields that are None do not restrict."""

    open: bool | None = None
    kind: str | None = None
    namespace: str | None = None
    job_id: UUID | None = None


def list_alerts(
    connection: Connection,
    wanted: AlertFilter,
    *,
    limit: int = 50,
    before: tuple[datetime, UUID] | None = None,
) -> Page[UUID]:
    """List alerts, the newest first.

    Args:
        connection: the API's connection.
        wanted: the filter.
        limit: maximum number of alerts.
        before: time and id of the last alert on the previous page.
    """
    a = t.alerts
    query = _shown().order_by(a.c.raised_at.desc(), a.c.id.desc()).limit(limit + 1)
    for column, value in (
        (a.c.kind, wanted.kind),
        (a.c.namespace, wanted.namespace),
        (a.c.job_id, wanted.job_id),
    ):
        if value is not None:
            query = query.where(column == value)
    if wanted.open is not None:
        query = query.where(a.c.resolved_at.is_(None) if wanted.open else a.c.resolved_at.is_not(None))
    if before is not None:
        query = query.where(tuple_(a.c.raised_at, a.c.id) < before)
    rows = [dict(row) for row in connection.execute(query).mappings()]
    return Page(rows[:limit], rows[limit - 1]["id"] if len(rows) > limit else None)


def show_alert(connection: Connection, alert: UUID) -> Row | None:
    """Return an alert with `deliveries`, or None."""
    found = connection.execute(_shown().where(t.alerts.c.id == alert)).mappings().first()
    return None if found is None else {**found, "deliveries": _deliveries(connection, alert)}


def _shown() -> Select[Any]:
    # A job that no longer exists has no name.
    return select(t.alerts, t.jobs.c.name.label("job_name")).select_from(
        t.alerts.outerjoin(t.jobs, t.jobs.c.id == t.alerts.c.job_id)
    )


def _deliveries(connection: Connection, alert: UUID) -> list[Row]:
    d = t.alert_deliveries
    due: ColumnElement[bool] = func.isfinite(d.c.due_at)
    state = case((d.c.sent_at.is_not(None), "sent"), (due, "waiting"), else_="given_up")
    query = (
        select(
            d.c.channel, d.c.change, d.c.attempts, d.c.sent_at, d.c.last_error,
            state.label("state"),
            case((due, d.c.due_at), else_=None).label("due_at"),
        )
        .where(d.c.alert_id == alert)
        .order_by(d.c.channel, d.c.change)
    )  # fmt: skip
    return [dict(row) for row in connection.execute(query).mappings()]
