"""Route that completes the ids of jobs and runs."""

from __future__ import annotations

from typing import Annotated, Final, get_args

from fastapi import Query

from noonmark.api.requests.routing import Caller, needs, resource
from noonmark.core.access.roles import Permission
from noonmark.schemas.api.ids import FoundId, FoundIds
from noonmark.store.views.ids import IdKind, IdState, find_ids

router = resource("ids")

_MOST: Final = 10
_PREFIX: Final = (
    "^[0-9A-Fa-f]{8}(-([0-9A-Fa-f]{0,4}|[0-9A-Fa-f]{4}-([0-9A-Fa-f]{0,4}"
    "|[0-9A-Fa-f]{4}-([0-9A-Fa-f]{0,4}|[0-9A-Fa-f]{4}-[0-9A-Fa-f]{0,12}))))?$"
)
"""The beginning of a UUID, with its hyphens."""


@router.get("/ids")
def find(
    prefix: Annotated[str, Query(pattern=_PREFIX, description="At least the first 8 characters of the id.")],
    kind: Annotated[IdKind | None, Query(description="Only jobs, or only runs.")] = None,
    state: Annotated[IdState | None, Query(description="Only jobs and runs in this state.")] = None,
    caller: Caller = needs(Permission.RUNS_READ),
) -> FoundIds:
    """Find the jobs and runs whose id begins with a prefix, in all namespaces that the credential can read.

    At most 10 are returned.
    """
    digits = prefix.replace("-", "").lower()
    with caller.reading() as session:
        rows = [
            row
            for one in ([kind] if kind else get_args(IdKind))
            for row in find_ids(session.sql, digits, one, state=state, limit=_MOST + 1)
        ]
    allowed = [row for row in rows if caller.may(Permission.RUNS_READ, row["namespace"])]
    return FoundIds(items=[FoundId.model_validate(row) for row in allowed[:_MOST]], more=len(allowed) > _MOST)
