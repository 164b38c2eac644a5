"""`noonmark job pause`, `resume`, `trigger`, `cancel`, `delete`: requests about one job."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Annotated, Any

import typer

from noonmark.cli.connections.context import operator_settings
from noonmark.cli.connections.job_ref import InNamespace, Job, id_of
from noonmark.cli.runs.retry import finish
from noonmark.cli.terminal.options import AsJson, LaneName, Missed
from noonmark.cli.terminal.output import printable, show_json
from noonmark.cli.terminal.problems import CliError, ExitCode
from noonmark.core.states import ResumeChoice

if TYPE_CHECKING:
    from noonmark.client import Client

Reason = Annotated[str | None, typer.Option(help="Reason, shown to users.")]


def pause(*, job: Job, reason: Reason = None, namespace: InNamespace = None, as_json: AsJson = False) -> None:
    """Pause a job: no run starts until you resume it. Running runs continue."""
    _request(job, namespace, lambda client, job_id: client.jobs.pause(job_id, reason), "is paused", as_json)


def resume(
    *,
    job: Job,
    missed: Missed = ResumeChoice.SKIP,
    namespace: InNamespace = None,
    as_json: AsJson = False,
) -> None:
    """Resume a paused job and queue its deferred runs."""
    _request(
        job, namespace, lambda client, job_id: client.jobs.resume(job_id, missed.value), "is resumed", as_json
    )


def cancel(
    *, job: Job, reason: Reason = None, namespace: InNamespace = None, as_json: AsJson = False
) -> None:
    """Cancel a job permanently, and its unfinished runs, including running ones."""
    _request(
        job, namespace, lambda client, job_id: client.jobs.cancel(job_id, reason), "is cancelled", as_json
    )


def delete(*, job: Job, namespace: InNamespace = None, as_json: AsJson = False) -> None:
    """Cancel a job permanently, and its runs that have not started; running runs continue."""
    _request(job, namespace, lambda client, job_id: client.jobs.delete(job_id), "is cancelled", as_json)


def trigger(
    *,
    job: Job,
    payload: Annotated[
        str | None, typer.Option("--payload", help="JSON payload of this run. (default: that of the job)")
    ] = None,
    priority: Annotated[
        LaneName | None, typer.Option("--priority", help="Lane of this run. (default: that of the job)")
    ] = None,
    wait: Annotated[
        bool, typer.Option("--wait", help="Wait until the run finishes; exits 1 unless it succeeded.")
    ] = False,
    timeout: Annotated[
        float, typer.Option("--timeout", min=1, max=604_800, help="Maximum wait in seconds, with --wait.")
    ] = 300.0,
    namespace: InNamespace = None,
    as_json: AsJson = False,
) -> None:
    """Run a job once now, in addition to its schedule."""
    given = _payload(payload)
    lane = priority.value if priority is not None else None
    from noonmark.cli.connections.api import client  # noqa: PLC0415 - httpx takes a while to load

    with client(operator_settings()) as api:
        job_id = id_of(api, job, namespace)
        answer = api.jobs.trigger(job_id, payload=given, priority=lane)
        run_id = answer["run_id"]
        ended = api.runs.wait(run_id, timeout) if wait else None
    finish(run_id, answer, ended, as_json=as_json, done="is queued")


def _payload(given: str | None) -> Any:
    if given is None:
        return None
    try:
        return json.loads(given)
    except (ValueError, RecursionError) as error:
        raise CliError(f"--payload is not JSON: {error}", ExitCode.USAGE) from error


def _request(
    job: str,
    namespace: str | None,
    give: Callable[[Client, str], Mapping[str, Any]],
    done: str,
    as_json: bool,
) -> None:
    """Send a request about a job and print the result: the API answers after its commit."""
    from noonmark.cli.connections.api import client  # noqa: PLC0415

    with client(operator_settings()) as api:
        job_id = id_of(api, job, namespace)
        answer = give(api, job_id)
    if as_json:
        show_json(answer or {"id": job_id})
    else:
        print(f"job {printable(job)} {done}; `noonmark job show {job_id}` shows it")
