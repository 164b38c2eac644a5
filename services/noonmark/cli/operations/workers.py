"""`noonmark workers`: list the processes that execute runs."""

from __future__ import annotations

from typing import Annotated

import typer

from noonmark.cli.connections.api_pages import with_instants
from noonmark.cli.connections.context import operator_settings
from noonmark.cli.terminal.options import AsJson
from noonmark.cli.terminal.output import Column, duration, field, show_json, show_list

_COLUMNS = (
    field("id", "WORKER", numeric=True),
    field("pool"),
    field("host"),
    field("pid", numeric=True),
    field("state"),
    field("started_runs", "RUNNING", numeric=True),
    Column("HEARTBEAT", lambda row: duration(row["silent_seconds"]), numeric=True),
    field("lease_seconds", "LEASE S", numeric=True),
    field("epoch", numeric=True),
    field("started_at", "SINCE"),
)


def workers(
    everyone: Annotated[
        bool, typer.Option("--all", help="Include workers that left or lost their lease.")
    ] = False,
    as_json: AsJson = False,
) -> None:
    """List up to 1,000 workers with the age of the last heartbeat and the number of running runs.

    RUNNING: runs that it executes now. HEARTBEAT: time since its last heartbeat; when it exceeds LEASE S
    (seconds), its runs are taken from it. EPOCH: increases when it gets a new lease. SINCE: when it started.
    """
    from noonmark.cli.connections.api import client  # noqa: PLC0415 - httpx takes a while to load

    with client(operator_settings()) as api:
        rows = api.workers.list(ended=everyone)
    if as_json:
        show_json({"items": rows})
        return
    empty = "no workers found; `noonmark worker` starts one" + (
        "" if everyone else ", --all lists former ones"
    )
    show_list([with_instants(row) for row in rows], _COLUMNS, empty=empty)
