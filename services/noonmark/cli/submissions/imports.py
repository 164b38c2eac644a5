"""`noonmark import`: what other schedulers hold, as job documents."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final

import typer

from noonmark.cli.terminal.bulk_requests import DryRun, progress
from noonmark.cli.terminal.options import AsJson, read_since
from noonmark.cli.terminal.output import Column, counted, field, printable, show_json, show_list
from noonmark.cli.terminal.problems import CliError, ExitCode

if TYPE_CHECKING:
    from noonmark.cli.submissions.crontab_jobs import ConvertedLine
    from noonmark.core.crontab.reader import Crontab

app = typer.Typer(help="Make job documents of what other schedulers hold.", no_args_is_help=True)

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
    """Keep `crontab` a subcommand although it is the only one."""


@app.command()
def crontab(
    *,
    file: Annotated[str, typer.Argument(metavar="FILE|-", help="The crontab; - is standard input.")],
    user_form: Annotated[
        bool, typer.Option("--user-form", help="Lines have five fields and a command, as `crontab -l` shows.")
    ] = False,
    system_form: Annotated[
        bool,
        typer.Option(
            "--system-form", help="Lines name a user before the command: /etc/crontab and /etc/cron.d."
        ),
    ] = False,
    user: Annotated[
        list[str] | None,
        typer.Option("--user", help="Take the lines of this user of the system form; repeatable."),
    ] = None,
    zone: Annotated[
        str | None,
        typer.Option("--zone", help="Zone of lines without CRON_TZ above them; else this machine's."),
    ] = None,
    allow_shell: Annotated[
        bool, typer.Option("--allow-shell", help="Hand commands with shell syntax to their SHELL.")
    ] = False,
    namespace: Annotated[str | None, typer.Option("--namespace", help="Namespace of the jobs.")] = None,
    pool: Annotated[str | None, typer.Option("--pool", help="Pool of the jobs.")] = None,
    prefix: Annotated[str, typer.Option("--prefix", help="Beginning of every job's name.")] = "cron-",
    timeout: Annotated[
        float, typer.Option("--timeout", min=1, max=86_400, help="Longest time of an attempt, in seconds.")
    ] = 86_400.0,
    since: Annotated[
        str | None,
        typer.Option(
            "--from", help="Compare instants from here on: a day (UTC) or an instant. Default: now."
        ),
    ] = None,
    output: Annotated[
        Path | None, typer.Option("--output", "-o", help="Write the job documents to this file, as YAML.")
    ] = None,
    apply: Annotated[
        bool, typer.Option("--apply", help="Make the jobs, as `noonmark job apply` does with the file.")
    ] = False,
    set_name: Annotated[
        str | None, typer.Option("--set", help="With --apply: the set that the jobs belong to.")
    ] = None,
    dry_run: DryRun = False,
    as_json: AsJson = False,
) -> None:
    """Make a job of each line of a crontab, or say why not.

    The jobs do what cron did: no retries, no catching up, a second start while the first still runs, in the
    zone of CRON_TZ. The next 100 instants of each are compared with those of a second evaluation of the line.
    The exit code is 1 if a line became no job. Without -o and --apply nothing is written.
    """
    if user_form and system_form:
        raise CliError("--user-form and --system-form exclude each other", ExitCode.USAGE)
    from noonmark.cli.connections.context import use_named_zone_data  # noqa: PLC0415
    from noonmark.cli.submissions.crontab_jobs import Rules, convert  # noqa: PLC0415 - for this command only

    use_named_zone_data()
    read, system = _read(file, system=system_form or (None if not user_form else False))
    named_zone = zone or local_zone()
    rules = Rules(named_zone, frozenset(user or ()), allow_shell, prefix, namespace, pool, timeout)
    lines: list[ConvertedLine] = []
    for line in convert(read, rules, now=read_since(since, option="--from") or datetime.now(UTC)):
        lines.append(line)
        progress(len(lines), len(read.lines))
    jobs = {line.number: dict(line.document) for line in lines if line.document is not None}
    documents = list(jobs.values())
    if output is not None and not dry_run:
        _write(output, documents)
    if as_json and not apply:
        show_json(_report(lines, read, named_zone, system=system))
    elif not as_json:
        _show(lines, read, named_zone, told_zone=zone is None, system=system)
    if apply and documents:
        from noonmark.cli.submissions.apply_steps import apply_documents  # noqa: PLC0415

        found = _report(lines, read, named_zone, system=system) if as_json else None
        apply_documents(jobs, file=file, set_name=set_name, dry_run=dry_run, report=found)
    if len(documents) < len(lines):
        raise typer.Exit(ExitCode.PROBLEM)


def local_zone() -> str:
    """Return the name of this machine's zone, which its cron runs in; UTC where it has none."""
    named = os.environ.get("TZ", "").removeprefix(":")
    if named:
        return named
    try:
        place = str(_LOCALTIME.resolve())
    except OSError:
        return _FALLBACK_ZONE
    return place.partition("/zoneinfo/")[2] or _FALLBACK_ZONE


