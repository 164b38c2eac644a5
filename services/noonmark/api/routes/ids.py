"""Route that completes the ids of jobs, runs, backfills and alerts."""

from __future__ import annotations

from types import MappingProxyType
from typing import Annotated, Final

from fastapi import Query

from noonmark.api.http.problems import ProblemError
from noonmark.api.requests.routing import Caller, needs, resource
from noonmark.core.access.roles import EVERYWHERE, Permission
from noonmark.schemas.api.ids import FoundId, FoundIds
from noonmark.schemas.problems.types import FORBIDDEN
from noonmark.store.views.ids import IdKind, IdState, find_ids

router = resource("ids")

_MOST: Final = 10
_PREFIX: Final = (
    "^[0-9A-Fa-f]{8}(-([0-9A-Fa-f]{0,4}|[0-9A-Fa-f]{4}-([0-9A-Fa-f]{0,4}"
    "|[0-9A-Fa-f]{4}-([0-9A-Fa-f]{0,4}|[0-9A-Fa-f]{4}-[0-9A-Fa-f]{0,12}))))?$"
)
"""The beginning of a UUID, with its hyphens."""

_WITHOUT_KIND: Final[tuple[IdKind, ...]] = ("job", "run")
_PERMISSIONS: Final = MappingProxyType[IdKind, Permission](
    {
        "job": Permission.JOBS_READ,
        "run": Permission.RUNS_READ,
        "backfill": Permission.JOBS_READ,
        "alert": Permission.RUNS_READ,
    }
)
"""What reading an object of a kind requires: the same as the route that reads it by its whole id."""


@router.get("/ids")
def find(
    prefix: Annotated[str, Query(pattern=_PREFIX, description="At least the first 8 characters of the id.")],
    kind: Annotated[IdKind | None, Query(description="Only this kind. Default: jobs and runs.")] = None,
    state: Annotated[IdState | None, Query(description="Only objects in this state.")] = None,
    caller: Caller = needs(None),
) -> FoundIds:
    """Find the jobs and runs, or the backfills or alerts, whose id begins with a prefix.

    All namespaces are searched in which the credential can read the kind: jobs and backfills require
    `jobs:read`, runs and alerts `runs:read`. At most 10 are returned.
    """
    if kind is not None and not caller.principal.may(_PERMISSIONS[kind]):
        raise ProblemError(FORBIDDEN, f"ids of the kind {kind} require {_PERMISSIONS[kind]} in a namespace")
    digits = prefix.replace("-", "").lower()
    with caller.reading() as session:
        rows = [
            row
            for one in ([kind] if kind else _WITHOUT_KIND)
            for row in find_ids(session.sql, digits, one, state=state, limit=_MOST + 1)
        ]
    # Alerts about the installation have no namespace.
    allowed = [row for row in rows if caller.may(_PERMISSIONS[row["kind"]], row["namespace"] or EVERYWHERE)]
    return FoundIds(items=[FoundId.model_validate(row) for row in allowed[:_MOST]], more=len(allowed) > _MOST)
