"""`noonmark run cancel`: end runs by their ids, or those of jobs that a filter means."""

from __future__ import annotations

import time
from collections.abc import Sequence
from enum import StrEnum
from typing import TYPE_CHECKING, Annotated, Final
from uuid import UUID

import typer

from noonmark.cli.context import operator_settings, reading, require_job
from noonmark.cli.options import AsJson, Namespace, as_uuid, read_since, read_uuid
from noonmark.cli.orders import DryRun, Writer, Yes, agree, may_ask, progress, writing
from noonmark.cli.output import counted, show_json
from noonmark.cli.problems import CliError, ExitCode

if TYPE_CHECKING:
    from noonmark.core.words import RunState
    from noonmark.store.run_cancels import Cancels, RunKey, RunSelection

_POLL_SECONDS: Final = 0.2
MOST_REASON: Final = 500


class CancellableState(StrEnum):
    """States in which a run can be cancelled."""

    WAITING = "waiting"
    QUEUED = "queued"
    RETRYING = "retrying"
    RUNNING = "running"


def cancel(
    runs: Annotated[list[str] | None, typer.Argument(metavar="[RUN]...", help="Ids of runs.")] = None,
    *,
    job: Annotated[
        str | None,
        typer.Option(help="Runs of this job: its id, or its name, which is sought in every namespace."),
    ] = None,
    namespace: Namespace = None,
    label: Annotated[
        list[str] | None,
        typer.Option(metavar="KEY=VALUE", help="Runs of jobs with this label; repeatable: with all of them."),
    ] = None,
    state: Annotated[
        list[CancellableState] | None, typer.Option(help="Only runs in this state; repeatable.")
    ] = None,
    after: Annotated[
        str | None,
        typer.Option("--after", help="Only runs due from here on: 2h ago, a day (UTC), an instant."),
    ] = None,
    before: Annotated[str | None, typer.Option("--before", help="Only runs due before this.")] = None,
    reason: Annotated[
        str | None, typer.Option(help="Why, for people: up to 500 characters. The runs keep it.")
    ] = None,
    wait: Annotated[
        bool, typer.Option("--wait", help="Until the workers have confirmed that nothing of them runs.")
    ] = False,
    timeout: Annotated[float, typer.Option(min=0, help="Seconds that --wait waits at most.")] = 60.0,
    dry_run: DryRun = False,
    yes: Yes = False,
    as_json: AsJson = False,
) -> None:
    """Cancel runs: what waits, is queued or is to be retried ends at once, what runs is asked to stop."""
    if reason is not None and not 0 < len(reason.strip()) <= MOST_REASON:
        raise CliError(f"--reason takes 1 to {MOST_REASON} characters", ExitCode.USAGE)
    wanted = _selection(job, namespace, label=label, state=state, after=after, before=before)
    ids = [found for run in dict.fromkeys(runs or ()) if (found := read_uuid(run, "run")) is not None]
    if ids and (job or namespace or label or after or before):
        raise CliError("give ids of runs or a filter, not both", ExitCode.USAGE)
    if not ids and not (job or namespace or label):
        raise CliError(
            "say which runs are meant: their ids, or --job, --namespace or --label", ExitCode.USAGE
        )
    # Who names runs by their ids has said what is meant.
    yes = yes or bool(ids)
    if not dry_run:
        may_ask(yes=yes, as_json=as_json)
    with writing(operator_settings()) as writer:
        targets, others = _by_id(writer, ids, wanted) if ids else (_by_filter(writer, wanted), [])
        done = _carry_out(writer, targets, wanted, reason, dry_run=dry_run, yes=yes)
        stopping = done.stopping + [run for run, state in others if state == "cancelling"]
        left = _await(writer, stopping, timeout) if wait else [run.id for run in done.stopping]
    if job is not None and not targets:
        with reading(operator_settings()) as connection:
            require_job(connection, job, namespace)
    _report(len(targets), done, others, left, dry_run=dry_run, waited=wait, as_json=as_json)
    if wait and left:
        raise typer.Exit(ExitCode.PROBLEM)


