"""Requests about all jobs of a selection: count, confirm, then one request for each job."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Final

import typer

from noonmark.cli.connections.context import operator_settings
from noonmark.cli.connections.job_ref import namespace_of
from noonmark.cli.jobs.selection import JobSelection
from noonmark.cli.terminal.bulk_requests import agree, may_ask, progress
from noonmark.cli.terminal.output import counted, printable, show_json
from noonmark.cli.terminal.problems import CliError, ExitCode, explain
from noonmark.core.states import JobState

if TYPE_CHECKING:
    from noonmark.client import Client

ASKS_ABOVE: Final = 5
"""Largest number of jobs that a command changes without a confirmation."""

_NAMED: Final = 10
"""Number of jobs to name before the confirmation."""

_REFUSALS: Final = frozenset({403, 404, 409, 412, 422})


@dataclass(frozen=True, slots=True)
class BulkRequest:
    """A request that can be sent for many jobs.

    Attributes:
        verb: the command: pause, resume or trigger.
        past: what a job is afterwards: paused.
        send: sends it for the job with this id.
        state: the state that it leads to; it changes nothing about a job in this state. None: it always
            does something.
    """

    verb: str
    past: str
    send: Callable[[Client, str], Mapping[str, Any]]
    state: JobState | None = None

    def outcome(self, answer: Mapping[str, Any]) -> str:
        """Return what an answer of the API says about the job, to follow its name."""
        # An older API does not say whether it changed something.
        return f"is {self.past}" if answer.get("changed", True) else self.nothing("was")

    def nothing(self, verb: str) -> str:
        """Return that jobs were in the state already, to follow their names; `verb` is was or were."""
        return f"{verb} {self.state} already: nothing to {self.verb}"


def carry_out(
    request: BulkRequest, selection: JobSelection, *, dry_run: bool, yes: bool, as_json: bool
) -> None:
    """Count the selected jobs, confirm, send the request for each, and print each result.

    Raises:
        CliError: no job matches, or the API is unreachable.
        typer.Exit: with code 1 if the request was refused for a job.
    """
    from noonmark.cli.connections.api import client  # noqa: PLC0415 - httpx takes a while to load

    with client(operator_settings()) as api:
        jobs = selection.read(api)
        if not jobs and (left := _unchanged(api, request, selection)):
            _show_nothing(request, left, dry_run=dry_run, as_json=as_json)
            return
        if not jobs and not dry_run:
            place = namespace_of(api, selection.namespace)
            raise CliError(
                f"no {' or '.join(selection.states)} jobs found in namespace {place} with these filters;"
                " run `noonmark job list`"
            )
        if dry_run:
            _show_plan(request, jobs, as_json=as_json)
            return
        if len(jobs) > ASKS_ABOVE:
            may_ask(yes=yes, as_json=as_json)
            agree(f"{request.verb} {_named(jobs)}?", yes=yes)
        items = [_one(api, request, job, number, len(jobs)) for number, job in enumerate(jobs, start=1)]
    refused = sum(item["error"] is not None for item in items)
    if as_json:
        show_json({"dry_run": False, "matched": len(jobs), "refused": refused, "items": items})
    else:
        for item in items:
            done = (
                request.outcome(item) if item["error"] is None else f"is not {request.past}: {item['error']}"
            )
            print(f"job {_name(item)} {done}")
        print(f"{len(jobs) - refused} of {counted(len(jobs), 'job')} {request.past}")
    if refused:
        raise typer.Exit(ExitCode.PROBLEM)


def _one(
    api: Client, request: BulkRequest, job: Mapping[str, Any], number: int, total: int
) -> dict[str, Any]:
    """Send the request for a job; return the result, with the reason if it was refused.

    Raises:
        CliError: the API failed; the message says how many jobs were done.
    """
    from noonmark.client import ApiError, ClientError  # noqa: PLC0415

    item: dict[str, Any] = {"id": job["id"], "name": job["name"], "error": None, "run_id": None}
    try:
        answer = request.send(api, str(job["id"]))
        item |= {name: answer[name] for name in ("run_id", "changed") if name in answer}
    except ClientError as error:
        if not isinstance(error, ApiError) or error.status not in _REFUSALS:
            found = explain(error)
            raise CliError(
                f"{found or error}\n{number - 1} of {counted(total, 'job')} were done; run the command again"
                " to continue",
                found.code if found is not None else ExitCode.PROBLEM,
            ) from error
        item["error"] = printable(error.detail or error.title)
    if total > ASKS_ABOVE:
        progress(number, total)
    return item


def _unchanged(api: Client, request: BulkRequest, selection: JobSelection) -> list[Mapping[str, Any]]:
    """Return the jobs of a selection that are already in the state that the request leads to."""
    return replace(selection, states=(request.state.value,)).read(api) if request.state is not None else []


def _show_nothing(
    request: BulkRequest, jobs: list[Mapping[str, Any]], *, dry_run: bool, as_json: bool
) -> None:
    if as_json:
        show_json({"dry_run": dry_run, "matched": 0, "refused": 0, "items": []})
    else:
        print(f"{_named(jobs)} {request.nothing('was' if len(jobs) == 1 else 'were')}")


def _show_plan(request: BulkRequest, jobs: list[Mapping[str, Any]], *, as_json: bool) -> None:
    if as_json:
        items = [{"id": job["id"], "name": job["name"], "error": None, "run_id": None} for job in jobs]
        show_json({"dry_run": True, "matched": len(jobs), "refused": 0, "items": items})
    else:
        print(f"{request.verb} affects {_named(jobs)}; dry run, nothing changed")


def _named(jobs: list[Mapping[str, Any]]) -> str:
    """Return the number of jobs and the names of the first."""
    names = ", ".join(map(_name, jobs[:_NAMED]))
    more = f" and {len(jobs) - _NAMED:,} more" if len(jobs) > _NAMED else ""
    return counted(len(jobs), "job") + (f" ({names}{more})" if jobs else "")


def _name(job: Mapping[str, Any]) -> str:
    return printable(str(job["name"] or job["id"]))
