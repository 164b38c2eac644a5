"""`noonmark rejection`: what was refused, and why."""

from __future__ import annotations

import base64
from collections.abc import Mapping
from typing import Annotated, Any

import typer

from noonmark.cli.connections.api_pages import gather, or_missing, with_instants
from noonmark.cli.connections.context import operator_settings
from noonmark.cli.terminal.options import AfterCursor, AsJson, Limit, Output, OutputOption
from noonmark.cli.terminal.output import (
    Column,
    field,
    printable,
    shortened,
    show_fields,
    show_json,
    show_list,
)
from noonmark.cli.terminal.problems import CliError, ExitCode

rejections = typer.Typer(help="Show submissions that were refused, and why.", no_args_is_help=True)

_EXCERPT = 80
_ID_DIGITS = 18
"""Numbers of so many digits surely fit into the column."""


def reasons(row: Mapping[str, Any]) -> list[str]:
    """Return every problem of a refused event: where, what is wrong, what would be right."""
    return [
        printable(
            f"{item.get('pointer') or 'document'}: {item.get('message', '')}"
            + (f"; expected {item['expected']}" if item.get("expected") else "")
        )
        for item in row["errors"]
    ]


def position(row: Mapping[str, Any]) -> str:
    """Return where the event stands in Kafka: topic/partition/offset."""
    return f"{row['topic']}/{row['partition']}/{row['offset']}"


_REJECTION_COLUMNS = (
    field("id", "ID", numeric=True),
    field("received_at", "RECEIVED"),
    field("event_id", "EVENT", cut=True),
    field("reason"),
    Column("PROBLEMS", lambda row: ". ".join(reasons(row)), cut=True),
    Column("POSITION", position, wide=True),
    field("event_source", "SOURCE", wide=True),
    Column("EXCERPT", lambda row: shortened(row["excerpt"], _EXCERPT), wide=True, cut=True),
)


@rejections.command("list")
def list_rejections(
    *,
    source: Annotated[str | None, typer.Option(help="Only events of this publisher.")] = None,
    limit: Limit = 50,
    after: AfterCursor = None,
    output: OutputOption = Output.TABLE,
    as_json: AsJson = False,
) -> None:
    """List refused submissions, the newest first; `noonmark rejection show ID` shows one in full."""
    from noonmark.cli.connections.api import client  # noqa: PLC0415 - httpx takes a while to load

    with client(operator_settings()) as api:
        rows, following = gather(lambda size: api.rejections.list(source=source, limit=size), limit, after)
    if as_json:
        show_json({"items": rows, "next_cursor": following})
        return
    footer = f"more: --after {following}" if following else ""
    shown = [with_instants(row) for row in rows]
    show_list(shown, _REJECTION_COLUMNS, wide=output is Output.WIDE, footer=footer)


@rejections.command("show")
def show_rejection(
    rejection: Annotated[str, typer.Argument(metavar="ID", help="Id in `noonmark rejection list`.")],
    as_json: AsJson = False,
) -> None:
    """Show one refused submission: every problem, and what was kept of the event."""
    if not (rejection.isascii() and rejection.isdecimal() and len(rejection) <= _ID_DIGITS):
        raise CliError(
            f"{rejection!r} is no id of a rejection: take the number in the first column of"
            " `noonmark rejection list`",
            ExitCode.USAGE,
        )
    from noonmark.cli.connections.api import client  # noqa: PLC0415

    told = f"there is no rejection {rejection}: `noonmark rejection list` shows those there are"
    with client(operator_settings()) as api, or_missing(told):
        found = api.rejections.get(rejection)
    if as_json:
        show_json(found)
        return
    show_fields(
        {
            "id": found["id"],
            "received": with_instants(found)["received_at"],
            "position": position(found),
            "source": found["event_source"],
            "event": found["event_id"],
            "reason": found["reason"],
        },
        precise=True,
    )
    print("\nproblems")
    for problem in reasons(found):
        print(f"  {problem}")
    kept = base64.b64decode(found["value_base64"] or "").decode("utf-8", errors="replace")
    print("\nthe event, as far as it was kept" if found["truncated"] else "\nthe event")
    for line in kept.splitlines():
        print(f"  {printable(line)}")
