"""`noonmark rejection`: list rejected submissions with their problems."""

from __future__ import annotations

import base64
from collections.abc import Mapping
from typing import Annotated, Any

import typer

from noonmark.cli.connections.api_pages import gather, or_missing, show_page, with_instants
from noonmark.cli.connections.context import operator_settings
from noonmark.cli.connections.periods import Period, PeriodZone, since_option, until_option
from noonmark.cli.terminal.options import AfterCursor, AsJson, Limit, Output, OutputOption
from noonmark.cli.terminal.output import (
    Column,
    field,
    printable,
    shortened,
    show_fields,
    show_json,
)
from noonmark.cli.terminal.problems import CliError, ExitCode, field_text

rejections = typer.Typer(help="Show rejected submissions and their problems.", no_args_is_help=True)

_EXCERPT = 80
_ID_DIGITS = 18
"""Maximum number of digits that fits the column type."""


def reasons(row: Mapping[str, Any]) -> list[str]:
    """Return every problem of a rejected event: pointer, message, expected value."""
    return [printable(field_text(item)) for item in row["errors"]]


def position(row: Mapping[str, Any]) -> str:
    """Return the position of the event in Kafka: topic/partition/offset."""
    return f"{row['topic']}/{row['partition']}/{row['offset']}"


_REJECTION_COLUMNS = (
    field("id", "ID", numeric=True),
    field("received_at", "RECEIVED"),
    field("event_id", "EVENT", cut=True),
    field("reason"),
    Column("PROBLEMS", lambda row: "\n".join(reasons(row)), elastic=True, key=True, least=40),
    Column("POSITION", position, wide=True),
    field("event_source", "SOURCE", wide=True),
    Column("EXCERPT", lambda row: shortened(row["excerpt"], _EXCERPT), wide=True, cut=True),
)


@rejections.command("list")
def list_rejections(
    *,
    source: Annotated[str | None, typer.Option(help="Only events of this publisher.")] = None,
    since: Annotated[str | None, since_option("events received")] = None,
    until: Annotated[str | None, until_option("events received")] = None,
    zone: PeriodZone = None,
    limit: Limit = 50,
    after: AfterCursor = None,
    output: OutputOption = Output.TABLE,
    as_json: AsJson = False,
) -> None:
    """List rejected submissions, newest first."""
    period = Period.read(since, until, zone)
    from noonmark.cli.connections.api import client  # noqa: PLC0415 - httpx takes a while to load

    with client(operator_settings()) as api:
        rows, following = gather(
            lambda size: api.rejections.list(
                source=source, since=period.since, until=period.until, limit=size
            ),
            limit,
            after,
        )
    empty = "no rejections found; events that intake rejects are listed here"
    show_page(rows, following, _REJECTION_COLUMNS, output=output, as_json=as_json, empty=empty)


@rejections.command("show")
def show_rejection(
    rejection: Annotated[str, typer.Argument(metavar="ID", help="Id from `noonmark rejection list`.")],
    as_json: AsJson = False,
) -> None:
    """Show a rejected submission: its problems and the stored event."""
    if not (rejection.isascii() and rejection.isdecimal() and len(rejection) <= _ID_DIGITS):
        raise CliError(
            f"{rejection!r} is not a rejection id; use the number in the first column of"
            " `noonmark rejection list`",
            ExitCode.USAGE,
        )
    from noonmark.cli.connections.api import client  # noqa: PLC0415

    missing = f"rejection {rejection} does not exist; run `noonmark rejection list`"
    with client(operator_settings()) as api, or_missing(missing):
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
    stored = base64.b64decode(found["value_base64"] or "").decode("utf-8", errors="replace")
    print("\nevent (truncated)" if found["truncated"] else "\nevent")
    for line in stored.splitlines():
        print(f"  {printable(line)}")
