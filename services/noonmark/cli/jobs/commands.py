"""`noonmark job`: manage jobs."""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from typing import Annotated, Any

import typer

from noonmark.cli.connections.api_pages import gather, or_missing, show_page, with_instants
from noonmark.cli.connections.context import operator_settings
from noonmark.cli.connections.job_ref import any_id_of, missing_job
from noonmark.cli.jobs import control as job_control
from noonmark.cli.jobs import edit as job_edit
from noonmark.cli.jobs import export as job_export
from noonmark.cli.jobs import versions as job_versions
from noonmark.cli.submissions import apply, check_jobs
from noonmark.cli.terminal.options import (
    AfterCursor,
    AsJson,
    LaneOption,
    Limit,
    OneNamespace,
    Output,
    OutputOption,
)
from noonmark.cli.terminal.output import Column, field, shortened, show_fields, show_json, text
from noonmark.core.states import NO_NEXT_INSTANT, JobState

app = typer.Typer(
    help="Manage jobs: create, check, apply, export, show, edit, pause, resume, trigger, cancel."
    " `noonmark submit` sends the same requests as events.",
    no_args_is_help=True,
)
for _command in (
    apply.apply,
    check_jobs.check,
    job_export.export,
    job_edit.create,
    job_edit.edit,
    job_control.pause,
    job_control.resume,
    job_control.trigger,
    job_control.cancel,
    job_control.delete,
    job_versions.versions,
    job_versions.diff,
):
    app.command()(_command)

_PAUSES = {"job": "a pause of this job", "namespace": "a pause of its namespace"}
"""The values of `paused_by`, which does not name a person."""

_OPTIONAL = frozenset({"document", "payload_hidden", "held_instants"})

State = StrEnum("State", {state.name: state.value for state in JobState})  # type: ignore[misc]


def schedule_text(schedule: Mapping[str, Any] | None) -> str:
    """Return a short text of a schedule."""
    if not schedule:
        return "now"
    members = schedule.get("any")
    if members:
        # All members of a union have the same zone.
        zone = next((member["timezone"] for member in members if "timezone" in member), "UTC")
        return shortened("; ".join(map(_rule_text, members)), 60) + _zone_text(zone)
    has_clock = schedule.get("cron") or schedule.get("rrule")
    return _rule_text(schedule) + _zone_text(schedule.get("timezone", "UTC") if has_clock else "UTC")


def _zone_text(zone: str) -> str:
    return f" {zone}" if zone != "UTC" else ""


def _rule_text(schedule: Mapping[str, Any]) -> str:
    if schedule.get("cron"):
        return str(schedule["cron"])
    if schedule.get("rrule"):
        return shortened(str(schedule["rrule"]).removeprefix("RRULE:").replace("\n", " "), 60)
    if schedule.get("every"):
        every = schedule["every"]
        return f"every {every if isinstance(every, str) else f'{every:g} s'}"
    return f"at {schedule['run_at']}" if schedule.get("run_at") else "-"


def due_text(document: Mapping[str, Any]) -> str:
    """Return a short text of when the job of a document is due."""
    run_at = document["run_at"]
    return schedule_text({"run_at": run_at} if run_at else document["schedule"])


def next_due_text(job: Mapping[str, Any]) -> str:
    """Return the next instant; `none` if calendars exclude every instant of an active job."""
    if job["next_run_at"] is None and job["state_reason"] == NO_NEXT_INSTANT:
        return "none"
    return text(job["next_run_at"])


def _document_field(name: str, title: str = "", *, wide: bool = False) -> Column:
    """Return a column that shows one field of the job's document."""
    return Column(title or name.upper(), lambda job: text(job["document"].get(name)), wide)


_COLUMNS = (
    field("id", "JOB"),
    Column("NAME", lambda job: shortened(job["name"], 40), elastic=True, key=True),
    _document_field("type"),
    _document_field("priority", "LANE"),
    field("state", key=True),
    Column("SCHEDULE", lambda job: due_text(job["document"])),
    Column("NEXT DUE", next_due_text),
    field("namespace", wide=True),
    _document_field("pool", wide=True),
    _document_field("handler", wide=True),
    field("version", wide=True, numeric=True),
    field("created_at", "CREATED", wide=True),
    Column("REASON", lambda job: shortened(job["state_reason"], 80), wide=True, cut=True),
)


@app.command("list")
def list_(
    *,
    state: Annotated[list[State] | None, typer.Option(help="Only jobs in this state; repeatable.")] = None,
    name: Annotated[str | None, typer.Option(help="Only jobs with this name.")] = None,
    namespace: OneNamespace = None,
    lane: LaneOption = None,
    limit: Limit = 50,
    after: AfterCursor = None,
    output: OutputOption = Output.TABLE,
    as_json: AsJson = False,
) -> None:
    """List jobs of a namespace, newest first."""
    from noonmark.cli.connections.api import client  # noqa: PLC0415 - httpx takes a while to load

    with client(operator_settings()) as api:
        rows, following = gather(
            lambda size: api.jobs.list(
                namespace=namespace,
                name=name,
                state=[one.value for one in state or ()],
                priority=[one.value for one in lane or ()],
                limit=size,
            ),
            limit,
            after,
        )
    empty = "no jobs found; create one with `noonmark job create` or `noonmark job apply`"
    show_page(rows, following, _COLUMNS, output=output, as_json=as_json, empty=empty)


@app.command()
def show(
    job: Annotated[str, typer.Argument(metavar="ID|NAME", help="Id or name of the job.")],
    namespace: OneNamespace = None,
    as_json: AsJson = False,
) -> None:
    """Show a job with all defaults."""
    from noonmark.cli.connections.api import client  # noqa: PLC0415

    with client(operator_settings()) as api:
        job_id = any_id_of(api, job, namespace)
        with or_missing(missing_job(api, job, namespace)):
            found = api.jobs.get(job_id)
    if as_json:
        show_json(found)
        return
    show_fields(job_fields(found))


def job_fields(job: Mapping[str, Any]) -> dict[str, Any]:
    """Return the fields to show of a job: its state, then its document with all defaults."""
    shown = {name: value for name, value in with_instants(job).items() if name not in _OPTIONAL}
    shown |= {name: value for name, value in job["document"].items() if name not in shown}
    if job["paused_by"] is not None:
        shown["paused_by"] = _PAUSES[job["paused_by"]]
    if job["payload_hidden"]:
        shown["payload"] = "(hidden: the key may not read payloads)"
    if job["held_instants"] is not None:
        shown["held_instants"] = job["held_instants"]
    return shown
