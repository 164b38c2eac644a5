"""`noonmark backfill`: run past instants of a recurring job."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from datetime import datetime
from typing import TYPE_CHECKING, Annotated, Any
from uuid import UUID

import typer

from noonmark.cli.connections.api_pages import gather, with_instants
from noonmark.cli.connections.context import operator_settings
from noonmark.cli.connections.ids import object_id
from noonmark.cli.connections.job_ref import InNamespace, any_id_of, id_of
from noonmark.cli.connections.periods import TIMES, Period, PeriodZone, read_time
from noonmark.cli.jobs.backfill_plans import PlanPage, PlanRequest, read_plan
from noonmark.cli.terminal.bulk_requests import agree
from noonmark.cli.terminal.options import After, AsJson, Limit, OneNamespace
from noonmark.cli.terminal.output import (
    Column,
    field,
    instant,
    is_terminal,
    local_text,
    shortened,
    show_fields,
    show_json,
    show_list,
)
from noonmark.cli.terminal.problems import CliError, ExitCode
from noonmark.core.states import BackfillMode, BackfillState

if TYPE_CHECKING:
    from noonmark.client import Client
    from noonmark.client.types.backfills import Backfill

app = typer.Typer(help="Run past instants of a job.", no_args_is_help=True)


_JobArgument = Annotated[str, typer.Argument(metavar="JOB", help="Id or name of a recurring job.")]
_From = Annotated[
    str, typer.Option("--from", "--since", metavar="TIME", help=f"Start of the range: {TIMES}.")
]
_Until = Annotated[
    str | None,
    typer.Option(
        "--until", metavar="TIME", help="End of the range, excluded, in the same forms. (default: now)"
    ),
]
_Mode = Annotated[
    BackfillMode,
    typer.Option(
        help="`missing`: instants without a run; `missing_and_failed`: also those with a dead, unknown or"
        " cancelled run; `all`: every instant."
    ),
]
_Id = Annotated[
    str, typer.Argument(metavar="ID", help="Id of the backfill, or at least its first 8 characters.")
]


@app.command()
def plan(
    job: _JobArgument,
    *,
    from_: _From,
    until: _Until = None,
    zone: PeriodZone = None,
    mode: _Mode = BackfillMode.MISSING,
    namespace: InNamespace = None,
    limit: Limit = 50,
    after: Annotated[
        str | None,
        typer.Option("--after", help="Continue after this instant: the `next` of the previous page."),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Show which instants a backfill would run. Changes nothing."""
    after_at = read_time(after, option="--after")
    from_at, until_at = _read_range(from_, until, zone)
    from noonmark.cli.connections.api import client  # noqa: PLC0415 - httpx takes a while to load

    with client(operator_settings()) as api:
        request = PlanRequest(job, namespace, from_at, until_at, mode)
        page = read_plan(api, request, after=after_at, limit=limit)
    if as_json:
        show_json({"items": page.fires, "next": page.next, **_summary(page)})
        return
    show_list(page.fires, _FIRE_COLUMNS)
    _print_plan(page.summary)
    if page.next is not None:
        print(f"more: --after {page.next}")


@app.command()
def start(
    job: _JobArgument,
    *,
    from_: _From,
    until: _Until = None,
    zone: PeriodZone = None,
    mode: _Mode = BackfillMode.MISSING,
    namespace: InNamespace = None,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Skip the confirmation prompt.")] = False,
    as_json: AsJson = False,
) -> None:
    """Run past instants of a job, in the lowest lane, as fast as the job allows."""
    if not yes and (as_json or not (is_terminal() and sys.stdin.isatty())):
        raise CliError(
            "cannot prompt: not a terminal, or --json; check `noonmark backfill plan`, then start with --yes",
            ExitCode.USAGE,
        )
    from_at, until_at = _read_range(from_, until, zone)
    from noonmark.cli.connections.api import client  # noqa: PLC0415 - httpx takes a while to load

    with client(operator_settings()) as api:
        job_id = id_of(api, job, namespace)
        if not yes:
            _print_plan(api.jobs.backfill(job_id, from_at, until_at, mode=mode.value, dry_run=True))
            agree("Start it?", yes=yes)
        started = api.jobs.backfill(job_id, from_at, until_at, mode=mode.value)
    if as_json:
        # As in `plan --json`: `instants` is the number of instants in the range.
        shown = {name: value for name, value in started.items() if name not in {"total", "fires"}}
        show_json({**shown, "instants": started["total"]})
        return
    print(f"backfill {started['id']} started: {_plan_text(started)}")
    print(f"`noonmark backfill show {started['id']}` shows its progress")


def _print_plan(planned: Mapping[str, Any]) -> None:
    print(_plan_text(planned), *([f"note: {planned['note']}"] if planned["note"] else []), sep="\n")


