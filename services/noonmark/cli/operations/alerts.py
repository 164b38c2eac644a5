"""`noonmark alert`: list alerts of the observer, and test the channels that send them."""

from __future__ import annotations

from itertools import islice
from typing import TYPE_CHECKING, Annotated, Any, Final

import typer

from noonmark.cli.connections.api_pages import or_missing, with_instants
from noonmark.cli.connections.context import operator_settings
from noonmark.cli.connections.ids import object_id
from noonmark.cli.connections.job_ref import any_id_of
from noonmark.cli.terminal.options import AsJson, Limit, Namespace, Output, OutputOption
from noonmark.cli.terminal.output import Column, field, shortened, show_fields, show_json, show_list
from noonmark.cli.terminal.problems import CliError, ExitCode
from noonmark.core.monitoring.alerts import AlertKind

if TYPE_CHECKING:
    from noonmark.settings import Settings

app = typer.Typer(help="Show alerts, and test alert channels.", no_args_is_help=True)

_PAGE: Final = 200
_STATES: Final = ("open", "resolved", "all")

_COLUMNS = (
    field("raised_at", "RAISED"),
    field("kind", key=True),
    field("severity"),
    field("namespace", varies=True),
    Column("JOB", lambda row: shortened(row["job_name"] or row["job_id"], 40), cut=True),
    Column("SUMMARY", lambda row: shortened(row["summary"], 120), cut=True),
    field("resolved_at", "RESOLVED", varies=True),
    field("id", "ALERT", key=True),
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
_TRIED = (field("channel"), Column("ANSWER", lambda row: row["error"] or "accepted"))


@app.command("list")
def list_(
    *,
    state: Annotated[
        str, typer.Option("--state", help="State of the alerts: open, resolved or all.")
    ] = "open",
    kind: Annotated[
        str | None,
        typer.Option("--kind", help="Only this kind: runaway, late, stuck, failing, dead or silent."),
    ] = None,
    job: Annotated[str | None, typer.Option("--job", help="Only alerts of this job (id or name).")] = None,
    namespace: Namespace = None,
    limit: Limit = 50,
    output: OutputOption = Output.TABLE,
    as_json: AsJson = False,
) -> None:
    """List alerts, newest first. Shows open alerts by default."""
    if state not in _STATES:
        raise CliError(f"--state {state!r} is not a state; use one of {', '.join(_STATES)}", ExitCode.USAGE)
    if kind is not None and kind not in list(AlertKind):
        raise CliError(
            f"--kind {kind!r} is not a kind; use one of {', '.join(sorted(AlertKind))}", ExitCode.USAGE
        )
    from noonmark.cli.connections.api import client  # noqa: PLC0415 - httpx takes a while to load

    with client(operator_settings()) as api:
        found = api.alerts.list(
            state=state,  # type: ignore[arg-type] # checked above
            kind=kind,
            job_id=None if job is None else any_id_of(api, job, namespace),
            namespace=namespace,
            limit=min(limit, _PAGE),
        )
        rows = list(islice(found, limit))
    if as_json:
        show_json({"items": rows})
        return
    show_list(
        [with_instants(row) for row in rows],
        _COLUMNS,
        wide=output is Output.WIDE,
        empty="no alerts found; the observer raises them",
    )


@app.command()
def show(
    alert: Annotated[
        str, typer.Argument(metavar="ALERT", help="Id of the alert, or at least its first 8 characters.")
    ],
    as_json: AsJson = False,
) -> None:
    """Show an alert with its figures and its deliveries."""
    alert_id = object_id(alert, "alert")
    from noonmark.cli.connections.api import client  # noqa: PLC0415

    with (
        client(operator_settings()) as api,
        or_missing(f"alert {alert_id} does not exist; run `noonmark alert list`"),
    ):
        found = api.alerts.get(alert_id)
    if as_json:
        show_json(found)
        return
    fields = {k: v for k, v in with_instants(found).items() if v is not None and v is not False}
    details, deliveries = fields.pop("details"), fields.pop("deliveries")
    # A figure can have the name of a field: the kind of the dead runs is not the kind of the alert.
    figures = {(f"details.{k}" if fields.get(k, v) != v else k): v for k, v in details.items()}
    show_fields({**fields, **figures}, precise=True)
    print("\ndeliveries" if deliveries else "\nno deliveries: the observer has no alert channel")
    if deliveries:
        show_list([with_instants(row) for row in deliveries], _DELIVERIES)


@app.command("test")
def try_channels(as_json: AsJson = False) -> None:
    """Send a test alert through each configured channel, and show the answers.

    Exits 1 if a channel did not accept it.
    """
    rows = _tried(operator_settings())
    if not rows:
        raise CliError(
            "no alert channel is configured; set NOONMARK_ALERT_WEBHOOK_URL or NOONMARK_ALERTMANAGER_URL",
            ExitCode.USAGE,
        )
    if as_json:
        show_json({"items": rows})
    else:
        show_list(rows, _TRIED)
    if any(row["error"] for row in rows):
        raise typer.Exit(ExitCode.PROBLEM)


def _tried(settings: Settings) -> list[dict[str, Any]]:
    """Return each channel with its error, None if it accepted the alert."""
    import time  # noqa: PLC0415 - for this command only

    from noonmark.alerting.channels import ChannelError, open_channels  # noqa: PLC0415 - for this command only
    from noonmark.alerting.test_alert import trial  # noqa: PLC0415 - for this command only

    try:
        channels = open_channels(settings)
    except ChannelError as error:
        raise CliError(str(error), ExitCode.USAGE) from error
    rows = []
    for channel in channels:
        ((_, problem),) = channel.send([trial()], time.monotonic())
        channel.close()
        rows.append({"channel": channel.name, "error": problem or None})
    return rows
