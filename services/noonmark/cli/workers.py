"""`noonmark workers`: who executes runs."""

from __future__ import annotations

from typing import Annotated

import typer

from noonmark.cli.context import operator_settings, reading
from noonmark.cli.options import AsJson
from noonmark.cli.output import field, show_json, show_list

_COLUMNS = (
    field("id", "WORKER", numeric=True),
    field("pool"),
    field("host"),
    field("pid", numeric=True),
    field("state"),
    field("started_runs", "HELD", numeric=True),
    field("silent_for", "LAST BEAT", numeric=True),
    field("lease_seconds", "LEASE S", numeric=True),
    field("epoch", numeric=True),
    field("started_at", "SINCE"),
)


def workers(
    everyone: Annotated[bool, typer.Option("--all", help="Also those that left or lapsed.")] = False,
    as_json: AsJson = False,
) -> None:
    """List workers: how long ago each last gave a sign of life, and how many runs it holds."""
    from noonmark.store import views  # noqa: PLC0415

    with reading(operator_settings()) as connection:
        rows = views.list_workers(connection, everyone=everyone)
    if as_json:
        items = [{**row, "silent_for": row["silent_for"].total_seconds()} for row in rows]
        show_json({"items": items})
        return
    show_list(rows, _COLUMNS)
