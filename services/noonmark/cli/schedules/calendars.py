"""`noonmark calendar`: named sets of days that schedules leave out, or keep to."""

from __future__ import annotations

import json
import sys
from datetime import UTC, date, datetime
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final
from urllib.parse import quote

import typer

from noonmark.cli.connections.context import operator_settings
from noonmark.cli.connections.job_ref import namespace_of
from noonmark.cli.connections.namespace_hints import without_jobs
from noonmark.cli.schedules import calendar_edits
from noonmark.cli.terminal.options import AsJson
from noonmark.cli.terminal.output import Column, Row, field, show_fields, show_json, show_list, with_instants
from noonmark.cli.terminal.problems import CliError, ExitCode

if TYPE_CHECKING:
    from noonmark.cli.schedules.calendar_edits import Edit
    from noonmark.client import Client
    from noonmark.client.answers import Answer
    from noonmark.core.calendars.calendar import Calendar

app = typer.Typer(help="Name sets of days that schedules leave out, or keep to.", no_args_is_help=True)

_MAX_FILE_BYTES: Final = 2_000_000
_TRIES: Final = 5

Name = Annotated[str, typer.Argument(help="1 to 63 of a-z, 0-9, '.', '-' and '_'.")]
InNamespace = Annotated[
    str | None,
    typer.Option("--namespace", help="Namespace of the calendar; without it that of the context or key."),
]

DryRun = Annotated[bool, typer.Option("--dry-run", help="Only tell what would change.")]

_COLUMNS = (
    field("name", "CALENDAR"),
    field("namespace"),
    Column("DAYS", lambda row: calendar_edits.summary(row["body"]), elastic=True),
    field("jobs", numeric=True),
    field("updated_at", "CHANGED"),
)


@app.command("set")
def set_(
    *,
    name: Name,
    file: Annotated[
        str | None,
        typer.Option(
            metavar="FILE|-", help="YAML or JSON with dates, ranges, weekdays and yearly; - is stdin."
        ),
    ] = None,
    dates: Annotated[
        list[str] | None, typer.Option("--date", help="A day such as 2026-12-25; repeatable.")
    ] = None,
    ranges: Annotated[
        list[str] | None,
        typer.Option("--range", help="Days such as 2026-12-24..2027-01-01, both included; repeatable."),
    ] = None,
    weekdays: Annotated[
        list[str] | None, typer.Option("--weekday", help="A day of every week: MON to SUN; repeatable.")
    ] = None,
    yearly: Annotated[
        list[str] | None, typer.Option(help="A day of every year such as 12-25; repeatable.")
    ] = None,
    add: Annotated[
        list[str] | None,
        typer.Option("--add", help="An entry more for one that exists, in any of these forms; repeatable."),
    ] = None,
    remove: Annotated[
        list[str] | None, typer.Option("--remove", help="An entry that it has no more; repeatable.")
    ] = None,
    namespace: InNamespace = None,
    dry_run: DryRun = False,
    as_json: AsJson = False,
) -> None:
    """Make a calendar, or replace all of its days, or --add and --remove some. Its jobs are planned anew.

    Instants that are in the ledger stay as they are.
    """
    given = {
        "dates": dates,
        "ranges": calendar_edits.read_ranges(ranges or []),
        "weekdays": weekdays,
        "yearly": yearly,
    }
    body: object = {key: items for key, items in given.items() if items}
    if file is not None and body:
        raise CliError(
            "give --file or single days, not both: a calendar is replaced as a whole", ExitCode.USAGE
        )
    if add or remove:
        if file is not None or body:
            raise CliError(
                "give --add and --remove, or all days: --file, --date, … replace a calendar as a whole",
                ExitCode.USAGE,
            )
        edit = calendar_edits.entries_edit(name, add or [], remove or [])
        _change_contents(namespace, name, edit, dry_run=dry_run, as_json=as_json)
        return
    if file is None and not body:
        raise CliError("give the days: --file, --date, --range, --weekday or --yearly", ExitCode.USAGE)
    if file is not None:
        body = _read_file(file)
    calendar = _parse(body, "standard input" if file == "-" else file)
    _change_contents(namespace, name, lambda *_: calendar, dry_run=dry_run, as_json=as_json)


