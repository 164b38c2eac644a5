"""`noonmark dead`: runs whose attempts are used up; give them another life, or settle them for good."""

from __future__ import annotations

import re
import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Annotated, Any, Final
from uuid import UUID

import typer

from noonmark.cli.context import operator_settings, reading, require_job
from noonmark.cli.options import (
    After,
    AsJson,
    Limit,
    Namespace,
    Output,
    OutputOption,
    as_uuid,
    read_since,
    read_uuid,
)
from noonmark.cli.orders import DryRun, Writer, Yes, agree, may_ask, progress, writing
from noonmark.cli.output import (
    Column,
    counted,
    field,
    printable,
    shortened,
    show_fields,
    show_json,
    show_list,
)
from noonmark.cli.problems import CliError, ExitCode
from noonmark.cli.runs import ATTEMPT_COLUMNS, job_label
from noonmark.core.retry import DeadReason
from noonmark.core.words import AttemptOutcome

if TYPE_CHECKING:
    from noonmark.store.dead_letters import DeadRun, DeadSelection, Settled

app = typer.Typer(help="Show runs whose attempts are used up; redrive or discard them.", no_args_is_help=True)

_Runs = Annotated[list[str] | None, typer.Argument(metavar="[RUN]...", help="Ids of dead runs.")]
_Job = Annotated[str | None, typer.Option("--job", help="Only runs of this job: its id or name.")]
_Fingerprint = Annotated[
    str | None, typer.Option(help="Only runs that died of this cause: see `noonmark dead groups`.")
]
_DeathReason = Annotated[
    str | None,
    typer.Option(
        "--reason",
        "--died-of",
        help="Only this reason of death, such as retries_exhausted, rejected or lost.",
    ),
]
_Since = Annotated[
    str | None,
    typer.Option(
        "--since", help="Only what died from here on: 90s, 15m, 2h, 7d ago, a day (UTC), or an instant."
    ),
]
_All = Annotated[bool, typer.Option("--all", help="All dead letters, where nothing else narrows them down.")]
_Max = Annotated[int | None, typer.Option("--max", min=1, help="At most so many runs.")]

_REASONS: Final = (*DeadReason, AttemptOutcome.REJECTED, AttemptOutcome.LOST)
_FINGERPRINT: Final = re.compile(r"[0-9a-f]{16}")

_SHOWN_REFUSED: Final = 100
"""Refused runs that are named; of more the reasons are counted."""

_COLUMNS = (
    field("died_at", "DIED"),
    field("run_id", "RUN"),
    Column("JOB", lambda row: shortened(job_label(row), 40), cut=True),
    field("attempts", numeric=True),
    field("reason"),
    field("fingerprint", "CAUSE"),
    Column("ERROR", lambda row: shortened(row["error"], 80), cut=True),
    field("scheduled_for", "DUE", wide=True),
    field("namespace", wide=True, varies=True),
    field("kind", "TYPE", wide=True),
    field("job_id", "JOB ID", wide=True),
)


@app.command("list")
def list_(
    *,
    job: _Job = None,
    namespace: Namespace = None,
    fingerprint: _Fingerprint = None,
    reason: _DeathReason = None,
    since: _Since = None,
    limit: Limit = 50,
    after: After = None,
    output: OutputOption = Output.TABLE,
    as_json: AsJson = False,
) -> None:
    """List dead letters, the newest death first."""
    wanted, place = (
        _selection(None, job, namespace, fingerprint=fingerprint, reason=reason, since=since),
        read_uuid(after, "--after"),
    )
    from noonmark.store import dead_views  # noqa: PLC0415

    with reading(operator_settings()) as connection:
        page = dead_views.list_dead(connection, wanted, limit=limit, before=place)
        if job is not None and not page.rows:
            require_job(connection, job, namespace)
    if as_json:
        show_json({"items": page.rows, "next": page.next})
        return
    footer = f"more: --after {page.next}" if page.next else ""
    show_list(page.rows, _COLUMNS, wide=output is Output.WIDE, footer=footer)


_GROUP_COLUMNS = (
    field("fingerprint", "CAUSE"),
    field("runs", numeric=True),
    field("jobs", numeric=True),
    field("kind", "TYPE"),
    field("first_died_at", "FIRST"),
    field("last_died_at", "LAST"),
    Column("ERROR", lambda row: shortened(row["error"], 120), cut=True),
)


