"""Routes of the audit log, for admins of the namespaces concerned."""

from __future__ import annotations

from dataclasses import asdict
from typing import Annotated, Final

from fastapi import Query

from noonmark.api.http.cursors import DEFAULT_LIMIT, CursorText, Limit
from noonmark.api.http.query_parameters import Since, Until
from noonmark.api.requests.routing import Caller, NamespaceParameter, needs, resource
from noonmark.core.access.roles import Permission
from noonmark.schemas.api.audit import AuditItem, OutcomeName
from noonmark.schemas.api.common import Page
from noonmark.store.access.audit import Outcome
from noonmark.store.views.audit import AuditFilter, list_entries

router = resource("audit")

Named = Annotated[str | None, Query(min_length=1, max_length=500)]
_LISTING: Final = "audit"


@router.get("/audit", name="list")
def list_(
    *,
    namespace: NamespaceParameter = None,
    actor: Annotated[
        Named, Query(description="Only actions of this principal, such as `key:<key id>`.")
    ] = None,
    action: Annotated[Named, Query(description="Only this action, such as `job.pause`.")] = None,
    object: Annotated[Named, Query(description="Only actions on this object, such as `job:<id>`.")] = None,  # noqa: A002 - the field's name
    outcome: Annotated[OutcomeName | None, Query(description="Only actions with this outcome.")] = None,
    since: Since = None,
    until: Until = None,
    limit: Limit = DEFAULT_LIMIT,
    cursor: CursorText = None,
    caller: Caller = needs(Permission.AUDIT_READ),
) -> Page[AuditItem]:
    """List actions in namespaces that the caller administers, newest first."""
    if namespace is not None:
        caller.require(namespace)
    wanted = AuditFilter(
        namespace=namespace,
        actor=actor,
        action=action,
        object=object,
        outcome=None if outcome is None else Outcome(outcome),
        since=since,
        until=until,
    )
    filters = asdict(wanted)
    before = caller.parts.cursors.read(_LISTING, filters, cursor)
    with caller.parts.database.reading(caller.principal.namespaces(Permission.AUDIT_READ)) as session:
        page = list_entries(session.sql, wanted, limit=limit, before=before)
    return Page[AuditItem](
        items=[AuditItem.model_validate(row) for row in page.rows],
        next_cursor=None if page.next is None else caller.parts.cursors.make(_LISTING, filters, page.next),
    )
