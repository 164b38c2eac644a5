"""Routes of alerts, which the observer raises, and of their deliveries."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict
from datetime import datetime
from typing import Annotated, Any, Final
from uuid import UUID

from fastapi import Query

from noonmark.api.http.cursors import DEFAULT_LIMIT, CursorText, Limit
from noonmark.api.http.problems import ProblemError
from noonmark.api.requests.routing import Caller, NamespaceParameter, needs, resource
from noonmark.core.access.roles import EVERYWHERE, Permission
from noonmark.core.monitoring.alerts import AlertKind
from noonmark.schemas.api.alerts import AlertDetail, AlertItem, AlertState
from noonmark.schemas.api.common import Page
from noonmark.schemas.problems.types import NOT_FOUND
from noonmark.store.views.alerts import AlertFilter, list_alerts, show_alert

router = resource("alerts")

_LISTING: Final = "alerts"
_OPEN: Final = {"open": True, "resolved": False, "all": None}


@router.get("/alerts", name="list")
def list_(
    *,
    state: Annotated[AlertState, Query(description="Only open alerts, only resolved ones, or all.")] = "open",
    kind: Annotated[AlertKind | None, Query(description="Only alerts of this kind.")] = None,
    namespace: NamespaceParameter = None,
    job_id: Annotated[UUID | None, Query(description="Only alerts about the job with this id.")] = None,
    limit: Limit = DEFAULT_LIMIT,
    cursor: CursorText = None,
    caller: Caller = needs(Permission.RUNS_READ),
) -> Page[AlertItem]:
    """List alerts in namespaces that the caller can read, newest first.

    Alerts about the installation have no namespace; only callers who can read all namespaces see them.
    """
    if namespace is not None:
        caller.require(namespace)
    wanted = AlertFilter(
        open=_OPEN[state], kind=None if kind is None else kind.value, namespace=namespace, job_id=job_id
    )
    filters = {name: None if value is None else str(value) for name, value in asdict(wanted).items()}
    place = caller.parts.cursors.read(_LISTING, filters, cursor)
    before = (datetime.fromisoformat(place[0]), UUID(place[1])) if place else None
    with caller.parts.database.reading(caller.principal.namespaces(Permission.RUNS_READ)) as session:
        page = list_alerts(session.sql, wanted, limit=limit, before=before)
    following = None
    if page.next is not None:
        following = caller.parts.cursors.make(
            _LISTING, filters, [page.rows[-1]["raised_at"].isoformat(), str(page.next)]
        )
    items = [AlertItem.model_validate(_shown(caller, row)) for row in page.rows]
    return Page[AlertItem](items=items, next_cursor=following)


@router.get("/alerts/{alert_id:uuid}")
def read_alert(alert_id: UUID, caller: Caller = needs(Permission.RUNS_READ)) -> AlertDetail:
    """Read an alert with its details and its deliveries to each channel."""
    with caller.parts.database.reading(caller.principal.namespaces(Permission.RUNS_READ)) as session:
        found = show_alert(session.sql, alert_id)
    if found is None:
        raise ProblemError(NOT_FOUND, f"there is no alert {alert_id}")
    return AlertDetail.model_validate(_shown(caller, found))


def _shown(caller: Caller, alert: Mapping[str, Any]) -> Mapping[str, Any]:
    """Hide the error text of a handler from callers without permission; the summary may quote it, too."""
    error = alert["details"].get("error")
    if not error or caller.may(Permission.PAYLOADS_READ, alert["namespace"] or EVERYWHERE):
        return alert
    return {
        **alert,
        "summary": alert["summary"].replace(error, "(hidden)"),
        "details": {**alert["details"], "error": None},
        "error_hidden": True,
    }
