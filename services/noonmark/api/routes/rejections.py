"""Routes of refused Kafka records, for platform admins: their namespace is not reliable."""

from __future__ import annotations

import base64
from collections.abc import Mapping
from typing import Annotated, Any, Final

from fastapi import Path, Query

from noonmark.api.http.cursors import DEFAULT_LIMIT, CursorText, Limit
from noonmark.api.http.problems import ProblemError
from noonmark.api.http.query_parameters import Since, Text, Until
from noonmark.api.requests.routing import Caller, needs, resource
from noonmark.core.access.roles import Permission
from noonmark.schemas.api.common import Page
from noonmark.schemas.api.rejections import Rejection, RejectionDetail
from noonmark.schemas.problems.types import NOT_FOUND
from noonmark.store.views import paging

router = resource("rejections")

_LISTING: Final = "rejections"
_EXCERPT: Final = 200


@router.get("/rejections")
def list_rejections(
    *,
    source: Annotated[Text | None, Query(description="Only events with this source.")] = None,
    since: Since = None,
    until: Until = None,
    limit: Limit = DEFAULT_LIMIT,
    cursor: CursorText = None,
    caller: Caller = needs(Permission.PLATFORM),
) -> Page[Rejection]:
    """List refused submissions, newest first."""
    filters = {"source": source, "since": str(since or ""), "until": str(until or "")}
    place = caller.parts.cursors.read(_LISTING, filters, cursor)
    with caller.reading() as session:
        page = paging.list_rejections(
            session.sql, source=source, since=since, until=until, limit=limit, before=place
        )
    return Page(
        items=[Rejection.model_validate(_shown(row)) for row in page.rows],
        next_cursor=caller.parts.cursors.make(_LISTING, filters, page.next) if page.next else None,
    )


@router.get("/rejections/{rejection_id}")
def read_rejection(
    rejection_id: Annotated[int, Path(ge=1, lt=2**63)], caller: Caller = needs(Permission.PLATFORM)
) -> RejectionDetail:
    """Read a refused submission with all problems, and the stored part of the record."""
    with caller.reading() as session:
        found = paging.find_rejection(session.sql, rejection_id)
    if found is None:
        raise ProblemError(NOT_FOUND, f"there is no rejection {rejection_id}")
    value = found["value"]
    kept = base64.b64encode(value).decode() if value is not None else None
    return RejectionDetail.model_validate({**_shown(found), "value_base64": kept})


def _shown(row: Mapping[str, Any]) -> dict[str, Any]:
    text = (row["value"] or b"").decode("utf-8", errors="replace")
    return {**row, "offset": row["record_offset"], "excerpt": text[:_EXCERPT]}
