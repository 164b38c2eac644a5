"""`noonmark run`: the ledger, one row per due instant."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from enum import StrEnum
from typing import Annotated, Any

import typer

from noonmark.cli.context import operator_settings, reading
from noonmark.cli.options import (
    After,
    AsJson,
    LaneOption,
    Limit,
    Namespace,
    Output,
    OutputOption,
    Since,
    as_uuid,
    read_since,
    read_uuid,
)
from noonmark.cli.output import Column, duration, field, shortened, show_fields, show_json, show_list
from noonmark.cli.problems import CliError
from noonmark.core.words import Lane, RunState

app = typer.Typer(help="Show runs: what was due, and what became of it.", no_args_is_help=True)

State = StrEnum("State", {state.name: state.value for state in RunState})  # type: ignore[misc]


def start_delay(row: Mapping[str, Any]) -> float | None:
    """Return the seconds from the due instant to the start of the latest attempt; None while not started."""
    return _seconds(row["scheduled_for"], row["started_at"])


def _seconds(begin: datetime | None, end: datetime | None) -> float | None:
    return (end - begin).total_seconds() if begin is not None and end is not None else None


def job_label(row: Mapping[str, Any]) -> str:
    """Return the job's name; of one without, its handler, else its id."""
    return str(row.get("job_name") or row.get("handler") or row["job_id"])


_COLUMNS = (
    field("id", "RUN"),
    Column("JOB", lambda row: shortened(job_label(row), 40), elastic=True),
    field("lane"),
    field("state"),
    field("attempt", "ATTEMPTS", numeric=True),
    field("scheduled_for", "DUE"),
    Column("DELAY", lambda row: duration(start_delay(row)), numeric=True),
    Column("TOOK", lambda row: duration(_seconds(row["started_at"], row["finished_at"])), numeric=True),
    field("reason", wide=True),
    field("namespace", wide=True),
    field("pool", wide=True),
    field("kind", "TYPE", wide=True),
    field("handler", wide=True),
    field("origin", wide=True),
    field("fence", wide=True, numeric=True),
    field("job_id", "JOB ID", wide=True),
    Column("ERROR", lambda row: shortened(row["error"], 80), wide=True, elastic=True),
)


@app.command("list")
def list_(
    *,
    state: Annotated[State | None, typer.Option(help="Only runs in this state.")] = None,
    job: Annotated[str | None, typer.Option(help="Only runs of this job: its id or name.")] = None,
    namespace: Namespace = None,
    lane: LaneOption = None,
    since: Since = None,
    limit: Limit = 50,
    after: After = None,
    output: OutputOption = Output.TABLE,
    as_json: AsJson = False,
) -> None:
    """List runs, the newest first."""
    job_id = as_uuid(job) if job is not None else None
    due_since, place = read_since(since), read_uuid(after, "--after")
    from noonmark.store import views  # noqa: PLC0415

    wanted = views.RunFilter(
        state=state.value if state else None,
        job=job_id,
        job_name=job if job_id is None else None,
        namespace=namespace,
        lane=Lane.from_priority(lane) if lane else None,
        since=due_since,
    )
    with reading(operator_settings()) as connection:
        page = views.list_runs(connection, wanted, limit=limit, before=place)
    if as_json:
        items = [{**row, "start_delay_seconds": start_delay(row)} for row in page.rows]
        show_json({"items": items, "next": page.next})
        return
    footer = f"more: --after {page.next}" if page.next else ""
    show_list(page.rows, _COLUMNS, wide=output is Output.WIDE, footer=footer)


@app.command()
def show(
    run: Annotated[str, typer.Argument(metavar="ID", help="Id of the run.")], as_json: AsJson = False
) -> None:
    """Show one run with its attempts."""
    run_id = read_uuid(run, "run")
    assert run_id is not None
    from noonmark.store import views  # noqa: PLC0415

    with reading(operator_settings()) as connection:
        found = views.show_run(connection, run_id)
    if found is None:
        raise CliError(f"there is no run {run_id}: `noonmark run list` shows those there are")
    shown = {**found, "start_delay_seconds": start_delay(found)}
    if as_json:
        show_json(shown)
        return
    attempts = shown.pop("attempts")
    show_fields({name: value for name, value in shown.items() if value is not None})
    if attempts:
        print("\nattempts that did not succeed")
        show_list(attempts, _ATTEMPT_COLUMNS)


_ATTEMPT_COLUMNS = (
    field("attempt", numeric=True),
    field("fence", numeric=True),
    field("worker", numeric=True),
    field("outcome"),
    field("started_at", "STARTED"),
    field("finished_at", "FINISHED"),
    field("error", elastic=True),
)
