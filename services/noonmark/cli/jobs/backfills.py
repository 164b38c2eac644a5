"""`noonmark backfill`: past instants of a job that are to run after all."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Annotated, Any
from uuid import UUID

import typer

from noonmark.cli.connections.context import changing, operator_settings, reading
from noonmark.cli.connections.job_ref import InNamespace, id_of
from noonmark.cli.terminal.options import AsJson, Limit, Namespace, as_uuid, read_uuid
from noonmark.cli.terminal.output import (
    Column,
    field,
    instant,
    is_terminal,
    shortened,
    show_fields,
    show_json,
    show_list,
    with_instants,
)
from noonmark.cli.terminal.problems import CliError, ExitCode
from noonmark.core.vocabulary import BackfillMode, BackfillState

if TYPE_CHECKING:
    from noonmark.client import Client
    from noonmark.client.types.backfills import Backfill
    from noonmark.settings import Settings
    from noonmark.store.backfills.requests import BackfillPlan

app = typer.Typer(help="Run past instants of a job after all.", no_args_is_help=True)


_JobArgument = Annotated[str, typer.Argument(metavar="JOB", help="Id or name of a recurring job.")]
_From = Annotated[
    str,
    typer.Option("--from", metavar="INSTANT", help="The first instant, or a day (from its midnight in UTC)."),
]
_Until = Annotated[
    str | None,
    typer.Option(
        "--until", metavar="INSTANT", help="Where it ends; that instant is excluded. (default: now)"
    ),
]
_Mode = Annotated[
    BackfillMode,
    typer.Option(
        help="`missing`: what never ran; `missing_and_failed`: also what ended dead, unknown or cancelled;"
        " `all`: every instant again."
    ),
]
_Id = Annotated[str, typer.Argument(metavar="ID", help="Id of the backfill.")]


@app.command()
def plan(
    job: _JobArgument,
    *,
    from_: _From,
    until: _Until = None,
    mode: _Mode = BackfillMode.MISSING,
    namespace: Namespace = None,
    limit: Limit = 50,
    after: Annotated[
        str | None, typer.Option("--after", help="Go on after this instant: the `next` of the page before.")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Show which instants a backfill would run. Nothing is changed."""
    place = _read_at(after, "--after") if after is not None else None
    planned = _plan(operator_settings(), job, namespace, (from_, until, mode), after=place, limit=limit)
    rows = _instants(planned)
    if as_json:
        show_json({"items": rows, "next": planned.next, **_summary(planned)})
        return
    show_list(rows, _INSTANT_COLUMNS)
    asked = planned.range
    told = _sentence(planned.to_run, planned.total, asked.from_at, asked.until_at, planned.mode.value)
    print(told, *_note(planned), sep="\n")
    if planned.next is not None:
        print(f"more: --after {instant_text(planned.next)}")


@app.command()
def start(
    job: _JobArgument,
    *,
    from_: _From,
    until: _Until = None,
    mode: _Mode = BackfillMode.MISSING,
    namespace: InNamespace = None,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Do not ask.")] = False,
    as_json: AsJson = False,
) -> None:
    """Run past instants of a job, in the lowest lane, as fast as the job allows."""
    if not yes and (as_json or not (is_terminal() and sys.stdin.isatty())):
        raise CliError(
            "nobody can be asked here: look at `noonmark backfill plan`, then start with --yes",
            ExitCode.USAGE,
        )
    from_at = _read_at(from_, "--from")
    until_at = _read_at(until, "--until") if until is not None else None
    from noonmark.cli.connections.api import client  # noqa: PLC0415 - httpx takes a while to load

    with client(operator_settings()) as api:
        job_id = id_of(api, job, namespace)
        if not yes:
            planned = api.jobs.backfill(job_id, from_at, until_at, mode=mode.value, dry_run=True)
            print(_foreseen(planned), *([f"note: {planned['note']}"] if planned["note"] else []), sep="\n")
            typer.confirm("Start it?", abort=True)
        started = api.jobs.backfill(job_id, from_at, until_at, mode=mode.value)
    if as_json:
        # As `plan` shows it: `instants` is how many there are in the range.
        shown = {name: value for name, value in started.items() if name != "total"}
        show_json({**shown, "instants": started["total"]})
        return
    print(f"backfill {started['id']} started: {_foreseen(started)}")
    print(f"`noonmark backfill show {started['id']}` tells how far it is")


def _foreseen(planned: Mapping[str, Any]) -> str:
    begin, end = (datetime.fromisoformat(planned[name]) for name in ("from_at", "until_at"))
    return _sentence(planned["to_run"], planned["total"], begin, end, planned["mode"])