def _plan_text(planned: Mapping[str, Any]) -> str:
    begin, end = (instant(datetime.fromisoformat(planned[name])) for name in ("from_at", "until_at"))
    return (
        f"{planned['to_run']} of the {planned['total']} instants from {begin} to before {end} would run"
        f" ({planned['mode']})"
    )


_COLUMNS = (
    field("id", "BACKFILL"),
    Column("JOB", lambda row: shortened(row["job_name"] or row["job_id"], 40), elastic=True, key=True),
    field("mode"),
    field("from_at", "FROM"),
    field("until_at", "UNTIL"),
    field("state", key=True),
    Column("DONE", lambda row: f"{row['percent']:g} %", numeric=True),
    field("queued", numeric=True),
    Column("REASON", lambda row: shortened(row["state_reason"], 80), elastic=True),
)


@app.command("list")
def list_(
    *,
    job: Annotated[str | None, typer.Option(help="Only backfills of this job (id or name).")] = None,
    state: Annotated[
        list[BackfillState] | None, typer.Option(help="Only backfills in this state; repeatable.")
    ] = None,
    namespace: OneNamespace = None,
    limit: Limit = 50,
    after: After = None,
    as_json: AsJson = False,
) -> None:
    """List backfills, newest first."""
    from noonmark.cli.connections.api import client  # noqa: PLC0415

    states = [one.value for one in state or ()]
    with client(operator_settings()) as api:
        if job is None:
            rows, following = gather(
                lambda size: api.backfills.list(namespace=namespace, state=states, limit=size), limit, after
            )
        else:
            job_id = any_id_of(api, job, namespace)
            rows, following = gather(
                lambda size: api.jobs.backfills(job_id, state=states, limit=size), limit, after
            )
    if as_json:
        show_json({"items": rows, "next": following})
        return
    footer = f"more: --after {following}" if following else ""
    show_list(
        [with_instants(row) for row in rows],
        _COLUMNS,
        footer=footer,
        empty="no backfills found; `noonmark backfill start` creates one",
    )


@app.command()
def show(backfill: _Id, as_json: AsJson = False) -> None:
    """Show the progress of a backfill, what it waits for, and the states of its runs."""
    backfill_id = object_id(backfill, "backfill")
    from noonmark.cli.connections.api import client  # noqa: PLC0415

    with client(operator_settings()) as api:
        found = _read(api, backfill_id)
    if as_json:
        show_json(found)
        return
    show_fields(backfill_fields(with_instants(found)))


def backfill_fields(backfill: Mapping[str, Any]) -> dict[str, Any]:
    """Return the fields to show of a backfill, the most important first."""
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
        bool, typer.Option("--runs", help="Also cancel its unfinished runs, including running ones.")
    ] = False,
    reason: Annotated[str | None, typer.Option(help="Reason, shown to users.")] = None,
    as_json: AsJson = False,
) -> None:
    """Cancel a backfill: it queues no more runs. Queued runs still run, unless you pass --runs."""
    backfill_id = object_id(backfill, "backfill")
    from noonmark.cli.connections.api import client  # noqa: PLC0415

    with client(operator_settings()) as api:
        state = _read(api, backfill_id)["state"]
        done = api.backfills.cancel(str(backfill_id), reason, runs=runs)
    cancelled_now = state == "running"
    if as_json:
        show_json(
            {"id": backfill_id, "done": cancelled_now, "ended": done["ended"], "stopping": done["stopping"]}
        )
        return
    print(f"backfill {backfill_id} {'is cancelled' if cancelled_now else 'had already finished'}")
    if runs:
        print(f"{done['ended']} runs cancelled, {done['stopping']} running runs asked to stop")


_FIRE_COLUMNS = (
    field("at", "UTC"),
    Column("LOCAL", lambda row: local_text(datetime.fromisoformat(row["local"]))),
    Column("NOTE", lambda row: row["note"] or "", elastic=True),
)


def _summary(page: PlanPage) -> dict[str, Any]:
    plan = page.summary
    same = ("job_id", "job_version", "mode", "from_at", "until_at")
    return {
        **{name: plan[name] for name in same},
        "instants": plan["total"],
        "to_run": plan["to_run"],
        "job_state": page.job_state,
        "note": plan["note"],
    }


def _read_range(from_: str, until: str | None, zone: str | None) -> tuple[datetime, datetime | None]:
    period = Period.read(from_, until, zone, names=("--from", "--until"))
    assert period.since is not None
    return period.since, period.until


def _read(client: Client, backfill_id: UUID) -> Backfill:
    """Read a backfill.

    Raises:
        CliError: it does not exist.
    """
    from noonmark.client import ApiError  # noqa: PLC0415

    try:
        return client.backfills.get(str(backfill_id))
    except ApiError as error:
        if error.status != 404:
            raise
        raise CliError(f"backfill {backfill_id} does not exist; run `noonmark backfill list`") from error
