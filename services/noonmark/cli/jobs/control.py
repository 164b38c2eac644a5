"""`noonmark job pause`, `resume`, `trigger`, `cancel`, `delete`: requests about one job or a selection."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Annotated, Any

import typer

from noonmark.cli.connections.context import operator_settings
from noonmark.cli.connections.job_ref import InNamespace, Job, id_of
from noonmark.cli.jobs.bulk import BulkRequest, carry_out
from noonmark.cli.jobs.selection import JobSelection
from noonmark.cli.runs.retry import finish
from noonmark.cli.terminal.bulk_requests import DryRun, Yes
from noonmark.cli.terminal.json_values import JSON_FORMS, read_json_option
from noonmark.cli.terminal.options import (
    AsJson,
    Labels,
    LaneName,
    Missed,
    NamePattern,
    duration_option,
)
from noonmark.cli.terminal.output import printable, show_json
from noonmark.cli.terminal.problems import CliError, ExitCode
from noonmark.core.states import JobState, ResumeChoice, RunState

if TYPE_CHECKING:
    from noonmark.client import Client

_OneJob = Annotated[
    str | None,
    typer.Argument(
        metavar="[ID|NAME]",
        help="Id of the job (at least its first 8 characters), or name of a recurring job.",
    ),
]
Reason = Annotated[str | None, typer.Option(help="Reason, shown to users.")]


def pause(
    *,
    job: _OneJob = None,
    label: Labels = None,
    name: NamePattern = None,
    reason: Reason = None,
    namespace: InNamespace = None,
    dry_run: DryRun = False,
    yes: Yes = False,
    as_json: AsJson = False,
) -> None:
    """Pause a job: no run starts until you resume it. Running runs continue.

    With --label or --name, pause all active jobs that match.
    """

    def send(client: Client, job_id: str) -> Mapping[str, Any]:
        return client.jobs.pause(job_id, reason)

    request = BulkRequest("pause", "paused", send, JobState.PAUSED)
    if _is_one(job, label, name, dry_run=dry_run):
        _request(job, namespace, request, as_json)
        return
    selection = JobSelection.make(namespace, label, name, (JobState.ACTIVE.value,))
    carry_out(request, selection, dry_run=dry_run, yes=yes, as_json=as_json)


def resume(
    *,
    job: _OneJob = None,
    label: Labels = None,
    name: NamePattern = None,
    missed: Missed = ResumeChoice.SKIP,
    namespace: InNamespace = None,
    dry_run: DryRun = False,
    yes: Yes = False,
    as_json: AsJson = False,
) -> None:
    """Resume a paused job and queue its deferred runs.

    With --label or --name, resume all paused jobs that match.
    """

    def send(client: Client, job_id: str) -> Mapping[str, Any]:
        return client.jobs.resume(job_id, missed.value)

    request = BulkRequest("resume", "resumed", send, JobState.ACTIVE)
    if _is_one(job, label, name, dry_run=dry_run):
        _request(job, namespace, request, as_json)
        return
    selection = JobSelection.make(namespace, label, name, (JobState.PAUSED.value,))
    carry_out(request, selection, dry_run=dry_run, yes=yes, as_json=as_json)


def cancel(
    *, job: Job, reason: Reason = None, namespace: InNamespace = None, as_json: AsJson = False
) -> None:
    """Cancel a job permanently, and its unfinished runs, including running ones."""

    def send(client: Client, job_id: str) -> Mapping[str, Any]:
        return client.jobs.cancel(job_id, reason)

    _request(job, namespace, BulkRequest("cancel", "cancelled", send, JobState.CANCELLED), as_json)


def delete(*, job: Job, namespace: InNamespace = None, as_json: AsJson = False) -> None:
    """Cancel a job permanently, and its runs that have not started; running runs continue."""

    def send(client: Client, job_id: str) -> Mapping[str, Any]:
        return client.jobs.delete(job_id)

    _request(job, namespace, BulkRequest("delete", "cancelled", send, JobState.CANCELLED), as_json)


def trigger(
    *,
    job: _OneJob = None,
    label: Labels = None,
    name: NamePattern = None,
    payload: Annotated[
        str | None,
        typer.Option("--payload", help=f"Payload of this run: {JSON_FORMS}. (default: that of the job)"),
    ] = None,
    priority: Annotated[
        LaneName | None, typer.Option("--priority", help="Lane of this run. (default: that of the job)")
    ] = None,
    wait: Annotated[
        bool, typer.Option("--wait", help="Wait until the run finishes; exits 1 unless it succeeded.")
    ] = False,
    timeout: Annotated[
        float, duration_option("--timeout", help_text="Maximum wait, with --wait", most=604_800)
    ] = 300.0,
    namespace: InNamespace = None,
    dry_run: DryRun = False,
    yes: Yes = False,
    as_json: AsJson = False,
) -> None:
    """Run a job once now, in addition to its schedule. Exits 1 if the run is skipped.

    With --label or --name, run all active recurring jobs that match.
    """
    given = read_json_option(payload, "--payload")
    lane = priority.value if priority is not None else None

    def send(client: Client, job_id: str) -> Mapping[str, Any]:
        return client.jobs.trigger(job_id, payload=given, priority=lane)

    if not _is_one(job, label, name, dry_run=dry_run):
        if wait:
            raise CliError("--wait works for one job, not for a selection", ExitCode.USAGE)
        selection = JobSelection.make(namespace, label, name, (JobState.ACTIVE.value,), recurring=True)
        carry_out(
            BulkRequest("trigger", "triggered", send), selection, dry_run=dry_run, yes=yes, as_json=as_json
        )
        return
    assert job is not None
    from noonmark.cli.connections.api import client  # noqa: PLC0415 - httpx takes a while to load

    with client(operator_settings()) as api:
        job_id = id_of(api, job, namespace)
        answer = send(api, job_id)
        run_id = answer["run_id"]
        ended = api.runs.wait(run_id, timeout) if wait else None
        made = api.runs.get(run_id) if ended is None else ended
    if ended is None:
        answer = {**answer, "state": made["state"], "reason": made["reason"]}
    finish(run_id, answer, ended, as_json=as_json, done=_became(made), pool=made["pool"])


def _became(run: Mapping[str, Any]) -> str:
    """Return what a triggered run has become: it may wait, or be skipped, by the rules of its job."""
    if run["state"] not in (RunState.WAITING, RunState.SKIPPED):
        return "is queued"
    verb = "waits" if run["state"] == RunState.WAITING else "is skipped and will not run"
    return f"{verb} ({printable(run['reason'] or '-')}): `noonmark why {run['id']}` says why"


def _is_one(job: str | None, label: Sequence[str] | None, pattern: str | None, *, dry_run: bool) -> bool:
    """Return whether a command is about one job; otherwise it is about all jobs of a selection.

    Raises:
        CliError: it names neither, or both, or wants a dry run for one job.
    """
    if job is not None and (label or pattern is not None):
        raise CliError("give a job, or a selection with --label and --name, not both", ExitCode.USAGE)
    if job is None and not label and pattern is None:
        raise CliError(
            "no job given: give its id or name, or select jobs with --label or --name", ExitCode.USAGE
        )
    if job is not None and dry_run:
        raise CliError("--dry-run works with --label and --name: it lists the selected jobs", ExitCode.USAGE)
    return job is not None


def _request(job: str | None, namespace: str | None, request: BulkRequest, as_json: bool) -> None:
    """Send a request about a job and print the result: the API answers after its commit."""
    assert job is not None
    from noonmark.cli.connections.api import client  # noqa: PLC0415

    with client(operator_settings()) as api:
        job_id = id_of(api, job, namespace)
        answer = request.send(api, job_id)
    if as_json:
        show_json(answer or {"id": job_id})
    else:
        print(f"job {printable(job)} {request.outcome(answer)}; `noonmark job show {job_id}` shows it")
