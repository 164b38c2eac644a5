"""`noonmark zones`: show and change the version of the time zone data for planning."""

from __future__ import annotations

import sys
from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated, Any, Final

import typer

from noonmark.cli.connections.audit_entries import write_entry
from noonmark.cli.connections.context import changing, operator_settings
from noonmark.cli.terminal.bulk_requests import confirmed
from noonmark.cli.terminal.options import AsJson
from noonmark.cli.terminal.output import Column, Row, field, show_fields, show_json, show_list, text
from noonmark.cli.terminal.problems import CliError, ExitCode

if TYPE_CHECKING:
    from noonmark.settings import Settings
    from noonmark.store.schedules.zone_data import Report

app = typer.Typer(help="Show and activate time zone data.", no_args_is_help=True)

_TRIES: Final = 5
_SHOWN: Final = 50


def _job(row: Row) -> str:
    return text(row["name"] or row["job_id"])


def _local_time(name: str) -> Column:
    return Column(
        f"LOCAL TIME {'NOW' if name == 'at' else 'WAS'}",
        lambda row: f"{row[name + '_local']:%a %Y-%m-%d %H:%M:%S}" if row[name + "_local"] else "-",
    )


_HISTORY = (
    field("version"),
    field("active"),
    field("activated_at", "ACTIVATED"),
    field("timers", "JOBS", numeric=True),
    field("moved", numeric=True),
)
_MOVED = (
    Column("JOB", _job, elastic=True),
    field("namespace"),
    field("zone"),
    field("was"),
    field("at", "NOW"),
    _local_time("was"),
    _local_time("at"),
)
_SKIPPED = (Column("JOB", _job, elastic=True), field("namespace"), field("reason", elastic=True))


@app.command()
def show(as_json: AsJson = False) -> None:
    """Show active zone data, those of this process, and the jobs that need them. Exits 1 if they differ."""
    from noonmark.core.zones.zones import zone_data, zone_data_version  # noqa: PLC0415 - not for `--help`
    from noonmark.store.schedules.zone_data import count_zoned, differing_zone_data, history  # noqa: PLC0415

    settings = operator_settings()
    with changing(settings) as connection:
        releases = [release._asdict() for release in history(connection)]
        zoned = count_zoned(connection)
    active = next((release["version"] for release in releases if release["active"]), None)
    own = zone_data_version()
    problem = None if active == own else differing_zone_data(own, active)
    shown = {
        "active": active,
        "this_process": own,
        "read_from": settings.zone_data_dir or "the Python package tzdata",
        "zones": len(zone_data().names),
        "zoned_jobs": zoned,
    }
    if as_json:
        show_json({**shown, "history": releases, "problem": problem})
    else:
        show_fields(shown)
        print()
        show_list(releases, _HISTORY)
        if problem:
            print(problem, file=sys.stderr)
    if problem:
        raise typer.Exit(ExitCode.PROBLEM)


@app.command()
def activate(
    *,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Show what would move, and change nothing.")
    ] = False,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Skip the confirmation prompt.")] = False,
    as_json: AsJson = False,
) -> None:
    """Activate this process's zone data, and replan jobs whose next instant moves.

    A dry run exits 1 if jobs would break.

    Triggers with another version then claim no jobs with a time zone.
    """
    settings = operator_settings()
    if not (dry_run or yes):
        if as_json or not sys.stdin.isatty():
            raise CliError(
                "cannot prompt: not a terminal, or --json; check with --dry-run, then pass --yes",
                ExitCode.USAGE,
            )
        foreseen = _activate(settings, dry_run=True)
        _show(foreseen)
        if foreseen.was_active or not confirmed(f"Activate zone data {foreseen.version}?"):
            raise typer.Exit(ExitCode.OK if foreseen.was_active else ExitCode.PROBLEM)
    report = _activate(settings, dry_run=dry_run)
    if as_json:
        show_json(_document(report))
    else:
        _show(report)
    if dry_run and report.skipped:
        raise typer.Exit(ExitCode.PROBLEM)


def _activate(settings: Settings, *, dry_run: bool) -> Report:
    """Activate the zone data; retry after conflicts with other changes."""
    import psycopg  # noqa: PLC0415

    from noonmark.store.schedules.zone_data import activate as run  # noqa: PLC0415

    with changing(settings) as connection:

        def report_done(report: Report) -> None:
            write_entry(
                connection,
                "zones.activate",
                f"zones:{report.version}",
                before={"version": report.previous},
                after={"version": report.version, "timers": report.timers, "moved": report.moved},
            )

        progress = _progress if sys.stderr.isatty() else None
        for _ in range(_TRIES):
            try:
                return run(connection, dry_run=dry_run, progress=progress, on_report=report_done)
            except (psycopg.errors.DeadlockDetected, psycopg.errors.LockNotAvailable):
                continue
            finally:
                if sys.stderr.isatty():
                    print("\r\x1b[K", end="", file=sys.stderr, flush=True)
    raise CliError("schedules keep changing; try again later")


def _progress(checked: int) -> None:
    print(f"\r{checked:,} jobs checked", end="", file=sys.stderr, flush=True)


def _show(report: Report) -> None:
    if report.was_active:
        print(f"zone data {report.version} are already active; nothing replanned")
        return
    if report.goes_back:
        print(
            f"warning: zone data {report.version} are older than {report.previous}, the previous version",
            file=sys.stderr,
        )
    if report.moved_jobs:
        show_list([asdict(job) for job in report.moved_jobs[:_SHOWN]], _MOVED)
        if report.moved > _SHOWN:
            print(f"and {report.moved - _SHOWN:,} more; use --json for up to {len(report.moved_jobs):,}")
        print()
    if report.skipped_jobs:
        print("cannot be planned with these zone data; set to broken when they come due:")
        show_list([asdict(job) for job in report.skipped_jobs[:_SHOWN]], _SKIPPED)
        print()
    would = "would be" if report.dry_run else "are"
    print(f"zone data {report.version} {would} active instead of {report.previous or 'none'}")
    moves = "would move" if report.dry_run else "moved"
    broken = (
        f", {report.skipped:,} would break" if report.dry_run else f", {report.skipped:,} cannot be planned"
    )
    print(
        f"{report.timers:,} jobs with a time zone checked, {report.moved:,} {moves}"
        f"{broken if report.skipped else ''}"
    )


def _document(report: Report) -> dict[str, Any]:
    document = asdict(report)
    document |= {"was_active": report.was_active, "goes_back": report.goes_back}
    for job in document["moved_jobs"]:
        for name in ("was_local", "at_local"):
            # Naive: local times.
            job[name] = job[name].isoformat() if job[name] is not None else None
    return document
