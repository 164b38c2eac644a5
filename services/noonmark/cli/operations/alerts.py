"""`noonmark alert`: what the observer found wrong, and whether its channels reach anybody."""

from __future__ import annotations

from itertools import islice
from typing import TYPE_CHECKING, Annotated, Any, Final

import typer

from noonmark.cli.connections.api_pages import or_missing, with_instants
from noonmark.cli.connections.context import operator_settings
from noonmark.cli.connections.job_ref import any_id_of
from noonmark.cli.terminal.options import AsJson, Limit, Namespace, Output, OutputOption, read_uuid
from noonmark.cli.terminal.output import Column, field, shortened, show_fields, show_json, show_list
from noonmark.cli.terminal.problems import CliError, ExitCode
from noonmark.core.monitoring.alerts import AlertKind

if TYPE_CHECKING:
    from noonmark.settings import Settings

app = typer.Typer(
    help="Show what the observer found wrong; try the channels it is told by.", no_args_is_help=True
)

_PAGE: Final = 200
_STATES: Final = ("open", "resolved", "all")

_COLUMNS = (
    field("raised_at", "RAISED"),
    field("kind"),
    field("severity"),
    field("namespace", varies=True),
    Column("JOB", lambda row: shortened(row["job_name"] or row["job_id"], 40), cut=True),
    Column("SUMMARY", lambda row: shortened(row["summary"], 120), cut=True),
    field("resolved_at", "RESOLVED", varies=True),
    field("id", "ALERT"),
    field("run_id", "RUN", wide=True),
    field("seen_at", "SEEN", wide=True),
)
_DELIVERIES = (
    field("channel"),
    field("change"),
    field("state"),
    field("attempts", numeric=True),
    field("sent_at", "SENT"),
    field("due_at", "NEXT"),
    Column("ERROR", lambda row: shortened(row["last_error"], 120), cut=True),
)
_TRIED = (field("channel"), Column("ANSWER", lambda row: row["error"] or "taken"))


@app.command("list")
def list_(
    *,
    state: Annotated[str, typer.Option("--state", help="open, resolved or all.")] = "open",
    kind: Annotated[
        str | None,
        typer.Option("--kind", help="Only of this kind: runaway, late, stuck, failing, dead or silent."),
    ] = None,
    job: Annotated[str | None, typer.Option("--job", help="Only about this job: its id or name.")] = None,
    namespace: Namespace = None,
    limit: Limit = 50,
    output: OutputOption = Output.TABLE,
    as_json: AsJson = False,
) -> None:
    """List alerts, the newest first: those that are open, unless others are asked for."""
    if state not in _STATES:
        raise CliError(f"no alert is {state!r}: use one of {', '.join(_STATES)}", ExitCode.USAGE)
    if kind is not None and kind not in list(AlertKind):
        raise CliError(
            f"{kind!r} is no kind of alert: use one of {', '.join(sorted(AlertKind))}", ExitCode.USAGE
        )
    from noonmark.cli.connections.api import client  # noqa: PLC0415 - httpx takes a while to load

    with client(operator_settings()) as api:
        found = api.alerts.list(
            state=state,  # type: ignore[arg-type] # one of them, as was looked at above
            kind=kind,
            job_id=None if job is None else any_id_of(api, job, namespace),
            namespace=namespace,
            limit=min(limit, _PAGE),
        )
        rows = list(islice(found, limit))
    if as_json:
        show_json({"items": rows})
        return
    show_list([with_instants(row) for row in rows], _COLUMNS, wide=output is Output.WIDE)


@app.command()
def show(
    alert: Annotated[str, typer.Argument(metavar="ALERT", help="Id of the alert.")], as_json: AsJson = False
) -> None:
    """Show an alert: its figures, and how far each channel was told."""
    alert_id = read_uuid(alert, "alert")
    assert alert_id is not None
    from noonmark.cli.connections.api import client  # noqa: PLC0415

    with (
        client(operator_settings()) as api,
        or_missing(f"there is no alert {alert_id}: `noonmark alert list` shows those there are"),
    ):
        found = api.alerts.get(alert_id)
    if as_json:
        show_json(found)
        return
    fields = {k: v for k, v in with_instants(found).items() if v is not None and v is not False}
    details, told = fields.pop("details"), fields.pop("deliveries")
    # A figure may have the name of a field: the kind of runs that died is not that of their alert.
    figures = {(f"details.{k}" if fields.get(k, v) != v else k): v for k, v in details.items()}
    show_fields({**fields, **figures}, precise=True)
    print("\ntold" if told else "\ntold to nobody: the observer's settings named no channel")
    if told:
        show_list([with_instants(row) for row in told], _DELIVERIES)


@app.command("test")
def try_channels(as_json: AsJson = False) -> None:
    """Send an alert that means nothing through each channel of these settings, and say what came back.

    Exit code 1: one of them did not take it.
    """
    rows = _tried(operator_settings())
    if not rows:
        raise CliError(
            "these settings name no channel: set NOONMARK_ALERT_WEBHOOK_URL or NOONMARK_ALERTMANAGER_URL",
            ExitCode.USAGE,
        )
    if as_json:
        show_json({"items": rows})
    else:
        show_list(rows, _TRIED)
    if any(row["error"] for row in rows):
        raise typer.Exit(ExitCode.PROBLEM)


def _tried(settings: Settings) -> list[dict[str, Any]]:
    """Return each channel with what went wrong; "" where it took the alert."""
    import time  # noqa: PLC0415 - with the rest that only this command needs

    from noonmark.alerting.channels import ChannelError, open_channels  # noqa: PLC0415 - likewise
    from noonmark.alerting.test_alert import trial  # noqa: PLC0415 - likewise

    try:
        channels = open_channels(settings)
    except ChannelError as error:
        raise CliError(str(error), ExitCode.USAGE) from error
    rows = []
    for channel in channels:
        ((_, told),) = channel.send([trial()], time.monotonic())
        channel.close()
        rows.append({"channel": channel.name, "error": told or None})
    return rows
