"""Routes of calendars: named sets of days that schedules exclude or are restricted to."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, Final

import psycopg
from fastapi import Body, Path, Query, Response

from noonmark.api.http.etags import Conditions, Preconditions, etag_of
from noonmark.api.http.problems import ProblemError
from noonmark.api.requests.routing import Caller, NamespaceParameter, needs, resource
from noonmark.core.access.roles import Permission
from noonmark.core.calendars import calendar as core
from noonmark.core.calendars.calendar import CalendarError
from noonmark.schemas.api.calendars import Calendar, CalendarChange, Calendars
from noonmark.schemas.problems.refusal import FieldError, Refused
from noonmark.schemas.problems.types import CONFLICT, NOT_FOUND
from noonmark.store.schedules import calendars
from noonmark.store.schedules.calendars import CalendarInUseError, CalendarRow
from noonmark.store.schedules.time_facts import change_time_facts

router = resource("calendars")

Name = Annotated[
    str,
    Path(pattern=f"^{core.NAME_PATTERN.pattern}$", description=f"Name of the calendar: {core.NAME_RULE}."),
]
DryRun = Annotated[bool, Query(description="Only preview the change.")]

_NAMED: Final = 20


@router.get("/calendars")
def list_calendars(
    namespace: NamespaceParameter = None, caller: Caller = needs(Permission.SETTINGS_READ)
) -> Calendars:
    """List the calendars of a namespace, with the number of jobs that use each."""
    where = caller.namespace(namespace)
    with caller.reading() as session:
        rows = calendars.list_calendars(session.raw, where)
    return Calendars(items=[_shown(row) for row in rows])


@router.get("/calendars/{name}")
def read_calendar(
    name: Name,
    response: Response,
    namespace: NamespaceParameter = None,
    caller: Caller = needs(Permission.SETTINGS_READ),
) -> Calendar:
    """Read a calendar."""
    where = caller.namespace(namespace)
    with caller.reading() as session:
        row = calendars.get_calendar(session.raw, where, name)
    if row is None:
        raise _missing(where, name)
    response.headers["ETag"] = _etag(row.digest)
    return _shown(row)


@router.put("/calendars/{name}")
def put_calendar(
    name: Name,
    response: Response,
    body: Annotated[dict[str, Any], Body()],
    conditions: Conditions,
    namespace: NamespaceParameter = None,
    *,
    dry_run: DryRun = False,
    caller: Caller = needs(Permission.CALENDARS_WRITE, "calendar.put"),
) -> CalendarChange:
    """Create a calendar, or replace all of its days; jobs that use it are planned again.

    The body contains `dates`, `ranges`, `weekdays` and `yearly`. Instants that have a verdict keep it. With
    `dry_run`, nothing is changed.
    """
    where = caller.namespace(namespace)
    wanted = _parse(body)
    if dry_run:
        with caller.reading() as session:
            done = calendars.preview_calendar(session.raw, where, name, lambda _: wanted)
            users = calendars.calendar_users(session.raw, where, name, wanted)
    else:
        with caller.changing(where) as act:
            act.object = f"calendar:{name}"
            raw = act.session.raw
            done = _edit(raw, where, name, wanted, conditions)
            users = calendars.calendar_users(raw, where, name, wanted)
            act.before = done.before.body() if done.before is not None else None
            act.after = wanted.body()
        response.headers["ETag"] = _etag(done.digest)
    before = done.before.body() if done.before is not None else {}
    return CalendarChange(
        name=name,
        namespace=where,
        dry_run=dry_run,
        change=done.change.value,
        digest=done.digest,
        added=_entries_without(wanted.body(), before),
        removed=_entries_without(before, wanted.body()),
        jobs=len(users.names) if dry_run else done.jobs,
        replanned=done.replanned,
        used_by=users.names[:_NAMED],
        without_next_instant=users.without_next,
        not_all_looked_at=users.more,
    )


@router.delete("/calendars/{name}", status_code=204)
def delete_calendar(
    name: Name,
    conditions: Conditions,
    namespace: NamespaceParameter = None,
    caller: Caller = needs(Permission.CALENDARS_WRITE, "calendar.delete"),
) -> None:
    """Delete a calendar that no job uses."""
    where = caller.namespace(namespace)
    with caller.changing(where) as act:
        act.object = f"calendar:{name}"
        change_time_facts(act.session.raw)
        before = calendars.get_calendar(act.session.raw, where, name)
        if before is None:
            raise _missing(where, name)
        conditions.check(_etag(before.digest))
        try:
            calendars.delete_calendar(act.session.raw, where, name)
        except CalendarInUseError as error:
            raise ProblemError(CONFLICT, str(error)) from error
        act.before = before.body


def _edit(
    connection: psycopg.Connection,
    namespace: str,
    name: str,
    wanted: core.Calendar,
    conditions: Preconditions,
) -> calendars.CalendarChange:
    """Replace the contents of a calendar if the preconditions are true."""

    def edit(before: core.Calendar | None) -> core.Calendar:
        conditions.check(_etag(before.digest() if before is not None else None), exists=before is not None)
        return wanted

    return calendars.edit_calendar(connection, namespace, name, edit)


def _parse(body: Mapping[str, Any]) -> core.Calendar:
    try:
        return core.Calendar.parse(body)
    except CalendarError as error:
        raise Refused([FieldError.from_text(error.pointer, error.message)]) from error


def _entries_without(entries: Mapping[str, list[Any]], others: Mapping[str, list[Any]]) -> dict[str, Any]:
    left = {kind: [one for one in some if one not in others.get(kind, ())] for kind, some in entries.items()}
    return {kind: some for kind, some in left.items() if some}


def _etag(digest: str | None) -> str:
    return etag_of("calendar", digest)


def _missing(namespace: str, name: str) -> ProblemError:
    return ProblemError(NOT_FOUND, f"namespace {namespace!r} has no calendar {name!r}")


def _shown(row: CalendarRow) -> Calendar:
    return Calendar.model_validate({**row.body, **row._asdict()})