@app.command()
def groups(
    *,
    job: _Job = None,
    namespace: Namespace = None,
    reason: _DeathReason = None,
    since: _Since = None,
    limit: Limit = 50,
    as_json: AsJson = False,
) -> None:
    """Count dead letters by their cause, the most frequent first."""
    wanted = _selection(None, job, namespace, fingerprint=None, reason=reason, since=since)
    from noonmark.store import dead_views  # noqa: PLC0415

    with reading(operator_settings()) as connection:
        rows = dead_views.group_dead(connection, wanted, limit=limit)
        if job is not None and not rows:
            require_job(connection, job, namespace)
    if as_json:
        show_json({"items": rows})
        return
    show_list(rows, _GROUP_COLUMNS)


@app.command()
def show(
    run: Annotated[str, typer.Argument(metavar="RUN", help="Id of the dead run.")], as_json: AsJson = False
) -> None:
    """Show one dead letter: why the run died, every attempt of it, and what these wrote."""
    run_id = read_uuid(run, "run")
    assert run_id is not None
    from noonmark.store import dead_views  # noqa: PLC0415

    with reading(operator_settings()) as connection:
        found = dead_views.show_dead(connection, run_id)
    if found is None:
        raise CliError(f"run {run_id} has no dead letter: `noonmark dead list` shows those there are")
    if as_json:
        show_json(found)
        return
    show_fields(
        {k: v for k, v in found.items() if k not in {"history", "logs"} and v is not None}, precise=True
    )
    print("\nattempts that did not succeed")
    show_list(found["history"], ATTEMPT_COLUMNS)
    for log in found["logs"]:
        _show_log(log)


def _show_log(log: Mapping[str, Any]) -> None:
    for part in ("stdout", "stderr", "log"):
        if log[part]:
            print(f"\n{part} of attempt {log['attempt']} (fence {log['fence']})")
            for line in log[part].splitlines():
                print(f"  {printable(line)}")


@app.command()
def redrive(
    runs: _Runs = None,
    *,
    job: _Job = None,
    namespace: Namespace = None,
    fingerprint: _Fingerprint = None,
    reason: _DeathReason = None,
    since: _Since = None,
    everything: _All = False,
    most: _Max = None,
    rate: Annotated[
        int | None, typer.Option("--rate", min=1, help="At most so many runs a second. (default: no limit)")
    ] = None,
    dry_run: DryRun = False,
    yes: Yes = False,
    as_json: AsJson = False,
) -> None:
    """Queue dead runs again, with new budgets. What must not run now waits; what cannot run is refused."""
    wanted = _narrowed(
        _selection(runs, job, namespace, fingerprint=fingerprint, reason=reason, since=since),
        everything=everything,
    )
    from noonmark.store import dead_letters  # noqa: PLC0415

    def step(writer: Writer, some: Sequence[DeadRun]) -> Settled:
        return dead_letters.redrive(writer.connection, writer.topics, some, shards=writer.shards)

    _carry_out("redrive", wanted, step, most, rate, dry_run=dry_run, yes=yes, as_json=as_json)


@app.command()
def discard(
    runs: _Runs = None,
    *,
    job: _Job = None,
    namespace: Namespace = None,
    fingerprint: _Fingerprint = None,
    died_of: Annotated[
        str | None, typer.Option("--died-of", help="Only this reason of death, such as rejected or lost.")
    ] = None,
    since: _Since = None,
    everything: _All = False,
    most: _Max = None,
    reason: Annotated[str | None, typer.Option(help="Why, for people: up to 500 characters.")] = None,
    dry_run: DryRun = False,
    yes: Yes = False,
    as_json: AsJson = False,
) -> None:
    """Settle dead runs for good: they stay as they are, as `discarded`."""
    if reason is not None and not 0 < len(reason.strip()) <= 500:
        raise CliError("--reason takes 1 to 500 characters", ExitCode.USAGE)
    if reason in _REASONS and died_of is None:
        # In `list` and `redrive` this option narrows down; here it would settle more than was meant.
        raise CliError(
            f"--reason says why they are discarded, for people; those that died of {reason!r} are meant by"
            f" --died-of {reason}",
            ExitCode.USAGE,
        )
    wanted = _narrowed(
        _selection(runs, job, namespace, fingerprint=fingerprint, reason=died_of, since=since),
        everything=everything,
    )
    from noonmark.store import dead_letters  # noqa: PLC0415

    def step(writer: Writer, some: Sequence[DeadRun]) -> Settled:
        return dead_letters.discard(
            writer.connection, writer.topics, some, reason=reason, shards=writer.shards
        )

    _carry_out("discard", wanted, step, most, None, dry_run=dry_run, yes=yes, as_json=as_json)