@app.command("import")
def import_(
    *,
    name: Name,
    file: Annotated[Path, typer.Argument(metavar="FILE.ics", exists=True, dir_okay=False)],
    years: Annotated[
        int, typer.Option(min=1, max=100, help="Write recurring events out for so many years ahead.")
    ] = 10,
    namespace: InNamespace = None,
    dry_run: DryRun = False,
    as_json: AsJson = False,
) -> None:
    """Make a calendar of the events in an iCalendar file, or replace all of its days by them.

    Each event counts for the days on which it is. Cancelled ones are left out.
    """
    from noonmark.cli.schedules.ics import MAX_BYTES, IcsError, read_ics  # noqa: PLC0415

    try:
        with file.open("rb") as source:
            data = source.read(MAX_BYTES + 1)
        found = read_ics(data, today=datetime.now(UTC).date(), years=years)
    except OSError as error:
        raise CliError(f"{file} cannot be read: {error.strerror}", ExitCode.USAGE) from error
    except IcsError as error:
        raise CliError(f"{file}: {error}", ExitCode.USAGE) from error
    read = {"events": found.events, "cancelled": found.cancelled, "written_out_to": found.written_out_to}
    _change_contents(namespace, name, lambda *_: found.calendar, dry_run=dry_run, as_json=as_json, read=read)


@app.command("list")
def list_(namespace: InNamespace = None, as_json: AsJson = False) -> None:
    """List calendars with the number of jobs that use each."""
    from noonmark.cli.connections.api import client  # noqa: PLC0415 - httpx takes a while to load

    with client(operator_settings()) as api:
        rows = [_document(row) for row in api.calendars.list(namespace=namespace)]
    if as_json:
        show_json({"items": rows})
        return
    show_list([with_instants(row, "updated_at") for row in rows], _COLUMNS)


@app.command()
def show(
    name: Name,
    year: Annotated[
        int | None, typer.Option(min=1970, max=2199, help="List every day of the calendar in this year.")
    ] = None,
    namespace: InNamespace = None,
    as_json: AsJson = False,
) -> None:
    """Show what is in a calendar."""
    from noonmark.cli.connections.api import client  # noqa: PLC0415
    from noonmark.core.calendars.calendar import Calendar  # noqa: PLC0415

    with client(operator_settings()) as api:
        document = _document(_read(api, namespace, name).data)
    calendar = Calendar.parse(document["body"])
    days = list(calendar.days(date(year, 1, 1), date(year, 12, 31))) if year is not None else []
    if as_json:
        listed = {} if year is None else {"year": year, "days": [day.isoformat() for day in days]}
        show_json({**document, **listed})
    elif year is not None:
        print("\n".join(map(_with_weekday, days)) or f"{name} has no day in {year}")
    else:
        _show_days(document, calendar)


@app.command()
def delete(name: Name, namespace: InNamespace = None) -> None:
    """Delete a calendar that no job uses."""
    from noonmark.cli.connections.api import client  # noqa: PLC0415

    with client(operator_settings()) as api:
        _read(api, namespace, name)
        api.calendars.delete(name, namespace=namespace)
    print(f"calendar {name} is deleted")


def _read_file(file: str) -> object:
    place = "standard input" if file == "-" else file
    try:
        if file == "-":
            text = sys.stdin.read(_MAX_FILE_BYTES + 1)
        else:
            with Path(file).open(encoding="utf-8") as source:
                text = source.read(_MAX_FILE_BYTES + 1)
    except (OSError, UnicodeDecodeError) as error:
        raise CliError(f"{place} cannot be read: {error}", ExitCode.USAGE) from error
    if len(text) > _MAX_FILE_BYTES:
        raise CliError(f"{place} is longer than {_MAX_FILE_BYTES:,} characters", ExitCode.USAGE)
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return _read_yaml(text, place)


def _read_yaml(text: str, place: str) -> object:
    yaml: Any = import_module("yaml")  # takes a while, for this form only
    try:
        return yaml.safe_load(text)
    except (yaml.YAMLError, RecursionError, ValueError) as error:
        told = " ".join(str(error).split()) or "nested too deeply"
        raise CliError(f"{place} is neither JSON nor YAML: {told}", ExitCode.USAGE) from error