_COLUMNS = (
    field("id", "BACKFILL"),
    Column("JOB", lambda row: shortened(row["job_name"] or row["job_id"], 40), elastic=True),
    field("mode"),
    field("from_at", "FROM"),
    field("until_at", "UNTIL"),
    field("state"),
    Column("DONE", lambda row: f"{row['percent']:g} %", numeric=True),
    field("queued", numeric=True),
    Column("REASON", lambda row: shortened(row["state_reason"], 80), elastic=True),
)


@app.command("list")
def list_(
    *,
    job: Annotated[str | None, typer.Option(help="Only backfills of this job: its id or name.")] = None,
    state: Annotated[
        list[BackfillState] | None, typer.Option(help="Only those in this state; repeatable.")
    ] = None,
    namespace: Namespace = None,
    limit: Limit = 50,
    after: Annotated[
        str | None, typer.Option("--after", help="Go on below this row: the `next` of the page before.")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """List backfills, the newest first."""
    place = read_uuid(after, "--after")
    from noonmark.store.views import backfills as backfill_views  # noqa: PLC0415

    settings = operator_settings()
    job_id = _job_id(settings, job, namespace) if job is not None else None
    with reading(settings) as connection:
        page = backfill_views.list_backfills(
            connection,
            job=job_id,
            namespace=namespace,
            states=[one.value for one in state or ()],
            limit=limit,
            before=place,
        )
    if as_json:
        show_json({"items": [dict(row) for row in page.rows], "next": page.next})
        return
    show_list(page.rows, _COLUMNS, footer=f"more: --after {page.next}" if page.next else "")


@app.command()
def show(backfill: _Id, as_json: AsJson = False) -> None:
    """Show how far a backfill is, what it waits for, and what became of its runs."""
    backfill_id = _read_id(backfill)
    from noonmark.cli.connections.api import client  # noqa: PLC0415

    with client(operator_settings()) as api:
        found = _read(api, backfill_id)
    if as_json:
        show_json(found)
        return
    show_fields(
        backfill_fields(
            with_instants(found, "from_at", "until_at", "created_at", "updated_at", "finished_at")
        )
    )


def backfill_fields(backfill: Mapping[str, Any]) -> dict[str, Any]:
    """Return what is shown of a backfill, in the order in which it is asked for."""
    runs = backfill["runs"]
    first: dict[str, Any] = {
        "id": backfill["id"],
        "job": backfill["job_name"] or backfill["job_id"],
        "state": backfill["state"],
        "waits for" if backfill["state"] == BackfillState.RUNNING else "reason": backfill["state_reason"],
        "progress": f"{backfill['instants']} of {backfill['total']} instants ({backfill['percent']:g} %)",
        "queued": backfill["queued"],
        "runs": ", ".join(f"{count} {state}" for state, count in runs.items()) or None,
    }
    rest = {name: value for name, value in backfill.items() if name not in first and name not in _LABELS}
    return {name: value for name, value in (first | rest).items() if value is not None}


_LABELS = ("job_name", "state_reason", "percent", "instants", "total")


@app.command()
def cancel(
    backfill: _Id,
    *,
    runs: Annotated[
        bool, typer.Option("--runs", help="Also end its runs that are unfinished, running ones included.")
    ] = False,
    reason: Annotated[str | None, typer.Option(help="Why, for people.")] = None,
    as_json: AsJson = False,
) -> None:
    """End a backfill: nothing more is queued. What is queued runs, unless --runs ends that too."""
    backfill_id = _read_id(backfill)
    from noonmark.cli.connections.api import client  # noqa: PLC0415

    with client(operator_settings()) as api:
        before = _read(api, backfill_id)["state"]
        done = api.backfills.cancel(str(backfill_id), reason, runs=runs)
    ended_now = before == "running"
    if as_json:
        show_json(
            {"id": backfill_id, "done": ended_now, "ended": done["ended"], "stopping": done["stopping"]}
        )
        return
    print(f"backfill {backfill_id} {'is cancelled' if ended_now else 'had ended before'}")
    if runs:
        print(f"{done['ended']} of its runs were ended, {done['stopping']} that run were asked to stop")


_INSTANT_COLUMNS = (
    Column("UTC", lambda row: instant_text(row["at"])),
    Column("LOCAL", lambda row: row["local"]),
    Column("NOTE", lambda row: row["note"] or "", elastic=True),
)


def instant_text(at: datetime) -> str:
    """Return an instant in UTC, as exact as it is: it may be given back as an option."""
    return at.astimezone(UTC).isoformat().replace("+00:00", "Z")


def _instants(planned: BackfillPlan) -> list[dict[str, Any]]:
    from noonmark.core.schedules.preview import in_zone  # noqa: PLC0415
    from noonmark.core.zones.zones import UTC_ZONE  # noqa: PLC0415

    zone = planned.schedule.zone or UTC_ZONE
    return [
        {
            "at": at,
            "local": in_zone(at, zone).isoformat(),
            "note": planned.schedule.note(at),
        }
        for at in planned.listed
    ]


def _summary(planned: BackfillPlan) -> dict[str, Any]:
    return {
        "job_id": planned.job_id,
        "job_version": planned.job_version,
        "mode": planned.mode.value,
        "from_at": planned.range.from_at,
        "until_at": planned.range.until_at,
        "instants": planned.total,
        "to_run": planned.to_run,
        "job_state": planned.job_state,
        "note": planned.note,
    }


def _note(planned: BackfillPlan) -> list[str]:
    return [f"note: {planned.note}"] if planned.note else []


def _sentence(to_run: int, total: int, begin: datetime, end: datetime, mode: str) -> str:
    return (
        f"{to_run} of the {total} instants from {instant(begin)} to before {instant(end)} would run ({mode})"
    )


def _plan(
    settings: Settings,
    job: str,
    namespace: str | None,
    asked: tuple[str, str | None, BackfillMode],
    *,
    after: datetime | None,
    limit: int,
) -> BackfillPlan:
    """Plan a backfill of the job that is meant.

    Raises:
        CliError: no such backfill can be started.
    """
    from_, until, mode = asked
    from_at = _read_at(from_, "--from")
    until_at = _read_at(until, "--until") if until is not None else None
    from noonmark.core.planning.backfill import BackfillError, BackfillRange  # noqa: PLC0415
    from noonmark.store.backfills import requests as backfill_requests  # noqa: PLC0415

    job_id = _job_id(settings, job, namespace)
    with changing(settings) as connection:
        try:
            return backfill_requests.plan(
                connection,
                job_id,
                BackfillRange(from_at, until_at or backfill_requests.read_bounds(connection).now),
                mode,
                after=after,
                limit=limit,
            )
        except BackfillError as error:
            raise CliError(str(error), ExitCode.USAGE) from error


def _job_id(settings: Settings, job: str, namespace: str | None) -> UUID:
    """Return the id of the recurring job that is meant, by its id or name.

    Raises:
        CliError: there is none, or several namespaces have one.
    """
    given = as_uuid(job)
    if given is not None:
        return given
    from noonmark.store.views import paging  # noqa: PLC0415

    with reading(settings) as connection:
        found = paging.find_jobs(connection, name=job, namespace=namespace)
    # Of the recurring jobs that had the name one after the other, the one that has it now.
    named = [row for row in found if row["unique_name"]]
    live = [row for row in named if row["state"] != "cancelled"] or named[:1]
    if not live and found:
        raise CliError(f"job {job!r} has one instant only: a backfill is for recurring jobs", ExitCode.USAGE)
    if not live:
        raise CliError(f"there is no job {job!r}: `noonmark job list` shows those there are")
    if len(live) > 1:
        spaces = ", ".join(sorted({row["namespace"] for row in live}))
        raise CliError(f"several namespaces have a job {job!r} ({spaces}): say which with --namespace")
    return UUID(str(live[0]["id"]))


def _read_at(given: str, option: str) -> datetime:
    from noonmark.core.instants import parse_instant  # noqa: PLC0415

    day = len(given) == len("2026-06-01")
    try:
        return parse_instant(f"{given}T00:00:00Z" if day else given)
    except ValueError as error:
        raise CliError(
            f"{option} {given!r} is no instant such as 2026-06-01T09:00:00Z and no day such as 2026-06-01",
            ExitCode.USAGE,
        ) from error


def _read_id(given: str) -> UUID:
    found = read_uuid(given, "backfill")
    assert found is not None
    return found


def _read(client: Client, backfill_id: UUID) -> Backfill:
    """Read a backfill.

    Raises:
        CliError: there is none.
    """
    from noonmark.client import ApiError  # noqa: PLC0415

    try:
        return client.backfills.get(str(backfill_id))
    except ApiError as error:
        if error.status != 404:
            raise
        raise CliError(
            f"there is no backfill {backfill_id}: `noonmark backfill list` shows those there are"
        ) from error
