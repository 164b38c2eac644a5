"""`noonmark run cancel`: cancel runs by id, one request each, or by a filter, in batches."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import TYPE_CHECKING, Annotated, Any, Final
from uuid import UUID

import typer

from noonmark.cli.connections.context import operator_settings
from noonmark.cli.connections.ids import run_ids
from noonmark.cli.connections.job_ref import home_of, require_job
from noonmark.cli.connections.periods import Period, PeriodZone, since_option, until_option
from noonmark.cli.terminal.bulk_requests import DryRun, Yes, agree, may_ask, progress
from noonmark.cli.terminal.options import AsJson, as_uuid, duration_option, read_labels
from noonmark.cli.terminal.output import counted, show_json
from noonmark.cli.terminal.problems import CliError, ExitCode

if TYPE_CHECKING:
    from noonmark.client import Client

_POLL_SECONDS: Final = 0.2
_STEP: Final = 1_000
"""Maximum number of runs that one API call cancels."""

MOST_REASON: Final = 500


class CancellableState(StrEnum):
    """States in which a run can be cancelled."""

    WAITING = "waiting"
    QUEUED = "queued"
    RETRYING = "retrying"
    RUNNING = "running"


def cancel(
    runs: Annotated[
        list[str] | None,
        typer.Argument(metavar="[RUN]...", help="Ids of runs, or at least their first 8 characters."),
    ] = None,
    *,
    job: Annotated[
        str | None,
        typer.Option(help="Runs of this job (id, or name in the namespace)."),
    ] = None,
    namespace: Annotated[
        str | None,
        typer.Option(
            "--namespace",
            help="Runs of this namespace. (default with --job or --label: that of the context or key)",
        ),
    ] = None,
    label: Annotated[
        list[str] | None,
        typer.Option(metavar="KEY:VALUE", help="Runs of jobs with this label; repeatable: all must match."),
    ] = None,
    state: Annotated[
        list[CancellableState] | None, typer.Option(help="Only runs in this state; repeatable.")
    ] = None,
    since: Annotated[str | None, since_option("runs due", "--after")] = None,
    until: Annotated[str | None, until_option("runs due", "--before")] = None,
    zone: PeriodZone = None,
    reason: Annotated[
        str | None, typer.Option(help="Reason, stored with the runs; up to 500 characters.")
    ] = None,
    wait: Annotated[
        bool, typer.Option("--wait", help="Wait until workers confirm that the runs have stopped.")
    ] = False,
    timeout: Annotated[
        float, duration_option("--timeout", help_text="Maximum wait, with --wait", least=0)
    ] = 60.0,
    dry_run: DryRun = False,
    yes: Yes = False,
    as_json: AsJson = False,
) -> None:
    """Cancel runs. Waiting and queued runs are cancelled at once; running ones are asked to stop."""
    if reason is not None and not 0 < len(reason.strip()) <= MOST_REASON:
        raise CliError(f"--reason must have 1 to {MOST_REASON} characters", ExitCode.USAGE)
    wanted = _Wanted(
        job,
        namespace,
        read_labels(label) or None,
        tuple(one.value for one in state or CancellableState),
        Period.read(since, until, zone),
    )
    ids = list(run_ids(runs or (), by_job="noonmark run cancel"))
    if ids and (job or namespace or label or since or until):
        raise CliError("give run ids or a filter, not both", ExitCode.USAGE)
    if not ids and not (job or namespace or label or since or until):
        raise CliError(
            "no runs selected: give their ids, or --job, --namespace, --label, --since or --until",
            ExitCode.USAGE,
        )
    # Ids need no confirmation: they say exactly which runs to cancel.
    yes = yes or bool(ids)
    if not dry_run:
        may_ask(yes=yes, as_json=as_json)
    from noonmark.cli.connections.api import client  # noqa: PLC0415 - httpx takes a while to load

    with client(operator_settings()) as api:
        if ids:
            done = _by_id(api, ids, wanted.states, reason, only=state is not None, dry_run=dry_run)
        else:
            done = _by_filter(api, wanted, reason, dry_run=dry_run, yes=yes)
        stopping = done.stopping + [run for run, was in done.others if was == "cancelling"]
        left = _await(api, stopping, timeout) if wait else list(done.stopping)
        if not done.matched:
            require_job(api, job, namespace)
    _report(done, left, dry_run=dry_run, waited=wait, as_json=as_json)
    if wait and left:
        raise typer.Exit(ExitCode.PROBLEM)


@dataclass(frozen=True, slots=True)
class _Wanted:
    """Filter for runs, if no ids are given."""

    job: str | None
    namespace: str | None
    labels: Mapping[str, str] | None
    states: tuple[str, ...]
    period: Period

    def filter(self, namespace: str | None, job_id: UUID | None) -> dict[str, Any]:
        """Return the filter for the API."""
        given = {
            "namespace": namespace,
            "job_id": str(job_id) if job_id else None,
            "job_name": self.job if job_id is None else None,
            "labels": self.labels,
            "state": list(self.states),
            "since": self.period.since.isoformat() if self.period.since else None,
            "until": self.period.until.isoformat() if self.period.until else None,
        }
        return {name: value for name, value in given.items() if value is not None}


@dataclass(slots=True)
class _Done:
    """Results of a cancel: runs cancelled at once, and runs asked to stop.

    Attributes:
        matched: number of selected runs that could be cancelled.
        ended: number of runs cancelled at once.
        stopping: ids of runs asked to stop.
        others: named runs that were not changed, with their states.
    """

    matched: int = 0
    ended: int = 0
    stopping: list[str] = field(default_factory=list)
    others: list[tuple[str, str]] = field(default_factory=list)


def _by_id(
    api: Client, ids: Sequence[UUID], states: Sequence[str], reason: str | None, *, only: bool, dry_run: bool
) -> _Done:
    """Cancel the named runs in one of the states; with `only`, skip runs that left them meanwhile."""
    from noonmark.client import ApiError  # noqa: PLC0415

    found: list[tuple[str, str]] = []
    for run in ids:
        try:
            found.append((str(run), api.runs.get(run)["state"]))
        except ApiError as error:
            if error.status != 404:
                raise
            raise CliError(f"run {run} does not exist; run `noonmark run list`") from error
    targets = [run for run, state in found if state in states]
    done = _Done(len(targets), others=[(run, state) for run, state in found if state not in states])
    if not dry_run:
        _carry_out(api, targets, reason, states if only else None, done)
    return done


def _by_filter(api: Client, wanted: _Wanted, reason: str | None, *, dry_run: bool, yes: bool) -> _Done:
    """Count the runs of a filter, confirm, and cancel that number: new ones may match meanwhile."""
    job_id = as_uuid(wanted.job) if wanted.job is not None else None
    chosen = wanted.filter(wanted.namespace or home_of(api, job_id), job_id)
    done = _Done()
    after: str | None = None
    while True:
        seen = api.runs.cancel_many(chosen, dry_run=True, after=after)
        done.matched += seen["matched"]
        after = seen["next_after"]
        if after is None:
            break
    if dry_run or not done.matched:
        return done
    agree(f"cancel {counted(done.matched, 'run')}?", yes=yes)
    left = done.matched
    while left:
        step = api.runs.cancel_many(chosen, reason=reason, after=after, limit=min(_STEP, left))
        done.ended += step["runs"].get("cancelled", 0)
        done.stopping += step["stopping"]
        left -= step["matched"]
        after = step["next_after"]
        progress(done.matched - left, done.matched)
        if after is None:
            break
    return done


def _carry_out(
    api: Client, targets: Sequence[str], reason: str | None, states: Sequence[str] | None, done: _Done
) -> None:
    """Cancel runs one by one; with states, skip runs that left them meanwhile."""
    from noonmark.client import ApiError  # noqa: PLC0415

    for number, run in enumerate(targets, 1):
        try:
            seen = api.request("GET", f"/v1/runs/{run}") if states else None
            if seen is not None and states is not None and seen.data["state"] not in states:
                done.others.append((run, seen.data["state"]))
                continue
            state = api.runs.cancel(run, reason, if_match=seen.etag if seen else None)["state"]
        except ApiError as error:
            # The run finished or changed its state just now.
            if error.status not in {404, 409, 412}:
                raise
            if error.status != 404:
                done.others.append((run, api.runs.get(run)["state"]))
            continue
        finally:
            progress(number, len(targets))
        if state == "cancelling":
            done.stopping.append(run)
        else:
            done.ended += 1


def _await(api: Client, stopping: Sequence[str], timeout: float) -> list[str]:
    """Wait until no run is stopping; return those that still are after the timeout."""
    until = time.monotonic() + timeout
    left = list(stopping)
    while left := [run for run in left if api.runs.get(run)["state"] == "cancelling"]:
        if time.monotonic() >= until:
            break
        time.sleep(_POLL_SECONDS)
    return left


def _report(done: _Done, left: Sequence[str], *, dry_run: bool, waited: bool, as_json: bool) -> None:
    if as_json:
        counts = {"matched": done.matched, "ended": done.ended, "stopping": len(done.stopping)}
        kept = [{"run_id": run, "state": state} for run, state in done.others]
        show_json({"dry_run": dry_run, **counts, "not_confirmed": list(left), "left_alone": kept})
        return
    for run, state in done.others:
        print(f"run {run} is {state}: not changed")
    if dry_run:
        print(f"{counted(done.matched, 'run')} would be cancelled; dry run, nothing changed")
    elif not done.matched and not done.others:
        print("no matching run can be cancelled; nothing changed")
    elif done.matched:
        asked = len(done.stopping)
        print(f"{counted(done.matched, 'run')}: {done.ended} cancelled, {asked} asked to stop")
    if left:
        hint = "" if waited else "; run `noonmark run list --state cancelling`"
        print(f"{len(left)} {'has' if len(left) == 1 else 'have'} not stopped yet{hint}")
    elif waited:
        print("all of them have stopped")
