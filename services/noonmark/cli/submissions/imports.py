"""`noonmark import`: convert the jobs of other schedulers to job documents."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final

import typer

from noonmark.cli.connections.periods import TIMES, check_zone, read_time
from noonmark.cli.terminal.bulk_requests import DryRun, progress
from noonmark.cli.terminal.options import AsJson, duration_option
from noonmark.cli.terminal.output import Column, counted, field, printable, show_json, show_list
from noonmark.cli.terminal.problems import CliError, ExitCode, cannot_read, cannot_write

if TYPE_CHECKING:
    from noonmark.cli.submissions.crontab_jobs import ConvertedLine
    from noonmark.core.crontab.reader import Crontab

app = typer.Typer(help="Import jobs from other schedulers.", no_args_is_help=True)

_MOST_BYTES: Final = 16 * 1024 * 1024
_LOCALTIME: Final = Path("/etc/localtime")
_FALLBACK_ZONE: Final = "UTC"

_COLUMNS = (
    field("line", numeric=True),
    Column("JOB", lambda row: str(row["job"]), elastic=True),
    field("schedule"),
    field("zone"),
    field("next_at", "NEXT"),
    Column("SAME AS CRON", lambda row: f"next {row['checked']}", numeric=True),
)


@app.callback()
def group() -> None:
    """Make `crontab` a subcommand, although it is the only one."""


@app.command()
def crontab(
    *,
    file: Annotated[str, typer.Argument(metavar="FILE|-", help="Crontab file; - is stdin.")],
    user_form: Annotated[
        bool, typer.Option("--user-form", help="Lines have five fields and a command, as in `crontab -l`.")
    ] = False,
    system_form: Annotated[
        bool,
        typer.Option(
            "--system-form", help="Lines have a user before the command, as in /etc/crontab and /etc/cron.d."
        ),
    ] = False,
    user: Annotated[
        list[str] | None,
        typer.Option("--user", help="Import the lines of this user (system form); repeatable."),
    ] = None,
    zone: Annotated[
        str | None,
        typer.Option("--zone", help="Zone of lines without CRON_TZ above them. (default: this machine's)"),
    ] = None,
    allow_shell: Annotated[
        bool, typer.Option("--allow-shell", help="Run commands with shell syntax in their SHELL.")
    ] = False,
    namespace: Annotated[str | None, typer.Option("--namespace", help="Namespace of the jobs.")] = None,
    pool: Annotated[str | None, typer.Option("--pool", help="Pool of the jobs.")] = None,
    prefix: Annotated[str, typer.Option("--prefix", help="Prefix of every job name.")] = "cron-",
    timeout: Annotated[
        float, duration_option("--timeout", help_text="Timeout of an attempt", most=86_400)
    ] = 86_400.0,
    since: Annotated[
        str | None,
        typer.Option("--from", metavar="TIME", help=f"Start of the comparison: {TIMES}. (default: now)"),
    ] = None,
    output: Annotated[
        Path | None, typer.Option("--output", "-o", help="Write the job documents to this YAML file.")
    ] = None,
    apply: Annotated[
        bool, typer.Option("--apply", help="Create the jobs, as `noonmark job apply` does.")
    ] = False,
    set_name: Annotated[str | None, typer.Option("--set", help="Set of the jobs, with --apply.")] = None,
    dry_run: DryRun = False,
    as_json: AsJson = False,
) -> None:
    """Convert each line of a crontab to a job.

    The jobs behave as under cron: no retries, no late runs, overlapping runs, in the zone of
    CRON_TZ. The next 100 instants of each job are compared with a second evaluation of the line.
    Exits 1 if a line cannot be converted. Writes nothing without -o or --apply.
    """
    if user_form and system_form:
        raise CliError("give --user-form or --system-form, not both", ExitCode.USAGE)
    from noonmark.cli.connections.context import use_named_zone_data  # noqa: PLC0415
    from noonmark.cli.submissions.crontab_jobs import Rules, convert  # noqa: PLC0415 - for this command only

    use_named_zone_data()
    if zone is not None:
        check_zone(zone)
    read, system = _read(file, system=system_form or (None if not user_form else False))
    named_zone = zone or local_zone()
    rules = Rules(named_zone, frozenset(user or ()), allow_shell, prefix, namespace, pool, timeout)
    lines: list[ConvertedLine] = []
    for line in convert(read, rules, now=read_time(since, zone, option="--from") or datetime.now(UTC)):
        lines.append(line)
        progress(len(lines), len(read.lines))
    jobs = {line.number: dict(line.document) for line in lines if line.document is not None}
    documents = list(jobs.values())
    if output is not None and not dry_run:
        _write(output, documents)
    if as_json and not apply:
        show_json(_report(lines, read, named_zone, system=system))
    elif not as_json:
        _show(lines, read, named_zone, is_local_zone=zone is None, system=system)
    if apply and documents:
        from noonmark.cli.submissions.apply_steps import apply_documents  # noqa: PLC0415

        found = _report(lines, read, named_zone, system=system) if as_json else None
        apply_documents(jobs, file=file, set_name=set_name, dry_run=dry_run, report=found)
    if len(documents) < len(lines):
        raise typer.Exit(ExitCode.PROBLEM)


def local_zone() -> str:
    """Return the name of this machine's time zone, which its cron uses; UTC if it has none."""
    named = os.environ.get("TZ", "").removeprefix(":")
    if named:
        return named
    try:
        path = str(_LOCALTIME.resolve())
    except OSError:
        return _FALLBACK_ZONE
    return path.partition("/zoneinfo/")[2] or _FALLBACK_ZONE


