"""`noonmark run`: the ledger, with one row per due instant."""

from __future__ import annotations

import json
from collections.abc import Mapping
from enum import StrEnum
from typing import Annotated, Any

import typer

from noonmark.cli.connections.api_pages import gather, or_missing, show_page, with_instants
from noonmark.cli.connections.context import operator_settings
from noonmark.cli.connections.ids import RunId, run_id
from noonmark.cli.connections.job_ref import home_of, require_job
from noonmark.cli.connections.periods import Period, PeriodZone, since_option, until_option
from noonmark.cli.runs import cancel as run_cancel
from noonmark.cli.runs import complete as run_complete
from noonmark.cli.runs import holds as run_holds
from noonmark.cli.runs import retry as run_retry
from noonmark.cli.runs import tasks as run_tasks
from noonmark.cli.runs.logs import logs, missing_run
from noonmark.cli.terminal.options import (
    AfterCursor,
    AsJson,
    LaneOption,
    Limit,
    OneNamespace,
    Output,
    OutputOption,
    as_uuid,
)
from noonmark.cli.terminal.output import (
    Column,
    duration,
    field,
    precise_instant,
    shortened,
    show_fields,
    show_json,
    show_list,
    text,
)
from noonmark.core.states import RunState
from noonmark.core.workflows import WORKFLOW_POOL

app = typer.Typer(help="Manage runs: list, show, cancel, retry, hold; read their logs.", no_args_is_help=True)
app.command()(run_cancel.cancel)
app.command()(run_retry.retry)
app.command()(run_complete.complete)
app.command()(run_holds.hold)
app.command()(run_holds.release)
app.command()(run_tasks.tasks)
app.command()(run_tasks.graph)

State = StrEnum("State", {state.name: state.value for state in RunState})  # type: ignore[misc]


def took(row: Mapping[str, Any]) -> float | None:
    """Return the seconds that an attempt took; None if it has not finished."""
    begin, end = row["started_at"], row["finished_at"]
    return (end - begin).total_seconds() if begin is not None and end is not None else None


def job_label(row: Mapping[str, Any]) -> str:
    """Return the job's name, else its handler, else its id."""
    return str(row.get("job_name") or row.get("handler") or row["job_id"])


_COLUMNS = (
    field("id", "RUN"),
    Column("JOB", lambda row: shortened(job_label(row), 40), elastic=True, key=True),
    field("priority", "LANE"),
    field("state", key=True),
    Column("REASON", lambda row: text(" ".join(filter(None, (row["reason"], row.get("waits_for")))) or None)),
    field("attempt", "ATTEMPTS", numeric=True),
    field("scheduled_for", "DUE"),
    Column("DELAY", lambda row: duration(row["start_delay_seconds"]), numeric=True),
    Column("TOOK", lambda row: duration(row["took_seconds"]), numeric=True),
    field("namespace", wide=True),
    field("pool", wide=True),
    field("type", wide=True),
    field("handler", wide=True),
    field("origin", wide=True),
    field("task", wide=True),
    field("workflow_id", "WORKFLOW RUN", wide=True),
    field("fence", wide=True, numeric=True),
    field("job_id", "JOB ID", wide=True),
    Column("ERROR", lambda row: shortened(row["error"], 80), wide=True, cut=True),
)


@app.command("list")
def list_(
    *,
    state: Annotated[list[State] | None, typer.Option(help="Only runs in this state; repeatable.")] = None,
    reason: Annotated[
        list[str] | None,
        typer.Option(help="Only runs with this reason, such as overlap or coalesced; repeatable."),
    ] = None,
    job: Annotated[str | None, typer.Option(help="Only runs of this job (id or name).")] = None,
    namespace: OneNamespace = None,
    lane: LaneOption = None,
    since: Annotated[str | None, since_option("runs due")] = None,
    until: Annotated[str | None, until_option("runs due")] = None,
    zone: PeriodZone = None,
    tasks: Annotated[
        bool, typer.Option("--tasks", help="Also runs of workflows' tasks, which are left out otherwise.")
    ] = False,
    limit: Limit = 50,
    after: AfterCursor = None,
    output: OutputOption = Output.TABLE,
    as_json: AsJson = False,
) -> None:
    """List runs of a namespace, newest first; with --job, by due instant."""
    period = Period.read(since, until, zone)
    job_id = as_uuid(job) if job is not None else None
    from noonmark.cli.connections.api import client  # noqa: PLC0415 - httpx takes a while to load

    with client(operator_settings()) as api:
        # The id of a job determines its namespace.
        place = namespace if namespace or job_id is None else home_of(api, job_id)
        rows, following = gather(
            lambda size: api.runs.list(
                namespace=place,
                job_id=job_id,
                job_name=job if job_id is None else None,
                state=[one.value for one in state or ()],
                reason=reason,
                priority=[one.value for one in lane or ()],
                since=period.since,
                until=period.until,
                tasks=tasks or None,
                limit=size,
            ),
            limit,
            after,
        )
        if job is not None and not rows:
            require_job(api, job, namespace)
    empty = "no runs found; a run is listed when a job is due, or after `noonmark job trigger`"
    show_page(rows, following, _COLUMNS, output=output, as_json=as_json, empty=empty)


