"""`noonmark job`: what is to be run, and when."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from enum import StrEnum
from typing import TYPE_CHECKING, Annotated, Any

import typer

from noonmark.cli import apply, job_edit, job_orders, job_versions
from noonmark.cli.context import operator_settings, reading
from noonmark.cli.options import (
    After,
    AsJson,
    LaneOption,
    Limit,
    Namespace,
    Output,
    OutputOption,
    as_uuid,
    read_uuid,
)
from noonmark.cli.output import Column, field, shortened, show_fields, show_json, show_list, text
from noonmark.cli.problems import CliError
from noonmark.core.words import JobState, Lane

if TYPE_CHECKING:
    from noonmark.core.schedule import Schedule

app = typer.Typer(
    help="Make, show and change jobs: what is to be run, and when; pause, resume, trigger and cancel them."
    " `noonmark submit` gives the same orders as events.",
    no_args_is_help=True,
)
for _command in (
    apply.apply,
    job_edit.create,
    job_edit.edit,
    job_orders.pause,
    job_orders.resume,
    job_orders.trigger,
    job_orders.cancel,
    job_orders.delete,
    job_versions.versions,
    job_versions.diff,
):
    app.command()(_command)

State = StrEnum("State", {state.name: state.value for state in JobState})  # type: ignore[misc]


def schedule_text(schedule: Mapping[str, Any] | None) -> str:
    """Return when a job is due, in a few words."""
    if not schedule:
        return "now"
    members = schedule.get("any")
    if members:
        # The members of a union have one zone.
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


def next_due_text(row: Mapping[str, Any]) -> str:
    """Return the next instant; `none` where the calendars of an active job leave none."""
    return "none" if row["no_next_instant"] else text(row["next_due_at"])


_COLUMNS = (
    field("id", "JOB"),
    Column("NAME", lambda row: shortened(row["name"], 40), elastic=True),
    field("kind", "TYPE"),
    field("lane"),
    field("state"),
    Column("SCHEDULE", lambda row: schedule_text(row["schedule"])),
    Column("NEXT DUE", next_due_text),
    field("namespace", wide=True, varies=True),
    field("pool", wide=True),
    field("handler", wide=True),
    field("version", wide=True, numeric=True),
    field("created_at", "CREATED", wide=True),
    Column("REASON", lambda row: shortened(row["state_reason"], 80), wide=True, cut=True),
)


@app.command("list")
def list_(
    *,
    state: Annotated[list[State] | None, typer.Option(help="Only jobs in this state; repeatable.")] = None,
    name: Annotated[str | None, typer.Option(help="Only jobs of this name.")] = None,
    namespace: Namespace = None,
    lane: LaneOption = None,
    limit: Limit = 50,
    after: After = None,
    output: OutputOption = Output.TABLE,
    as_json: AsJson = False,
) -> None:
    """List jobs, the newest first."""
    place = read_uuid(after, "--after")
    from noonmark.store import views  # noqa: PLC0415
    from noonmark.store.held_views import stored_schedules  # noqa: PLC0415

    wanted = views.JobFilter(
        states=[JobState(one.value) for one in state or ()],
        name=name,
        namespace=namespace,
        lanes=[Lane.from_priority(one) for one in lane or ()],
    )
    with reading(operator_settings()) as connection:
        page = views.list_jobs(connection, wanted, limit=limit, before=place)
        schedules = stored_schedules(connection, page.rows) if as_json else {}
    if as_json:
        items = [document(row, schedules.get(row["id"])) for row in page.rows]
        show_json({"items": items, "next": page.next})
        return
    footer = f"more: --after {page.next}" if page.next else ""
    show_list(page.rows, _COLUMNS, wide=output is Output.WIDE, footer=footer)


@app.command()
def show(
    job: Annotated[str, typer.Argument(metavar="ID|NAME", help="Id or name of the job.")],
    namespace: Namespace = None,
    as_json: AsJson = False,
) -> None:
    """Show one job with every default spelt out."""
    job_id = as_uuid(job)
    from noonmark.store import views  # noqa: PLC0415
    from noonmark.store.held_views import held_instants, stored_schedules  # noqa: PLC0415

    with reading(operator_settings()) as connection:
        name = job if job_id is None else None
        found = views.find_jobs(connection, job=job_id, name=name, namespace=namespace)
        schedules = stored_schedules(connection, found)
        held = {
            row["id"]: held_instants(connection, row, schedules.get(row["id"]))
            for row in found
            if row["state"] == JobState.PAUSED and row["held_from"]
        }
    if not found:
        raise CliError(f"there is no job {job!r}: `noonmark job list` shows those there are")
    if len(found) > 1 and len({row["namespace"] for row in found if row["unique_name"]}) > 1:
        spaces = ", ".join(sorted({row["namespace"] for row in found}))
        raise CliError(f"several namespaces have a job {job!r} ({spaces}): say which with --namespace")
    if len(found) > 1 and not any(row["unique_name"] for row in found):
        ids = ", ".join(str(row["id"]) for row in found)
        raise CliError(f"several one-time jobs are called {job!r}: show one by its id, of {ids}")
    chosen = next((row for row in found if row["unique_name"]), found[0])
    shown = document(chosen, schedules.get(chosen["id"]))
    if chosen["id"] in held:
        shown["held_instants"] = held[chosen["id"]]
    if as_json:
        show_json(shown)
        return
    show_fields(shown)


def document(row: Mapping[str, Any], schedule: Schedule | None = None) -> dict[str, Any]:
    """Return the job document of a stored job with every default spelt out, and what became of it.

    Args:
        row: of `views.list_jobs` or `views.find_jobs`.
        schedule: its stored schedule, read; None where it has none, or it cannot be read: then it is shown as
            it is stored.
    """
    stored = row["schedule"] or {}
    run_at = stored.get("run_at")
    work, policy = row["work"] or {}, row["policy"] or {}
    misfire = _misfire(policy.get("misfire") or {}, schedule)
    return {
        "id": row["id"],
        "namespace": row["namespace"],
        "name": row["name"],
        "state": row["state"],
        "state_reason": row["state_reason"],
        "paused_at": row["paused_at"],
        "paused_by": row["paused_by"],
        "next_due_at": row["next_due_at"],
        "version": row["version"],
        "created_at": row["created_at"],
        "updated_at": row["updated_at"],
        "type": row["kind"],
        "handler": row["handler"],
        "payload": work.get("payload"),
        "schedule": None if run_at is not None else _schedule_document(schedule) or stored or None,
        "run_at": run_at,
        "priority": row["lane"],
        "pool": row["pool"],
        "timeout_seconds": work.get("timeout_seconds"),
        "retry": work.get("retry"),
        "misfire": misfire,
        "overlap": policy.get("overlap", "allow"),
        "limits": [
            name if key is None else {"name": name, "key": key} for name, key in policy.get("limits", ())
        ],
        "delivery": "at_least_once",
        "start_deadline_seconds": policy.get("start_deadline_seconds"),
        "labels": row["labels"] or {},
        "idempotency_key": row["idempotency_key"],
        "description": row["description"],
        "owner": row["owner"],
    }


def _schedule_document(schedule: Schedule | None) -> dict[str, object] | None:
    if schedule is None:
        return None
    from noonmark.core.schedule import document_of  # noqa: PLC0415 - for this command only

    return document_of(schedule)


def _misfire(stored: Mapping[str, Any], schedule: Schedule | None) -> dict[str, Any]:
    """Spell out the misfire rule; the look-back by default depends on the schedule's period."""
    from noonmark.core.planning import Misfire  # noqa: PLC0415 - for this command only

    rule = Misfire(**stored)
    look_back = rule.look_back_seconds
    if look_back is None and schedule is not None:
        look_back = rule.look_back_at(schedule, datetime.now(UTC))
    # None is no limit, as for one-time jobs. Of a schedule that cannot be read nobody knows.
    return {
        "policy": rule.policy.value,
        "grace_seconds": rule.grace_seconds,
        "look_back_seconds": look_back,
    }