def _carry_out(
    verb: str,
    wanted: DeadSelection,
    step: Callable[[Writer, Sequence[DeadRun]], Settled],
    most: int | None,
    rate: int | None,
    *,
    dry_run: bool,
    yes: bool,
    as_json: bool,
) -> None:
    """Find what is meant, ask, and change it step by step."""
    from noonmark.store import dead_letters  # noqa: PLC0415

    if not dry_run:
        may_ask(yes=yes, as_json=as_json)
    done = dead_letters.Settled()
    with writing(operator_settings()) as writer:
        found = dead_letters.find(writer.connection, wanted, limit=most or dead_letters.MOST)
        missing = set(wanted.runs or ()) - {run.run_id for run in found}
        if most is None:
            done.refused.update((run_id, dead_letters.Refusal.NOT_DEAD) for run_id in sorted(missing))
        if not dry_run and found:
            agree(f"{verb} {counted(len(found), 'dead run')}?", yes=yes)
            size = min(dead_letters.STEP, rate or dead_letters.STEP)
            for some in dead_letters.in_steps(found, partial(step, writer), size=size):
                done.add(some)
                progress(done.done + len(done.refused), len(found))
                if rate is not None and done.done + len(done.refused) < len(found):
                    time.sleep(1)
    if not found and (job := wanted.job or wanted.name) is not None:
        with reading(operator_settings()) as connection:
            require_job(connection, str(job), wanted.namespace)
    _report(verb, len(found), done, dry_run=dry_run, as_json=as_json)
    if wanted.runs is not None and done.refused:
        raise typer.Exit(ExitCode.PROBLEM)


def _report(verb: str, matched: int, done: Settled, *, dry_run: bool, as_json: bool) -> None:
    why = Counter(reason.value for reason in done.refused.values())
    named = list(done.refused.items())[:_SHOWN_REFUSED]
    if as_json:
        refused = [{"run_id": run_id, "reason": reason.value} for run_id, reason in named]
        show_json(
            {"dry_run": dry_run, "matched": matched, "runs": dict(done.states), "refused": dict(why)}
            | {"refused_runs": refused}
        )
        return
    if dry_run:
        print(f"{verb} would be about {counted(matched, 'dead run')}; nothing was changed")
    else:
        states = (
            ", ".join(f"{count} {state}" for state, count in sorted(done.states.items())) or "none changed"
        )
        print(f"{verb} of {counted(matched, 'dead run')}: {states}")
    for run_id, reason in named[:20]:
        print(f"refused: {run_id} ({reason.value})")
    if len(done.refused) > 20:
        print("refused in all: " + ", ".join(f"{count} {reason}" for reason, count in why.items()))


def _selection(
    runs: Sequence[str] | None,
    job: str | None,
    namespace: str | None,
    *,
    fingerprint: str | None,
    reason: str | None,
    since: str | None,
) -> DeadSelection:
    from noonmark.store.dead_letters import DeadSelection  # noqa: PLC0415

    ids: list[UUID] | None = None
    if runs:
        ids = [found for run in dict.fromkeys(runs) if (found := read_uuid(run, "run")) is not None]
    if fingerprint is not None and _FINGERPRINT.fullmatch(fingerprint) is None:
        raise CliError(
            f"--fingerprint {fingerprint!r} is none: take 16 hexadecimal digits from the column CAUSE of"
            " `noonmark dead groups`",
            ExitCode.USAGE,
        )
    if reason is not None and reason not in _REASONS:
        raise CliError(f"nothing dies of {reason!r}: the reasons are {', '.join(_REASONS)}", ExitCode.USAGE)
    job_id = as_uuid(job) if job is not None else None
    return DeadSelection(
        runs=ids,
        job=job_id,
        name=job if job_id is None else None,
        namespace=namespace,
        fingerprint=fingerprint,
        reason=reason,
        since=read_since(since),
    )


def _narrowed(wanted: DeadSelection, *, everything: bool) -> DeadSelection:
    """Insist that it was said which runs are meant.

    Raises:
        CliError: nothing narrows them down and --all was not given, or it was given beside ids.
    """
    from noonmark.store.dead_letters import DeadSelection  # noqa: PLC0415

    if wanted == DeadSelection() and not everything:
        raise CliError(
            "say which runs are meant: their ids, or --job, --namespace, --fingerprint, a reason or --since;"
            " --all means all of them",
            ExitCode.USAGE,
        )
    return wanted
