"""Lists jobs of one namespace by any field, at a bounded cost for each page.

A listing walks one index from the newest job on. If a filter has no index, a page checks at most
`MOST_CHECKED` jobs and says where to continue: such a page may be short or empty without being the last one.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final
from uuid import UUID

import orjson
from sqlalchemy import (
    ColumnElement,
    Connection,
    FromClause,
    Select,
    Text,
    case,
    exists,
    func,
    null,
    or_,
    select,
    true,
)
from sqlalchemy import cast as as_type
from sqlalchemy.dialects.postgresql import JSONB

from noonmark.core.states import JobState, Lane
from noonmark.store.documents.workflows import KIND
from noonmark.store.tables import tables as t
from noonmark.store.views.job_columns import job_columns, last_run, one_time, shown_state
from noonmark.store.views.paging import Page, Row, with_lane
from noonmark.store.views.pauses import driver_of
from noonmark.store.views.workflow_tasks import stored_tasks

MOST_CHECKED: Final = 3000
"""Maximum number of jobs that one page checks if a filter has no index."""

_HALTED: Final = frozenset({JobState.PAUSED, JobState.CANCELLED, JobState.BROKEN})
"""States that equal the stored ones and have an index."""


@dataclass(frozen=True, slots=True)
class JobsWanted:
    """Selects jobs that meet all conditions; fields that are None or empty do not restrict.

    Attributes:
        states: any of these states.
        lanes: any of these lanes.
        labels: all of these labels.
        search: a part of the name, of a label's key or of its value, in any case.
        recurring: True for jobs with a schedule, False for jobs with one instant.
    """

    namespace: str
    name: str | None = None
    search: str | None = None
    states: Sequence[JobState] = ()
    lanes: Sequence[Lane] = ()
    pool: str | None = None
    kind: str | None = None
    handler: str | None = None
    owner: str | None = None
    labels: Mapping[str, str] = field(default_factory=dict)
    recurring: bool | None = None


def list_jobs(
    connection: Connection, wanted: JobsWanted, *, limit: int = 50, before: UUID | None = None
) -> Page[UUID]:
    """List jobs, the newest first, without their payloads.

    The page's `next` may be set although it has fewer rows than `limit`: more may follow.
    """
    walk, walked = _walk(wanted, before)
    j: FromClause = walk.limit(MOST_CHECKED).subquery("checked")
    source = j
    if "state" not in j.c:
        # Look each job up by its key, even if the planner would prefer to scan the whole table.
        job = select(t.jobs).where(t.jobs.c.id == j.c.id).limit(1).lateral("job")
        source, j = j.join(job, true()), job
    rest = _filters(wanted, j, walked)
    if not rest:
        ids = list(connection.scalars(walk.limit(limit + 1)))
    else:
        query = select(j.c.id).select_from(source).where(*rest).order_by(j.c.id.desc())
        ids = list(connection.scalars(query.limit(limit + 1)))
    if len(ids) > limit:
        return Page(_rows(connection, ids[:limit]), ids[limit - 1])
    # If the walk was cut short, the next page continues below the last job that this one checked.
    cut = connection.scalar(walk.offset(MOST_CHECKED - 1).limit(1)) if rest else None
    return Page(_rows(connection, ids), cut)


def find_job(connection: Connection, job_id: UUID) -> Row | None:
    """Return a job with its payload; of a workflow, with `tasks` as `document_of` reads them."""
    work = as_type(t.jobs.c.work, Text).label("work")
    columns = [work if column.key == "work" else column for column in job_columns()]
    query = select(*columns, last_run().label("last_run_at")).where(t.jobs.c.id == job_id)
    found = connection.execute(query).mappings().first()
    if found is None:
        return None
    row = with_lane({**found, "work": _parsed(found["work"])})
    if row["kind"] == KIND:
        row["tasks"] = stored_tasks(driver_of(connection), job_id, [row["version"]]).get(row["version"], [])
    return row


def _parsed(work: str) -> Any:
    """Return the work of a job; None if it was changed outside noonmark so that nothing can read it."""
    try:
        return orjson.loads(work)
    except ValueError:
        return None


def _walk(wanted: JobsWanted, before: UUID | None) -> tuple[Select[Any], str]:
    """Return the ids to check, the newest first, and the name of the filter that the index covers."""
    j, labels = t.jobs, t.job_labels
    if wanted.name is None and wanted.labels:
        key, value = next(iter(wanted.labels.items()))
        walk = select(labels.c.job_id.label("id")).where(
            labels.c.namespace == wanted.namespace, labels.c.key == key, labels.c.value == value
        )
        place: ColumnElement[Any] = labels.c.job_id
        walked = "label"
    else:
        names = ("id", "name", "kind", "handler", "lane", "pool", "owner", "labels", "state", "schedule")
        walk = select(*(j.c[name] for name in names)).where(j.c.namespace == wanted.namespace)
        place, walked = j.c.id, ""
        for name in ("name", "owner"):
            if (value := getattr(wanted, name)) is not None:
                walk, walked = walk.where(j.c[name] == value), name
                break
        else:
            if len(wanted.states) == 1 and wanted.states[0] in _HALTED:
                walk, walked = walk.where(j.c.state == wanted.states[0].value), "states"
    if before is not None:
        walk = walk.where(place < before)
    return walk.order_by(place.desc()), walked


def _filters(wanted: JobsWanted, j: FromClause, walked: str) -> list[ColumnElement[bool]]:
    """Return the conditions that the checked jobs must meet."""
    plain = {"name": "name", "pool": "pool", "kind": "kind", "handler": "handler", "owner": "owner"}
    found = [
        j.c[column] == getattr(wanted, name)
        for name, column in plain.items()
        if name != walked and getattr(wanted, name) is not None
    ]
    labels = dict(list(wanted.labels.items())[walked == "label" :])
    if labels:
        found.append(j.c.labels.contains(as_type(labels, JSONB)))
    if wanted.states and walked != "states":
        found.append(shown_state(j).in_([state.value for state in wanted.states]))
    if wanted.lanes:
        found.append(j.c.lane.in_([lane.value for lane in wanted.lanes]))
    if wanted.recurring is not None:
        found.append(one_time(j) if not wanted.recurring else ~one_time(j))
    if wanted.search is not None:
        found.append(_holds(j, wanted.search))
    return found


def _holds(j: FromClause, text: str) -> ColumnElement[bool]:
    pair = func.jsonb_each_text(j.c.labels).table_valued("key", "value").render_derived("pair")
    in_label = exists(
        select(null())
        .select_from(pair)
        .where(
            or_(pair.c.key.icontains(text, autoescape=True), pair.c.value.icontains(text, autoescape=True))
        )
        .correlate(j)
    )
    return or_(j.c.name.icontains(text, autoescape=True), in_label)


def _rows(connection: Connection, ids: Sequence[UUID]) -> list[Row]:
    if not ids:
        return []
    j = t.jobs
    work = func.noonmark_readable(j.c.work)
    without = as_type(work, JSONB).op("-", return_type=JSONB)(as_type("payload", Text))
    lean = case((func.json_typeof(work) == "object", without)).label("work")
    columns = [lean if column.key == "work" else column for column in job_columns()]
    query = select(*columns, last_run().label("last_run_at")).where(j.c.id.in_(ids)).order_by(j.c.id.desc())
    return [with_lane(row) for row in connection.execute(query).mappings()]
