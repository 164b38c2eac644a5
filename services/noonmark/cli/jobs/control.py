"""`noonmark job pause`, `resume`, `trigger`, `cancel`, `delete`: orders about one job, given to the API."""

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
from noonmark.core.vocabulary import ResumeChoice

if TYPE_CHECKING:
    from noonmark.client import Client

Reason = Annotated[str | None, typer.Option(help="Why, for people.")]


def pause(*, job: Job, reason: Reason = None, namespace: InNamespace = None, as_json: AsJson = False) -> None:
    """Hold a job: nothing of it starts until it is resumed. Runs under way go on."""
    _order(job, namespace, lambda client, job_id: client.jobs.pause(job_id, reason), "is paused", as_json)


def resume(
    *,
    job: Job,
    missed: Missed = ResumeChoice.SKIP,
    namespace: InNamespace = None,
    as_json: AsJson = False,
) -> None:
    """Let a paused job go on; its held runs are queued."""
    _order(
        job, namespace, lambda client, job_id: client.jobs.resume(job_id, missed.value), "goes on", as_json
    )


def cancel(
    *, job: Job, reason: Reason = None, namespace: InNamespace = None, as_json: AsJson = False
) -> None:
    """End a job for good: nothing of it is due any more, and its unfinished runs are cancelled."""
    _order(job, namespace, lambda client, job_id: client.jobs.cancel(job_id, reason), "has ended", as_json)


def delete(*, job: Job, namespace: InNamespace = None, as_json: AsJson = False) -> None:
    """End a job for good, and cancel what is not yet running; runs under way go on."""
    _order(job, namespace, lambda client, job_id: client.jobs.delete(job_id), "has ended", as_json)


def trigger(
    *,
    job: Job,
    payload: Annotated[
        str | None, typer.Option("--payload", help="JSON in place of the job's own payload, for this run.")
    ] = None,
    priority: Annotated[
        LaneName | None, typer.Option("--priority", help="Lane of this run in place of the job's own.")
    ] = None,
    wait: Annotated[
        bool, typer.Option("--wait", help="Wait for the run's end; code 1 unless it succeeded.")
    ] = False,
    timeout: Annotated[
        float, typer.Option("--timeout", min=1, max=604_800, help="With --wait: seconds at most.")
    ] = 300.0,
    namespace: InNamespace = None,
    as_json: AsJson = False,
) -> None:
    """Run a job once now, beside its schedule."""
    given = _payload(payload)
    lane = priority.value if priority is not None else None
    from noonmark.cli.connections.api import client  # noqa: PLC0415 - httpx takes a while to load

    with client(operator_settings()) as api:
        job_id = id_of(api, job, namespace)
        answer = api.jobs.trigger(job_id, payload=given, priority=lane)
        run_id = answer["run_id"]
        ended = api.runs.wait(run_id, timeout) if wait else None
    finish(run_id, answer, ended, as_json=as_json, told="is queued")


def _payload(given: str | None) -> Any:
    if given is None:
        return None
    try:
        return json.loads(given)
    except (ValueError, RecursionError) as error:
        raise CliError(f"--payload is no JSON: {error}", ExitCode.USAGE) from error


def _order(
    job: str,
    namespace: str | None,
    give: Callable[[Client, str], Mapping[str, Any]],
    done: str,
    as_json: bool,
) -> None:
    """Give an order about a job, and say that it is carried out: the answer comes after its commit."""
    from noonmark.cli.connections.api import client  # noqa: PLC0415

    with client(operator_settings()) as api:
        job_id = id_of(api, job, namespace)
        answer = give(api, job_id)
    if as_json:
        show_json(answer or {"id": job_id})
    else:
        print(f"job {printable(job)} {done}; `noonmark job show {job_id}` shows it")
