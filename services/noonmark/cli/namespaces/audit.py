"""`noonmark audit`: list changes and denied requests."""

from __future__ import annotations

from itertools import islice
from typing import Annotated, Final

import typer

from noonmark.cli.connections.context import operator_settings
from noonmark.cli.connections.periods import Period, PeriodZone, since_option, until_option
from noonmark.cli.terminal.options import AsJson, Limit, Namespace, Output, OutputOption
from noonmark.cli.terminal.output import field, instant_field, show_json, show_list

_PAGE: Final = 200
_COLUMNS = (
    instant_field("at", "AT"),
    field("actor_name", "WHO", cut=True),
    field("action"),
    field("namespace", varies=True),
    field("object", cut=True),
    field("outcome"),
    field("reason", cut=True),
    field("id", "ID", numeric=True, wide=True),
    field("actor", wide=True),
    field("request_id", "REQUEST", wide=True),
    field("address", wide=True),
)


def audit(
    *,
    namespace: Namespace = None,
    actor: Annotated[
        str | None, typer.Option("--actor", help="Only this principal, such as key:KEY.")
    ] = None,
    action: Annotated[
        str | None, typer.Option("--action", help="Only this action, such as job.pause.")
    ] = None,
    target: Annotated[str | None, typer.Option("--object", help="Only this object, such as job:ID.")] = None,
    outcome: Annotated[
        str | None, typer.Option("--outcome", help="Only this outcome: done, denied or failed.")
    ] = None,
    since: Annotated[str | None, since_option("entries")] = None,
    until: Annotated[str | None, until_option("entries")] = None,
    zone: PeriodZone = None,
    limit: Limit = 50,
    output: OutputOption = Output.TABLE,
    as_json: AsJson = False,
) -> None:
    """List changes by the API and the command line, and denied requests, newest first."""
    period = Period.read(since, until, zone)
    from noonmark.cli.connections.api import client  # noqa: PLC0415 - the API's client takes a while to load

    with client(operator_settings()) as api:
        found = api.audit.list(
            namespace=namespace,
            actor=actor,
            action=action,
            object=target,
            outcome=outcome,
            since=period.since,
            until=period.until,
            limit=min(limit, _PAGE),
        )
        rows = list(islice(found, limit))
    if as_json:
        show_json({"items": rows})
        return
    empty = "no audit entries found; changes and denied requests are listed here"
    show_list(rows, _COLUMNS, wide=output is Output.WIDE, empty=empty)