_FIRST = (
    "id", "job", "task", "workflow_id", "generation", "state", "reason", "error",
    "next_attempt_at", "report_until",
    "held_at", "waiting_since", "waits_for", "scheduled_for",
    "last_scheduled_for", "queued_at", "first_started_at", "started_at", "finished_at", "died_at",
    "start_delay", "took", "attempt", "progress", "checkpoint", "result",
)  # fmt: skip
"""The most important fields of a run, in this order; other fields follow."""

_GIVEN = ("result", "checkpoint")
"""Fields that handlers set: any JSON."""

_HIDDEN = "(hidden: the key may not read payloads)"

_INTERNAL = ("worker", "losses", "instants", "request_id")
"""Internal fields, useful to follow a run through logs and tables."""

_SHOWN_ELSEWHERE = frozenset(
    {"job_name", "attempts", "start_delay_seconds", "took_seconds", "error_hidden", "result_hidden"}
    | {"checkpoint_hidden"}
)


@app.command()
def show(
    run: RunId,
    output: OutputOption = Output.TABLE,
    as_json: AsJson = False,
) -> None:
    """Show a run with its attempts; `-o wide` adds internal fields."""
    wanted = run_id(run)
    from noonmark.cli.connections.api import client  # noqa: PLC0415

    with client(operator_settings()) as api, or_missing(missing_run(wanted)):
        found = api.runs.get(wanted)
    if as_json:
        show_json(found)
        return
    show_fields(run_fields(found, wide=output is Output.WIDE), precise=True)
    attempts = [with_instants(one) for one in found["attempts"]]
    written = any(row["log_bytes"] for row in attempts)
    # The lines above already describe a single successful attempt.
    if written or len(attempts) > 1 or any(row["error"] for row in attempts):
        print("\nattempts")
        show_list(attempts, ATTEMPT_COLUMNS, wide=written)
    if written:
        print(f"\noutput: noonmark run logs {wanted}")
    if found["pool"] == WORKFLOW_POOL:
        print(f"\ntasks: noonmark run tasks {wanted}")


def run_fields(run: Mapping[str, Any], *, wide: bool) -> dict[str, Any]:
    """Return the fields to show of a run, the most important first, without empty ones."""
    from noonmark.store.documents.jobs import FIRST_ONE_OFF  # noqa: PLC0415 - not needed to show help

    row = {name: value for name, value in with_instants(run).items() if name not in _SHOWN_ELSEWHERE}
    delay, length = run["start_delay_seconds"], run["took_seconds"]
    last = with_instants(run["attempts"][-1]) if run["attempts"] else None
    if length is None and last is not None and last["started_at"] == row["started_at"]:
        # A run that will be retried has not finished.
        length = took(last)
    row |= {
        "job": job_label(run),
        "worker": last["worker"] if last is not None and last["fence"] == run["fence"] else None,
        "progress": _progress(run["progress"]),
        "start_delay": duration(delay) if delay is not None else None,
        "took": duration(length) if length is not None else None,
    }
    if run["job_version"] >= FIRST_ONE_OFF:
        row["job_version"] = "only of this run: triggered with its own payload"
    # A handler's result is JSON, so a boolean is shown as true or false.
    row |= {name: json.dumps(row[name]) for name in _GIVEN if isinstance(row.get(name), bool)}
    row |= {name: _HIDDEN for name in (*_GIVEN, "error") if run[f"{name}_hidden"]}
    names = [name for name in _FIRST if name in row]
    names += [name for name in row if name not in _FIRST and name not in _INTERNAL]
    names += [name for name in _INTERNAL if wide and name in row]
    return {name: row[name] for name in names if row[name] is not None}


def _progress(progress: Mapping[str, Any] | None) -> str | None:
    """Return the progress of a run as a line."""
    if progress is None:
        return None
    share = f"{progress['share']:.0%}" if progress["share"] is not None else ""
    words = " ".join(part for part in (share, progress["message"]) if part)
    return f"{words} (reported at {precise_instant(with_instants(progress)['written_at'])})"


def _size(kept: Mapping[str, int] | None) -> str:
    """Return the stored size of an attempt's output, all streams together."""
    if kept is None:
        return "-"
    size = sum(kept.values())
    return f"{size} B" if size < 1024 else f"{size / 1024:.1f} KB"


ATTEMPT_COLUMNS = (
    field("attempt", numeric=True),
    field("outcome"),
    Column("STARTED", lambda row: precise_instant(row["started_at"])),
    Column("FINISHED", lambda row: precise_instant(row["finished_at"])),
    Column("TOOK", lambda row: duration(took(row)), numeric=True),
    field("worker", numeric=True),
    field("fence", numeric=True),
    Column("OUTPUT", lambda row: _size(row.get("log_bytes")), wide=True, numeric=True),
    field("error", elastic=True),
)

app.command()(logs)