def _parse(body: object, place: str | None) -> Calendar:
    from noonmark.core.calendars.calendar import Calendar, CalendarError  # noqa: PLC0415

    try:
        return Calendar.parse(body)
    except CalendarError as error:
        raise CliError(f"{place}: {error.message}" if place else error.message, ExitCode.USAGE) from error


def _change_contents(
    namespace: str | None,
    name: str,
    edit: Edit,
    *,
    dry_run: bool,
    as_json: bool,
    read: dict[str, Any] | None = None,
) -> None:
    """Change what a calendar holds, or only look, and show what becomes of it and of its jobs."""
    from noonmark.cli.connections.api import client  # noqa: PLC0415
    from noonmark.core.calendars.calendar import CalendarError  # noqa: PLC0415
    from noonmark.store.schedules.calendars import check_name  # noqa: PLC0415

    try:
        check_name(name)
        with client(operator_settings()) as api:
            change = _put(api, namespace, name, edit, dry_run=dry_run)
            hint = None if change.told["used_by"] else without_jobs(api, change.told["namespace"])
    except CalendarError as error:
        raise CliError(error.message, ExitCode.USAGE) from error
    calendar_edits.show_change(change, hint, as_json=as_json, read=read)


def _put(
    api: Client, namespace: str | None, name: str, edit: Edit, *, dry_run: bool
) -> calendar_edits.Change:
    """Replace a calendar by what an edit makes of it, as long as it is the one that was edited.

    Raises:
        CliError: others change it all the time.
        CalendarError: of the edit.
    """
    from noonmark.cli.connections.api import wrong_usage  # noqa: PLC0415
    from noonmark.client import ApiError  # noqa: PLC0415
    from noonmark.core.calendars.calendar import Calendar  # noqa: PLC0415

    for _ in range(_TRIES):
        try:
            found = _read(api, namespace, name)
        except CliError:
            found = None
        place = found.data["namespace"] if found else namespace_of(api, namespace)
        before = Calendar.parse(_document(found.data)["body"]) if found else None
        now = edit(before, place)
        params = {"namespace": namespace or api.namespace, "dry_run": dry_run}
        headers = {"If-Match": found.etag if found else None}
        try:
            with wrong_usage():
                answer = api.request(
                    "PUT", f"/v1/calendars/{name}", json=now.body(), params=params, headers=headers
                )
        except ApiError as error:
            if error.status != 412:
                raise
            # Others have changed it since it was read.
            continue
        return calendar_edits.Change(before, now, answer.data)
    raise CliError(f"calendar {name} is not changed: others change it all the time; try again in a moment")


def _read(api: Client, namespace: str | None, name: str) -> Answer:
    """Read a calendar with its ETag.

    Raises:
        CliError: there is none.
    """
    from noonmark.client import ApiError  # noqa: PLC0415

    params = {"namespace": namespace or api.namespace}
    try:
        return api.request("GET", f"/v1/calendars/{quote(name, safe='')}", params=params)
    except ApiError as error:
        if error.status not in {404, 422}:
            raise
        place = namespace_of(api, namespace)
        raise CliError(
            f"there is no calendar {name!r} in namespace {place}: `noonmark calendar list` shows those there"
            " are"
        ) from error


def _show_days(document: Row, calendar: Calendar) -> None:
    body = document["body"]
    shown = {key: document[key] for key in ("name", "namespace", "digest", "updated_at", "jobs")}
    shown |= {key: ", ".join(body[key]) for key in ("weekdays", "yearly") if body.get(key)}
    show_fields(with_instants(shown, "updated_at"))
    lines = [(day, _with_weekday(day)) for day in calendar.dates]
    lines += [
        (one.first, f"{_with_weekday(one.first)} to {_with_weekday(one.last)}") for one in calendar.ranges
    ]
    if lines:
        print()
    for _, line in sorted(lines):
        print(line)


def _document(row: Row) -> dict[str, Any]:
    """Return a calendar with its days apart, in their JSON form."""
    body = {key: row[key] for key in calendar_edits.KEYS if row.get(key)}
    return {**{key: value for key, value in row.items() if key not in calendar_edits.KEYS}, "body": body}


def _with_weekday(day: date) -> str:
    return f"{day} {day:%a}"