def _read(file: str, *, system: bool | None) -> tuple[Crontab, bool]:
    """Read a crontab; its path determines the form, unless an option does."""
    from noonmark.core.crontab.fields import CrontabError  # noqa: PLC0415
    from noonmark.core.crontab.reader import is_system_path, parse_crontab  # noqa: PLC0415

    label = "standard input" if file == "-" else file
    try:
        if file == "-":
            data = sys.stdin.buffer.read(_MOST_BYTES + 1)
        else:
            with Path(file).open("rb") as source:
                data = source.read(_MOST_BYTES + 1)
    except OSError as error:
        raise cannot_read(label, error) from error
    if len(data) > _MOST_BYTES:
        raise CliError(f"{label} has more than {_MOST_BYTES} bytes", ExitCode.USAGE)
    if system is None:
        system = file != "-" and is_system_path(os.path.realpath(file))
    try:
        read = parse_crontab(data.decode("utf-8-sig", "surrogateescape"), system=system)
    except CrontabError as error:
        raise CliError(f"{label}: {error.message}", ExitCode.USAGE) from error
    if not read.lines:
        raise CliError(f"{label} contains no commands")
    return read, system


def _write(path: Path, documents: Sequence[dict[str, Any]]) -> None:
    """Write the documents, readable only by the owner, like a crontab."""
    from noonmark.cli.terminal.yaml_text import dump  # noqa: PLC0415

    try:
        handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
        with os.fdopen(handle, "w", encoding="utf-8") as file:
            file.write("# Converted by `noonmark import crontab`; apply it with `noonmark job apply -f`.\n")
            file.write(dump(documents))
    except OSError as error:
        raise cannot_write(path, error) from error


def _rows(lines: Sequence[ConvertedLine]) -> list[dict[str, Any]]:
    return [
        {
            "line": line.number,
            "job": line.document["name"] if line.document is not None else None,
            "schedule": line.schedule,
            "zone": line.zone,
            "next_at": line.next_at,
            "checked": line.checked,
            "reason": line.reason,
        }
        for line in lines
    ]


def _report(lines: Sequence[ConvertedLine], read: Crontab, zone: str, *, system: bool) -> dict[str, Any]:
    rows = _rows(lines)
    for row, line in zip(rows, lines, strict=True):
        row["document"] = line.document
    made = sum(line.document is not None for line in lines)
    return {
        "form": "system" if system else "user",
        "zone": zone,
        "items": rows,
        "notes": [{"line": number, "note": note} for number, note in read.notes],
        "imported": made,
        "not_imported": len(lines) - made,
    }


def _show(
    lines: Sequence[ConvertedLine], read: Crontab, zone: str, *, is_local_zone: bool, system: bool
) -> None:
    rows = _rows(lines)
    made = [row for row in rows if row["job"] is not None]
    if made:
        show_list(made, _COLUMNS)
    refused = [row for row in rows if row["job"] is None]
    if refused:
        print(f"{chr(10) if made else ''}not converted:")
    for row in refused:
        print(printable(f"  line {row['line']}: {row['reason']}"))
    if read.notes:
        print("\nnotes:")
    for number, note in read.notes:
        print(printable(f"  line {number}: {note}"))
    named = f"zone {zone}{' (this machine)' if is_local_zone else ''}"
    form = "system" if system else "user"
    checked = "; their instants are the same as cron's" if made else ""
    print(f"\n{len(made)} of {counted(len(rows), 'line')} converted{checked} ({form} form, {named})")
    if made:
        print("workers run only programs in NOONMARK_SCRIPTS: set it before the first run is due")