def _read(file: str, *, system: bool | None) -> tuple[Crontab, bool]:
    """Read a crontab; its form is told by where it lies, unless that is said."""
    from noonmark.core.crontab.fields import CrontabError  # noqa: PLC0415
    from noonmark.core.crontab.reader import is_system_path, parse_crontab  # noqa: PLC0415

    place = "standard input" if file == "-" else file
    try:
        if file == "-":
            data = sys.stdin.buffer.read(_MOST_BYTES + 1)
        else:
            with Path(file).open("rb") as source:
                data = source.read(_MOST_BYTES + 1)
    except OSError as error:
        raise CliError(f"{place} cannot be read: {error}", ExitCode.USAGE) from error
    if len(data) > _MOST_BYTES:
        raise CliError(f"{place} has more than {_MOST_BYTES} bytes", ExitCode.USAGE)
    if system is None:
        system = file != "-" and is_system_path(os.path.realpath(file))
    try:
        read = parse_crontab(data.decode("utf-8-sig", "surrogateescape"), system=system)
    except CrontabError as error:
        raise CliError(f"{place}: {error.message}", ExitCode.USAGE) from error
    if not read.lines:
        raise CliError(f"{place} holds no line that runs anything")
    return read, system


def _write(path: Path, documents: Sequence[dict[str, Any]]) -> None:
    """Write the documents; as a crontab is, for nobody but its owner to read."""
    from noonmark.cli.terminal.yaml_text import dump  # noqa: PLC0415

    try:
        handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
        with os.fdopen(handle, "w", encoding="utf-8") as file:
            file.write(
                "# Made of a crontab by `noonmark import crontab`; `noonmark job apply -f` takes it.\n"
            )
            file.write(dump(documents))
    except OSError as error:
        raise CliError(f"{path} cannot be written: {error}", ExitCode.USAGE) from error


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


def _show(lines: Sequence[ConvertedLine], read: Crontab, zone: str, *, told_zone: bool, system: bool) -> None:
    rows = _rows(lines)
    made = [row for row in rows if row["job"] is not None]
    if made:
        show_list(made, _COLUMNS)
    refused = [row for row in rows if row["job"] is None]
    if refused:
        print(f"{chr(10) if made else ''}no job:")
    for row in refused:
        print(printable(f"  line {row['line']}: {row['reason']}"))
    if read.notes:
        print("\nnotes:")
    for number, note in read.notes:
        print(printable(f"  line {number}: {note}"))
    named = f"zone {zone}{' (this machine)' if told_zone else ''}"
    form = "system" if system else "user"
    checked = "; the instants of each are those of cron" if made else ""
    print(f"\n{len(made)} of {counted(len(rows), 'line')} become jobs{checked} ({form} form, {named})")
    if made:
        print("workers start only programs that their NOONMARK_SCRIPTS names: set it before the first is due")
