"""`noonmark job`: what is to be run, and when."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from enum import StrEnum
from typing import Annotated, Any

import typer

from noonmark.cli import job_orders
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
from noonmark.cli.output import Column, field, shortened, show_fields, show_json, show_list
from noonmark.cli.problems import CliError
from noonmark.core.words import JobState, Lane

app = typer.Typer(help="Show jobs: what is to be run, and when; pause and resume them.", no_args_is_help=True)
app.command()(job_orders.pause)
app.command()(job_orders.resume)

State = StrEnum("State", {state.name: state.value for state in JobState})  # type: ignore[misc]


def schedule_text(schedule: Mapping[str, Any] | None) -> str:
    """Return when a job is due, in a few words."""
    if not schedule:
        return "now"
    if schedule.get("cron"):
        zone = schedule.get("timezone", "UTC")
        return str(schedule["cron"]) + (f" {zone}" if zone != "UTC" else "")
    if schedule.get("rrule"):
        return shortened(str(schedule["rrule"]).removeprefix("RRULE:").replace("\n", " "), 60)
    if schedule.get("any"):
        return shortened("; ".join(map(schedule_text, schedule["any"])), 60)
    if schedule.get("every"):
        every = schedule["every"]
        return f"every {every if isinstance(every, str) else f'{every:g} s'}"
    return f"at {schedule['run_at']}" if schedule.get("run_at") else "-"


_COLUMNS = (
    field("id", "JOB"),
    Column("NAME", lambda row: shortened(row["name"], 40), elastic=True),
    field("kind", "TYPE"),
    field("lane"),
    field("state"),
    Column("SCHEDULE", lambda row: schedule_text(row["schedule"])),
    field("next_due_at", "NEXT DUE"),
    field("namespace", wide=True),
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

    wanted = views.JobFilter(
        states=[JobState(one.value) for one in state or ()],
        name=name,
        namespace=namespace,
        lanes=[Lane.from_priority(one) for one in lane or ()],
    )
    with reading(operator_settings()) as connection:
        page = views.list_jobs(connection, wanted, limit=limit, before=place)
    if as_json:
        show_json({"items": [document(row) for row in page.rows], "next": page.next})
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
    from noonmark.store.held_views import held_instants  # noqa: PLC0415

    with reading(operator_settings()) as connection:
        name = job if job_id is None else None
        found = views.find_jobs(connection, job=job_id, name=name, namespace=namespace)
        held = {row["id"]: held_instants(connection, row) for row in found if row["held_from"]}
    if not found:
        raise CliError(f"there is no job {job!r}: `noonmark job list` shows those there are")
    if len(found) > 1 and len({row["namespace"] for row in found if row["unique_name"]}) > 1:
        spaces = ", ".join(sorted({row["namespace"] for row in found}))
        raise CliError(f"several namespaces have a job {job!r} ({spaces}): say which with --namespace")
    if len(found) > 1 and not any(row["unique_name"] for row in found):
        ids = ", ".join(str(row["id"]) for row in found)
        raise CliError(f"several one-time jobs are called {job!r}: show one by its id, of {ids}")
    chosen = next((row for row in found if row["unique_name"]), found[0])
    shown = document(chosen)
    if chosen["id"] in held:
        shown["held_instants"] = held[chosen["id"]]
    if as_json:
        show_json(shown)
        return
    show_fields(shown)


def document(row: Mapping[str, Any]) -> dict[str, Any]:
    """Return the job document of a stored job with every default spelt out, and what became of it."""
    schedule = dict(row["schedule"] or {})
    work, policy = row["work"] or {}, row["policy"] or {}
    misfire = _misfire(policy.get("misfire") or {}, schedule)
    run_at, anchor = schedule.pop("run_at", None), schedule.pop("anchor", None)
    if anchor is not None:
        schedule.setdefault("start", anchor)
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
        "schedule": schedule or None,
        "run_at": run_at,
        "priority": row["lane"],
        "pool": row["pool"],
        "timeout_seconds": work.get("timeout_seconds"),
        "retry": work.get("retry"),
        "misfire": misfire,
        "overlap": policy.get("overlap", "allow"),
        "delivery": "at_least_once",
        "start_deadline_seconds": policy.get("start_deadline_seconds"),
        "labels": row["labels"] or {},
        "idempotency_key": row["idempotency_key"],
        "description": row["description"],
        "owner": row["owner"],
    }


def _misfire(stored: Mapping[str, Any], schedule: Mapping[str, Any]) -> dict[str, Any]:
    """Spell out the misfire rule; the look-back by default depends on the schedule's period."""
    from noonmark.core.planning import MIN_LOOK_BACK_SECONDS, Misfire  # noqa: PLC0415 - for this command only
    from noonmark.core.schedule import ScheduleError, load_schedule  # noqa: PLC0415

    rule = Misfire(**stored)
    look_back = rule.look_back_seconds
    if look_back is None:
        try:
            look_back = (
                rule.look_back_at(load_schedule(dict(schedule)), datetime.now(UTC))
                if schedule
                else max(MIN_LOOK_BACK_SECONDS, rule.grace_seconds)
            )
        except ScheduleError:
            # The job is broken, and its state says so; what it would look back to is nobody's guess.
            look_back = None
    return {
        "policy": rule.policy.value,
        "grace_seconds": rule.grace_seconds,
        "look_back_seconds": look_back,
    }
