"""`noonmark dead`: list, redrive and discard dead letters."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Annotated, Any, Final

import typer

from noonmark.cli.connections.api_pages import with_instants
from noonmark.cli.connections.context import operator_settings
from noonmark.cli.connections.ids import RunId, run_id, run_ids
from noonmark.cli.connections.job_ref import home_of, require_job
from noonmark.cli.connections.periods import Period, PeriodZone, since_option, until_option
from noonmark.cli.runs.commands import ATTEMPT_COLUMNS, job_label
from noonmark.cli.runs.dead_letter_requests import DeadSelection, carry_out
from noonmark.cli.terminal.bulk_requests import DryRun, Yes
from noonmark.cli.terminal.options import AsJson, Limit, Output, OutputOption, as_uuid
from noonmark.cli.terminal.output import (
    Column,
    field,
    printable,
    shortened,
    show_fields,
    show_json,
    show_list,
)
from noonmark.cli.terminal.problems import CliError, ExitCode
from noonmark.core.retry import DeadReason
from noonmark.core.states import AttemptOutcome, RunState

if TYPE_CHECKING:
    from noonmark.client import Client

app = typer.Typer(
    help="Manage dead letters (runs that used up their attempts): list, redrive, discard.",
    no_args_is_help=True,
)

_Runs = Annotated[
    list[str] | None,
    typer.Argument(metavar="[RUN]...", help="Ids of dead runs, or at least their first 8 characters."),
]
_Job = Annotated[str | None, typer.Option("--job", help="Only runs of this job (id or name).")]
_Fingerprint = Annotated[
    str | None, typer.Option(help="Only this cause of death; see `noonmark dead groups`.")
]
_DeathReason = Annotated[
    str | None,
    typer.Option(
        "--reason",
        "--died-of",
        help="Only this reason, such as retries_exhausted, rejected or lost.",
    ),
]
_Since = Annotated[str | None, since_option("runs that died")]
_Until = Annotated[str | None, until_option("runs that died")]
_All = Annotated[bool, typer.Option("--all", help="All dead runs of the namespace.")]
_Namespace = Annotated[
    str | None,
    typer.Option("--namespace", help="Only this namespace. (default: that of the context or key)"),
]
_After = Annotated[
    str | None,
    typer.Option("--after", help="Continue at the `next` of the previous page, with the same filter."),
]
_Max = Annotated[
    int | None, typer.Option("--max", min=1, help="Stop after this number of runs; the others stay dead.")
]

_REASONS: Final = (*DeadReason, AttemptOutcome.REJECTED, AttemptOutcome.LOST)
_FINGERPRINT: Final = re.compile(r"[0-9a-f]{16}")

_PAGE: Final = 200
"""Maximum number of rows in one answer of the API."""

_COLUMNS = (
    field("died_at", "DIED"),
    field("run_id", "RUN", key=True),
    Column("JOB", lambda row: shortened(job_label(row), 40), cut=True, key=True),
    field("attempts", numeric=True),
    field("reason"),
    field("fingerprint", "CAUSE"),
    Column("ERROR", lambda row: shortened(row["error"], 80), cut=True),
    field("scheduled_for", "DUE", wide=True),
    field("namespace", wide=True),
    field("type", "TYPE", wide=True),
    field("job_id", "JOB ID", wide=True),
)


_NONE = "no dead letters found; a run whose attempts are used up is listed here"


@app.command("list")
def list_(
    *,
    job: _Job = None,
    namespace: _Namespace = None,
    fingerprint: _Fingerprint = None,
    reason: _DeathReason = None,
    since: _Since = None,
    until: _Until = None,
    zone: PeriodZone = None,
    limit: Limit = 50,
    after: _After = None,
    output: OutputOption = Output.TABLE,
    as_json: AsJson = False,
) -> None:
    """List dead letters, newest death first."""
    wanted = _chosen(
        None, job, namespace, fingerprint=fingerprint, reason=reason, period=Period.read(since, until, zone)
    )
    from noonmark.cli.connections.api import client  # noqa: PLC0415 - httpx takes a while to load

    with client(operator_settings()) as api:
        rows, following = _read(api, wanted, limit, after)
        if not rows:
            require_job(api, job, namespace)
    if as_json:
        show_json({"items": rows, "next": following})
        return
    footer = f"more: --after {following}" if following else ""
    if following and wanted.period.restated:
        # `2h ago` is another instant at the next call.
        footer += f" {wanted.period.restated}"
    shown = [with_instants(row) for row in rows]
    show_list(shown, _COLUMNS, wide=output is Output.WIDE, footer=footer, empty=_NONE)


def _read(
    api: Client, wanted: DeadSelection, limit: int, after: str | None
) -> tuple[list[Mapping[str, Any]], str | None]:
    """Return up to `limit` dead letters, and the cursor of the next one, if any."""
    namespace = wanted.namespace or home_of(api, wanted.job_id)
    rows: list[Mapping[str, Any]] = []
    while True:
        listing = api.dead_letters.list(
            namespace=namespace,
            job_id=wanted.job_id,
            job_name=wanted.job_name,
            fingerprint=wanted.fingerprint,
            reason=wanted.reason,
            since=wanted.period.since,
            until=wanted.period.until,
            limit=min(limit - len(rows), _PAGE),
        )
        page = listing.page(after)
        rows += page.items
        after = page.next_cursor
        if after is None or len(rows) >= limit:
            return rows, after


_GROUP_COLUMNS = (
    field("fingerprint", "CAUSE"),
    field("runs", numeric=True),
    field("jobs", numeric=True),
    field("type", "TYPE"),
    field("first_died_at", "FIRST"),
    field("last_died_at", "LAST"),
    Column("ERROR", lambda row: shortened(row["error"], 120), cut=True, key=True),
)


@app.command()
def groups(
    *,
    job: _Job = None,
    namespace: _Namespace = None,
    reason: _DeathReason = None,
    since: _Since = None,
    until: _Until = None,
    zone: PeriodZone = None,
    limit: Annotated[
        int, typer.Option("--limit", "-n", min=1, max=_PAGE, help="Maximum number of causes.")
    ] = 50,
    as_json: AsJson = False,
) -> None:
    """Count dead letters by cause, most frequent first."""
    wanted = _chosen(
        None, job, namespace, fingerprint=None, reason=reason, period=Period.read(since, until, zone)
    )
    from noonmark.cli.connections.api import client  # noqa: PLC0415

    with client(operator_settings()) as api:
        rows = api.dead_letters.groups(
            namespace=namespace or home_of(api, wanted.job_id),
            job_id=wanted.job_id,
            job_name=wanted.job_name,
            reason=reason,
            since=wanted.period.since,
            until=wanted.period.until,
            limit=limit,
        )
        if not rows:
            require_job(api, job, namespace)
    if as_json:
        show_json({"items": rows})
        return
    show_list([with_instants(row) for row in rows], _GROUP_COLUMNS, empty=_NONE)


@app.command()
def show(run: RunId, as_json: AsJson = False) -> None:
    """Show a dead letter: why the run died, its attempts, and their output."""
    wanted = run_id(run, state=RunState.DEAD)
    from noonmark.cli.connections.api import client  # noqa: PLC0415
    from noonmark.client import ApiError  # noqa: PLC0415

    with client(operator_settings()) as api:
        try:
            found = api.dead_letters.get(wanted)
        except ApiError as error:
            if error.status != 404:
                raise
            raise CliError(f"run {wanted} has no dead letter; run `noonmark dead list`") from error
        try:
            logs = api.runs.logs(wanted)["attempts"]
        except ApiError as error:
            # A user who can read the run may not be allowed to read its output.
            if error.status != 403:
                raise
            logs = []
    if as_json:
        show_json({**found, "logs": logs})
        return
    fields = with_instants(found)
    show_fields(
        {k: v for k, v in fields.items() if k != "history" and v is not None and v is not False}, precise=True
    )
    print("\nfailed attempts")
    show_list([with_instants(row) for row in found["history"]], ATTEMPT_COLUMNS)
    for log in logs:
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
    namespace: _Namespace = None,
    fingerprint: _Fingerprint = None,
    reason: _DeathReason = None,
    since: _Since = None,
    until: _Until = None,
    zone: PeriodZone = None,
    everything: _All = False,
    most: _Max = None,
    rate: Annotated[
        int | None, typer.Option("--rate", min=1, help="Maximum number of runs a second. (default: no limit)")
    ] = None,
    dry_run: DryRun = False,
    yes: Yes = False,
    as_json: AsJson = False,
) -> None:
    """Queue dead runs again with new retry budgets. Paused runs wait; runs that cannot run are rejected.

    Give the ids of runs, or filters: all that you give must match. --all selects every dead run of the
    namespace. Check with --dry-run first.

    A redriven run keeps the job version that it was planned with. To run an edited job as it is now, use
    `noonmark job trigger`.
    """
    wanted = _narrowed(
        _chosen(
            runs,
            job,
            namespace,
            verb="redrive",
            fingerprint=fingerprint,
            reason=reason,
            period=Period.read(since, until, zone),
        ),
        everything=everything,
    )
    carry_out("redrive", wanted, most, rate, dry_run=dry_run, yes=yes, as_json=as_json)


@app.command()
def discard(
    runs: _Runs = None,
    *,
    job: _Job = None,
    namespace: _Namespace = None,
    fingerprint: _Fingerprint = None,
    died_of: Annotated[
        str | None,
        typer.Option("--died-of", help="Only runs that died for this reason, such as rejected or lost."),
    ] = None,
    since: _Since = None,
    until: _Until = None,
    zone: PeriodZone = None,
    everything: _All = False,
    most: _Max = None,
    reason: Annotated[str | None, typer.Option(help="Reason, shown to users; up to 500 characters.")] = None,
    dry_run: DryRun = False,
    yes: Yes = False,
    as_json: AsJson = False,
) -> None:
    """Discard dead runs permanently; their state becomes `discarded`."""
    if reason is not None and not 0 < len(reason.strip()) <= 500:
        raise CliError("--reason must have 1 to 500 characters", ExitCode.USAGE)
    if reason in _REASONS and died_of is None:
        # In `list` and `redrive` this option is a filter; here it would discard more runs than expected.
        raise CliError(
            f"--reason is the reason of the discard; to select runs that died of {reason!r}, use"
            f" --died-of {reason}",
            ExitCode.USAGE,
        )
    wanted = _narrowed(
        _chosen(
            runs,
            job,
            namespace,
            verb="discard",
            fingerprint=fingerprint,
            reason=died_of,
            period=Period.read(since, until, zone),
        ),
        everything=everything,
    )
    carry_out("discard", wanted, most, None, because=reason, dry_run=dry_run, yes=yes, as_json=as_json)


def _chosen(
    runs: Sequence[str] | None,
    job: str | None,
    namespace: str | None,
    *,
    verb: str = "",
    fingerprint: str | None,
    reason: str | None,
    period: Period,
) -> DeadSelection:
    ids = run_ids(runs or (), by_job=f"noonmark dead {verb}", state=RunState.DEAD)
    if fingerprint is not None and _FINGERPRINT.fullmatch(fingerprint) is None:
        raise CliError(
            f"--fingerprint {fingerprint!r} is not a fingerprint; copy the 16 digits of column CAUSE from"
            " `noonmark dead groups`",
            ExitCode.USAGE,
        )
    if reason is not None and reason not in _REASONS:
        raise CliError(f"{reason!r} is not a reason; use one of {', '.join(_REASONS)}", ExitCode.USAGE)
    job_id = as_uuid(job) if job is not None else None
    return DeadSelection(
        runs=ids,
        job_id=job_id,
        job_name=job if job_id is None else None,
        namespace=namespace,
        fingerprint=fingerprint,
        reason=reason,
        period=period,
    )


def _narrowed(wanted: DeadSelection, *, everything: bool) -> DeadSelection:
    """Check that the command says which runs to change.

    Raises:
        CliError: there is no filter and no --all, or --all was given together with ids.
    """
    if wanted == DeadSelection() and not everything:
        raise CliError(
            "no runs selected: give their ids, or --job, --namespace, --fingerprint, a reason, --since or"
            " --until; --all selects all",
            ExitCode.USAGE,
        )
    return wanted
