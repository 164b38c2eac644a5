"""`noonmark calendar`: manage calendars, the days that schedules exclude or include."""

from __future__ import annotations

import json
import re
import sys
from datetime import UTC, date, datetime
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final
from urllib.parse import quote

import typer

from noonmark.cli.connections.api_pages import with_instants
from noonmark.cli.connections.context import operator_settings
from noonmark.cli.connections.job_ref import namespace_of
from noonmark.cli.connections.namespace_hints import without_jobs
from noonmark.cli.schedules import calendar_edits
from noonmark.cli.terminal.json_values import is_json_file, json_place
from noonmark.cli.terminal.options import AsJson
from noonmark.cli.terminal.output import Column, Row, field, show_fields, show_json, show_list
from noonmark.cli.terminal.problems import CliError, ExitCode, cannot_read
from noonmark.cli.terminal.yaml_text import yaml_problem

if TYPE_CHECKING:
    from noonmark.cli.schedules.calendar_edits import Edit
    from noonmark.client import Client
    from noonmark.client.answers import Answer
    from noonmark.core.calendars.calendar import Calendar

app = typer.Typer(help="Manage calendars (holidays and business days).", no_args_is_help=True)

_MAX_FILE_BYTES: Final = 2_000_000
_TRIES: Final = 5

_OF_OPTION: Final = re.compile(r"^(dates|ranges|weekdays|yearly)\[\d+\](?:\.\w+)?")
Name = Annotated[
    str, typer.Argument(metavar="NAME", help="Name of the calendar: 1 to 63 of a-z, 0-9, '.', '-' and '_'.")
]
InNamespace = Annotated[
    str | None,
    typer.Option("--namespace", help="Namespace of the calendar. (default: that of the context or key)"),
]

