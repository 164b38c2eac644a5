"""`noonmark rejection` and `noonmark dead`: what was refused, and what used up its attempts."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any

import typer

from noonmark.cli.context import operator_settings, reading
from noonmark.cli.options import After, AsJson, Limit, Namespace, Output, OutputOption, read_uuid
from noonmark.cli.output import Column, field, printable, shortened, show_json, show_list
from noonmark.cli.problems import CliError, ExitCode
from noonmark.cli.runs import job_label

rejections = typer.Typer(help="Show submissions that were refused, and why.", no_args_is_help=True)
dead = typer.Typer(help="Show runs whose attempts are used up.", no_args_is_help=True)

_EXCERPT = 80


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
    return f"{row['topic']}/{row['partition']}/{row['record_offset']}"


def excerpt(row: Mapping[str, Any]) -> str:
    """Return the beginning of the event as text."""
    return shortened((row["value"] or b"").decode("utf-8", errors="replace"), _EXCERPT)


_REJECTION_COLUMNS = (
    field("received_at", "RECEIVED"),
    Column("POSITION", position),
    field("event_id", "EVENT"),
    field("reason"),
    Column("PROBLEMS", lambda row: ". ".join(reasons(row)), elastic=True),
    field("event_source", "SOURCE", wide=True),
    Column("EXCERPT", excerpt, wide=True, elastic=True),
)


@rejections.command("list")
def list_rejections(
    *,
    source: Annotated[str | None, typer.Option(help="Only events of this publisher.")] = None,
    limit: Limit = 50,
    after: Annotated[str | None, typer.Option("--after", help="Go on below this row.")] = None,
    output: OutputOption = Output.TABLE,
    as_json: AsJson = False,
) -> None:
    """List refused submissions, the newest first."""
    if after is not None and not after.isdecimal():
        raise CliError(f"--after {after!r} is no number: take the `next` of the page before", ExitCode.USAGE)
    from noonmark.store import views  # noqa: PLC0415

    with reading(operator_settings()) as connection:
        page = views.list_rejections(
            connection, source=source, limit=limit, before=int(after) if after else None
        )
    if as_json:
        show_json({"items": page.rows, "next": page.next})
        return
    footer = f"more: --after {page.next}" if page.next else ""
    show_list(page.rows, _REJECTION_COLUMNS, wide=output is Output.WIDE, footer=footer)


_DEAD_COLUMNS = (
    field("died_at", "DIED"),
    field("run_id", "RUN"),
    Column("JOB", lambda row: shortened(job_label(row), 40), elastic=True),
    field("attempts", numeric=True),
    field("reason"),
    Column("ERROR", lambda row: shortened(row["error"], 80), elastic=True),
    field("scheduled_for", "DUE", wide=True),
    field("namespace", wide=True),
    field("job_id", "JOB ID", wide=True),
)


@dead.command("list")
def list_dead(
    namespace: Namespace = None,
    limit: Limit = 50,
    after: After = None,
    output: OutputOption = Output.TABLE,
    as_json: AsJson = False,
) -> None:
    """List dead letters, the newest run first."""
    place = read_uuid(after, "--after")
    from noonmark.store import views  # noqa: PLC0415

    with reading(operator_settings()) as connection:
        page = views.list_dead(connection, namespace=namespace, limit=limit, before=place)
    if as_json:
        show_json({"items": page.rows, "next": page.next})
        return
    footer = f"more: --after {page.next}" if page.next else ""
    show_list(page.rows, _DEAD_COLUMNS, wide=output is Output.WIDE, footer=footer)
