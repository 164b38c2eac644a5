"""`noonmark run`: the ledger, one row per due instant."""

from __future__ import annotations

import json
from collections.abc import Mapping
from datetime import datetime
from enum import StrEnum
from typing import Annotated, Any

import typer

from noonmark.cli import run_cancel, run_complete, run_retry
from noonmark.cli.context import operator_settings, reading, require_job
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
from noonmark.cli.output import (
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
from noonmark.cli.problems import CliError
from noonmark.cli.run_logs import logs
from noonmark.core.words import Lane, RunState

app = typer.Typer(
    help="Show runs: what was due, and what became of it; cancel and retry them.", no_args_is_help=True
)
app.command()(run_cancel.cancel)
app.command()(run_retry.retry)
app.command()(run_complete.complete)

State = StrEnum("State", {state.name: state.value for state in RunState})  # type: ignore[misc]


def start_delay(row: Mapping[str, Any]) -> float | None:
    """Return the seconds from the due instant to the first start, whatever followed; None before it."""
    return _seconds(row["scheduled_for"], row["first_started_at"])


def took(row: Mapping[str, Any]) -> float | None:
    """Return the seconds that the latest attempt took; None while it has not ended."""
    return _seconds(row["started_at"], row["finished_at"])


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
    Column("REASON", lambda row: text(" ".join(filter(None, (row["reason"], row.get("waits_for")))) or None)),
    field("attempt", "ATTEMPTS", numeric=True),
    field("scheduled_for", "DUE"),
    Column("DELAY", lambda row: duration(start_delay(row)), numeric=True),
    Column("TOOK", lambda row: duration(took(row)), numeric=True),
    field("namespace", wide=True, varies=True),
    field("pool", wide=True),
    field("kind", "TYPE", wide=True),
    field("handler", wide=True),
    field("origin", wide=True),
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
        states=[one.value for one in state or ()],
        reasons=reason or (),
        job=job_id,
        job_name=job if job_id is None else None,
        namespace=namespace,
        lanes=[Lane.from_priority(one) for one in lane or ()],
        since=due_since,
    )
    with reading(operator_settings()) as connection:
        page = views.list_runs(connection, wanted, limit=limit, before=place)
        if job is not None and not page.rows:
            require_job(connection, job, namespace)
    if as_json:
        show_json({"items": [_with_durations(row) for row in page.rows], "next": page.next})
        return
    footer = f"more: --after {page.next}" if page.next else ""
    show_list(page.rows, _COLUMNS, wide=output is Output.WIDE, footer=footer)


_FIRST = (
    "id", "job", "state", "reason", "error", "next_attempt_at", "report_until",
    "waiting_since", "waits_for", "scheduled_for",
    "last_scheduled_for", "queued_at", "first_started_at", "started_at", "finished_at", "died_at",
    "start_delay", "took", "attempt", "progress", "checkpoint", "result",
)  # fmt: skip
"""What people ask about a run, in their order; what else is recorded comes after it."""

_GIVEN = ("result", "checkpoint")
"""What handlers gave: JSON of any form."""

_INTERNAL = ("worker", "epoch", "shard", "holds_slot", "losses", "instants", "request_id")
"""What helps to follow a run through the logs and tables, and nobody else."""


@app.command()
def show(
    run: Annotated[str, typer.Argument(metavar="ID", help="Id of the run.")],
    output: OutputOption = Output.TABLE,
    as_json: AsJson = False,
) -> None:
    """Show one run with its attempts; with `-o wide` also what is internal."""
    run_id = read_uuid(run, "run")
    assert run_id is not None
    from noonmark.store import run_views, views  # noqa: PLC0415

    with reading(operator_settings()) as connection:
        found = views.show_run(connection, run_id)
        if found is None:
            raise CliError(f"there is no run {run_id}: `noonmark run list` shows those there are")
        attempts = run_views.run_attempts(connection, found)
        found = {**found, "attempts": attempts, "note": run_views.run_note(connection, run_id)}
    if as_json:
        show_json(_with_durations(found))
        return
    show_fields(sheet(found, wide=output is Output.WIDE), precise=True)
    written = any(row["log_bytes"] for row in attempts)
    # The one attempt of a run that went well is told in the lines above.
    if written or len(attempts) > 1 or any(row["error"] for row in attempts):
        print("\nattempts")
        show_list(attempts, ATTEMPT_COLUMNS, wide=written)
    if written:
        print(f"\nwhat they wrote: noonmark run logs {run_id}")


def sheet(run: Mapping[str, Any], *, wide: bool) -> dict[str, Any]:
    """Return what is shown of a run, in the order in which it is asked for; without what it does not have."""
    from noonmark.store.job_documents import FIRST_ONE_OFF  # noqa: PLC0415 - not needed to show help

    row = {name: value for name, value in run.items() if name not in {"attempts", "note"}}
    row |= _told(run.get("note"))
    delay, length = start_delay(run), took(run)
    last = run["attempts"][-1] if run["attempts"] else None
    if length is None and last is not None and last["started_at"] == run["started_at"]:
        # A run that is to be retried has no end of its own yet.
        length = took(last)
    row |= {
        "job": job_label(run),
        "worker": row.pop("owner", None) or None,
        "start_delay": duration(delay) if delay is not None else None,
        "took": duration(length) if length is not None else None,
    }
    row.pop("job_name", None)
    if row.get("job_version", 0) >= FIRST_ONE_OFF:
        row["job_version"] = "of this run alone: triggered with its own payload"
    # What a handler returned is JSON, where a bare truth value is spelt so.
    row |= {name: json.dumps(row[name]) for name in _GIVEN if isinstance(row.get(name), bool)}
    names = [name for name in _FIRST if name in row]
    names += [name for name in row if name not in _FIRST and name not in _INTERNAL]
    names += [name for name in _INTERNAL if wide and name in row]
    return {name: row[name] for name in names if row[name] is not None}


def _told(note: Mapping[str, Any] | None) -> dict[str, Any]:
    """Return how far a run is, in a line, and what its next attempt will find."""
    if note is None:
        return {}
    share = f"{note['progress']:.0%}" if note["progress"] is not None else ""
    words = " ".join(part for part in (share, note["message"]) if part)
    return {
        "progress": f"{words} (told at {precise_instant(note['written_at'])})" if words else None,
        "checkpoint": note["checkpoint"],
    }


def _with_durations(row: Mapping[str, Any]) -> dict[str, Any]:
    return {**row, "start_delay_seconds": start_delay(row), "took_seconds": took(row)}


def _size(kept: Mapping[str, int] | None) -> str:
    """Return how much is kept of an attempt's output, all streams together."""
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