DryRun = Annotated[bool, typer.Option("--dry-run", help="Show what would change, and change nothing.")]

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
        list[str] | None, typer.Option("--date", help="A day, such as 2026-12-25; repeatable.")
    ] = None,
    ranges: Annotated[
        list[str] | None,
        typer.Option(
            "--range", help="A range of days, such as 2026-12-24..2027-01-01, both included; repeatable."
        ),
    ] = None,
    weekdays: Annotated[
        list[str] | None, typer.Option("--weekday", help="A day of every week: MON to SUN; repeatable.")
    ] = None,
    yearly: Annotated[
        list[str] | None, typer.Option(help="A day of every year, such as 12-25; repeatable.")
    ] = None,
    add: Annotated[
        list[str] | None,
        typer.Option(
            "--add", help="Add an entry to an existing calendar, in any of these forms; repeatable."
        ),
    ] = None,
    remove: Annotated[list[str] | None, typer.Option("--remove", help="Remove an entry; repeatable.")] = None,
    namespace: InNamespace = None,
    dry_run: DryRun = False,
    as_json: AsJson = False,
) -> None:
    """Create a calendar, replace all its days, or change some with --add and --remove.

    Jobs that use the calendar are replanned. Instants in the ledger do not change.
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
            "give --file or single days, not both: they replace the whole calendar", ExitCode.USAGE
        )
    if add or remove:
        if file is not None or body:
            raise CliError(
                "give --add and --remove, or all days: --file, --date, … replace the whole calendar",
                ExitCode.USAGE,
            )
        edit = calendar_edits.entries_edit(name, add or [], remove or [])
        _change_contents(namespace, name, edit, dry_run=dry_run, as_json=as_json)
        return
    if file is None and not body:
        raise CliError("no days given; use --file, --date, --range, --weekday or --yearly", ExitCode.USAGE)
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
        int, typer.Option(min=1, max=100, help="Number of years to expand recurring events.")
    ] = 10,
    namespace: InNamespace = None,
    dry_run: DryRun = False,
    as_json: AsJson = False,
) -> None:
    """Create a calendar from an iCalendar file, or replace all its days.

    Each event adds the days on which it takes place. Cancelled events are ignored.
    """
    from noonmark.cli.schedules.ics import MAX_BYTES, IcsError, read_ics  # noqa: PLC0415

    try:
        with file.open("rb") as source:
            data = source.read(MAX_BYTES + 1)
        found = read_ics(data, today=datetime.now(UTC).date(), years=years)
    except OSError as error:
        raise cannot_read(file, error) from error
    except IcsError as error:
        raise CliError(f"{file}: {error}", ExitCode.USAGE) from error
    read = {"events": found.events, "cancelled": found.cancelled, "written_out_to": found.written_out_to}
    _change_contents(namespace, name, lambda *_: found.calendar, dry_run=dry_run, as_json=as_json, read=read)


@app.command("list")
def list_(namespace: InNamespace = None, as_json: AsJson = False) -> None:
    """List calendars with the number of jobs that use them."""
    from noonmark.cli.connections.api import client  # noqa: PLC0415 - httpx takes a while to load

    with client(operator_settings()) as api:
        rows = [_document(row) for row in api.calendars.list(namespace=namespace)]
    if as_json:
        show_json({"items": rows})
        return
    empty = "no calendars found; `noonmark calendar set` creates one"
    show_list([with_instants(row) for row in rows], _COLUMNS, empty=empty)


@app.command()
def show(
    name: Name,
    year: Annotated[
        int | None, typer.Option(min=1970, max=2199, help="List all days of the calendar in this year.")
    ] = None,
    namespace: InNamespace = None,
    as_json: AsJson = False,
) -> None:
    """Show the days of a calendar."""
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
        print("\n".join(map(_with_weekday, days)) or f"{name} has no days in {year}")
    else:
        _show_days(document, calendar)


@app.command()
def delete(name: Name, namespace: InNamespace = None) -> None:
    """Delete a calendar. Rejected while a job uses it."""
    from noonmark.cli.connections.api import client  # noqa: PLC0415

    with client(operator_settings()) as api:
        _read(api, namespace, name)
        api.calendars.delete(name, namespace=namespace)
    print(f"calendar {name} deleted")


def _read_file(file: str) -> object:
    label = "standard input" if file == "-" else file
    try:
        if file == "-":
            text = sys.stdin.read(_MAX_FILE_BYTES + 1)
        else:
            with Path(file).open(encoding="utf-8") as source:
                text = source.read(_MAX_FILE_BYTES + 1)
    except (OSError, UnicodeDecodeError) as error:
        raise cannot_read(label, error) from error
    if len(text) > _MAX_FILE_BYTES:
        raise CliError(f"{label} is longer than {_MAX_FILE_BYTES:,} characters", ExitCode.USAGE)
    try:
        return json.loads(text)
    except (ValueError, RecursionError) as error:
        if not is_json_file(file):
            return _read_yaml(text, label)
        line, column, reason = json_place(error)
        raise CliError(
            f"{label} is not JSON: line {line}, column {column}: {reason}", ExitCode.USAGE
        ) from error


def _read_yaml(text: str, label: str) -> object:
    yaml: Any = import_module("yaml")  # takes a while, for this form only
    try:
        return yaml.safe_load(text)
    except (yaml.YAMLError, RecursionError, ValueError) as error:
        raise CliError(f"{label} is neither JSON nor YAML: {yaml_problem(error)}", ExitCode.USAGE) from error


def _parse(body: object, label: str | None) -> Calendar:
    from noonmark.core.calendars.calendar import Calendar, CalendarError  # noqa: PLC0415

    try:
        return Calendar.parse(body)
    except CalendarError as error:
        message = f"{label}: {error.message}" if label else _OF_OPTION.sub(_as_option, error.message)
        raise CliError(message, ExitCode.USAGE) from error


def _as_option(found: re.Match[str]) -> str:
    """Return the option of an entry, for a message that names its field in a document."""
    return f"--{found[1].removesuffix('s') if found[1] != 'yearly' else found[1]}"


def _change_contents(
    namespace: str | None,
    name: str,
    edit: Edit,
    *,
    dry_run: bool,
    as_json: bool,
    read: dict[str, Any] | None = None,
) -> None:
    """Change a calendar, or preview the change, and print its effect on jobs."""
    from noonmark.cli.connections.api import client  # noqa: PLC0415
    from noonmark.core.calendars.calendar import CalendarError  # noqa: PLC0415
    from noonmark.store.schedules.calendars import check_name  # noqa: PLC0415

    try:
        check_name(name)
        with client(operator_settings()) as api:
            change = _put(api, namespace, name, edit, dry_run=dry_run)
            hint = None if change.answer["used_by"] else without_jobs(api, change.answer["namespace"])
    except CalendarError as error:
        raise CliError(error.message, ExitCode.USAGE) from error
    calendar_edits.show_change(change, hint, as_json=as_json, read=read)


def _put(
    api: Client, namespace: str | None, name: str, edit: Edit, *, dry_run: bool
) -> calendar_edits.Change:
    """Replace a calendar by its edited contents, if no one else changed it in the meantime.

    Raises:
        CliError: other users keep changing it.
        CalendarError: the edit is invalid.
    """
    from noonmark.cli.connections.api import wrong_usage  # noqa: PLC0415
    from noonmark.client import ApiError  # noqa: PLC0415
    from noonmark.core.calendars.calendar import Calendar  # noqa: PLC0415

    for _ in range(_TRIES):
        try:
            found = _read(api, namespace, name)
        except CliError:
            found = None
        home = found.data["namespace"] if found else namespace_of(api, namespace)
        before = Calendar.parse(_document(found.data)["body"]) if found else None
        now = edit(before, home)
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
            # Another user changed it since it was read.
            continue
        return calendar_edits.Change(before, now, answer.data)
    raise CliError(f"calendar {name} not changed: other users keep changing it; try again later")


def _read(api: Client, namespace: str | None, name: str) -> Answer:
    """Read a calendar with its ETag.

    Raises:
        CliError: it does not exist.
    """
    from noonmark.client import ApiError  # noqa: PLC0415

    params = {"namespace": namespace or api.namespace}
    try:
        return api.request("GET", f"/v1/calendars/{quote(name, safe='')}", params=params)
    except ApiError as error:
        if error.status not in {404, 422}:
            raise
        home = namespace_of(api, namespace)
        raise CliError(
            f"calendar {name!r} does not exist in namespace {home}; run `noonmark calendar list`"
        ) from error


def _show_days(document: Row, calendar: Calendar) -> None:
    body = document["body"]
    shown = {key: document[key] for key in ("name", "namespace", "digest", "updated_at", "jobs")}
    shown |= {key: ", ".join(body[key]) for key in ("weekdays", "yearly") if body.get(key)}
    show_fields(with_instants(shown))
    lines = [(day, _with_weekday(day)) for day in calendar.dates]
    lines += [
        (one.first, f"{_with_weekday(one.first)} to {_with_weekday(one.last)}") for one in calendar.ranges
    ]
    if lines:
        print()
    for _, line in sorted(lines):
        print(line)


def _document(row: Row) -> dict[str, Any]:
    """Return a calendar with its days as separate JSON fields."""
    body = {key: row[key] for key in calendar_edits.KEYS if row.get(key)}
    return {**{key: value for key, value in row.items() if key not in calendar_edits.KEYS}, "body": body}


def _with_weekday(day: date) -> str:
    return f"{day} {day:%a}"