def _by_id(
    writer: Writer, ids: Sequence[UUID], wanted: RunSelection
) -> tuple[list[RunKey], list[tuple[RunKey, RunState]]]:
    """Return those of the named runs that can be cancelled, and the others with their states."""
    from noonmark.store import run_cancels  # noqa: PLC0415

    located = run_cancels.locate(writer.connection, ids)
    unknown = set(ids) - {run.id for run, _ in located}
    if unknown:
        raise CliError(f"there is no run {min(unknown)}: `noonmark run list` shows those there are")
    targets = [run for run, state in located if state in wanted.states]
    return targets, [(run, state) for run, state in located if state not in wanted.states]


def _by_filter(writer: Writer, wanted: RunSelection) -> list[RunKey]:
    from noonmark.store import run_cancels  # noqa: PLC0415

    return run_cancels.find(writer.connection, wanted)


def _carry_out(
    writer: Writer,
    found: Sequence[RunKey],
    wanted: RunSelection,
    reason: str | None,
    *,
    dry_run: bool,
    yes: bool,
) -> Cancels:
    from noonmark.cli.api import local_principal  # noqa: PLC0415
    from noonmark.store import run_cancels  # noqa: PLC0415

    done = run_cancels.Cancels()
    if dry_run or not found:
        return done
    agree(f"cancel {counted(len(found), 'run')}?", yes=yes)
    because = run_cancels.because(f"by {local_principal().id}", reason)
    for begin in range(0, len(found), run_cancels.STEP):
        some = found[begin : begin + run_cancels.STEP]
        done.add(
            run_cancels.cancel(
                writer.connection,
                writer.topics,
                some,
                states=wanted.states,
                reason=because,
                shards=writer.shards,
            )
        )
        progress(begin + len(some), len(found))
    return done


def _await(writer: Writer, stopping: Sequence[RunKey], timeout: float) -> list[UUID]:
    """Wait until no run is being stopped any more; return those that still are when the time is up."""
    from noonmark.store import run_cancels  # noqa: PLC0415

    until = time.monotonic() + timeout
    while left := run_cancels.still_stopping(writer.connection, stopping):
        if time.monotonic() >= until:
            break
        time.sleep(_POLL_SECONDS)
    return left


def _report(
    matched: int,
    done: Cancels,
    others: Sequence[tuple[RunKey, RunState]],
    left: Sequence[UUID],
    *,
    dry_run: bool,
    waited: bool,
    as_json: bool,
) -> None:
    if as_json:
        counts = {"matched": matched, "ended": len(done.ended), "stopping": len(done.stopping)}
        kept = [{"run_id": run.id, "state": state.value} for run, state in others]
        show_json({"dry_run": dry_run, **counts, "not_confirmed": list(left), "left_alone": kept})
        return
    for run, state in others:
        print(f"run {run.id} is {state.value}: nothing was changed")
    if dry_run:
        print(f"{counted(matched, 'run')} would be cancelled; nothing was changed")
    elif not matched and not others:
        print("no run that could be cancelled is meant: nothing was changed")
    elif matched:
        asked = len(done.stopping)
        print(f"of {counted(matched, 'run')} {len(done.ended)} ended at once, {asked} asked to stop")
    if left:
        hint = "" if waited else "; `noonmark run list --state cancelling` shows which"
        print(f"{len(left)} {'has' if len(left) == 1 else 'have'} not stopped yet{hint}")
    elif waited:
        print("nothing of them runs any more")


def _selection(
    job: str | None,
    namespace: str | None,
    *,
    label: Sequence[str] | None,
    state: Sequence[CancellableState] | None,
    after: str | None,
    before: str | None,
) -> RunSelection:
    from noonmark.core.words import RunState  # noqa: PLC0415
    from noonmark.store.run_cancels import CANCELLABLE, RunSelection  # noqa: PLC0415

    job_id = as_uuid(job) if job is not None else None
    return RunSelection(
        job=job_id,
        name=job if job_id is None else None,
        namespace=namespace,
        labels=_labels(label or ()),
        states=[RunState(one.value) for one in state] if state else CANCELLABLE,
        after=read_since(after, option="--after"),
        before=read_since(before, option="--before"),
    )


def _labels(given: Sequence[str]) -> dict[str, str] | None:
    labels: dict[str, str] = {}
    for one in given:
        key, found, value = one.partition("=")
        if not found or not key:
            raise CliError(f"--label {one!r} is none: write it as KEY=VALUE", ExitCode.USAGE)
        labels[key] = value
    return labels or None
