"""What `noonmark schedule` prints: JSON for machines, tables and sentences for people."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from datetime import datetime, timedelta
from typing import Any, Final

import typer

from noonmark.cli.context import use_named_zone_data
from noonmark.cli.output import Column, field, printable, show_json, show_list
from noonmark.cli.problems import CliError, ExitCode
from noonmark.cli.schedule_input import InputError, Subject, read_count
from noonmark.cli.schedule_request import Asked, Request, read_reading, read_request, read_side
from noonmark.core.instants import format_instant
from noonmark.core.preview import Fire, Preview, Removed, diff, preview

FIRES: Final = 10
"""Fires that `next` shows where nobody says how many."""

MAX_DAYS: Final = 3660
_EXPLAINED_FIRES: Final = 3
_DIFFERENCES: Final = 10_000
_NOTHING: Final = Preview([], complete=True, removed=[])

_COLUMNS: Final = (
    field("at", "UTC"),
    field("local"),
    field("day"),
    field("in", numeric=True),
    Column("NOTE", lambda row: row["note"] or "", elastic=True),
)


def show(view: str, asked: Asked, *, as_json: bool) -> None:
    """Print a view of each schedule that was asked for: `next` or `explain`.

    Raises:
        CliError: the input is wrong, and people read.
        typer.Exit: the input is wrong, or a part of it, and it has been told.
    """
    use_named_zone_data()

    def run() -> None:
        request = read_request(asked)
        look = _explanation if view == "explain" else _fires
        _each(request, look, as_json=as_json)

    _with_errors(run, as_json=as_json)


def show_difference(old: str, new: str, days: str, asked: Asked, *, as_json: bool) -> None:
    """Print the fires that only one of two schedules has.

    Raises:
        CliError: the input is wrong, and people read.
        typer.Exit: the input is wrong, and it has been told.
    """
    use_named_zone_data()
    _with_errors(lambda: _difference(old, new, days, asked, as_json=as_json), as_json=as_json)


def _with_errors(action: Callable[[], None], *, as_json: bool) -> None:
    try:
        action()
    except InputError as error:
        if as_json:
            show_json({"error": error.document()})
            raise typer.Exit(ExitCode.USAGE) from None
        raise CliError(_sentence(error), ExitCode.USAGE) from None


def _sentence(error: InputError) -> str:
    """Return the message, with a mark below the expression where it has a position."""
    if error.text is None or error.position is None or not error.text.isprintable():
        return error.message
    return f"{error.message}\n  {error.text}\n  {' ' * (error.position - 1)}^"


View = tuple[dict[str, Any], Callable[[], None]]
"""Of one schedule: the JSON form, and what prints it for people."""


def _each(request: Request, look: Callable[[Subject, Request], View], *, as_json: bool) -> None:
    failed = False
    for number, (name, subject) in enumerate(request.subjects):
        label = "" if request.single else printable(name) if name else f"document {number + 1}"
        if isinstance(subject, InputError):
            failed = True
            if as_json:
                _line({"name": name, "error": subject.document()})
            else:
                sys.stdout.flush()
                print(f"{label}: {_sentence(subject)}", file=sys.stderr)
            continue
        document, print_it = look(subject, request)
        if as_json and request.single:
            show_json(document)
        elif as_json:
            _line({"name": name} | document)
        else:
            if label:
                print(f"\n{label}:" if number else f"{label}:")
            print_it()
    if failed:
        raise typer.Exit(ExitCode.USAGE)


def _line(document: dict[str, Any]) -> None:
    print(json.dumps(document, ensure_ascii=False))


def _preview(subject: Subject, request: Request, count: int) -> Preview:
    if subject.schedule is None:
        return _NOTHING
    return preview(subject.schedule, request.after, request.until, request.count or count, zone=subject.zone)


def _fires(subject: Subject, request: Request) -> View:
    found = _preview(subject, request, FIRES)

    def print_it() -> None:
        if subject.schedule is not None:
            _show_preview(found, request.after)
        for note in subject.notes:
            print(note)

    return _preview_document(found) | _notes(subject.notes), print_it


def _explanation(subject: Subject, request: Request) -> View:
    from noonmark.core.explain import Explanation, explain  # noqa: PLC0415 - `next` does without

    words = Explanation("Once, as soon as the job is made.")
    if subject.schedule is not None:
        words = explain(subject.schedule, request.after, zone=subject.zone)
    found = _preview(subject, request, _EXPLAINED_FIRES)

    def print_it() -> None:
        print(words.sentence)
        for line in [*words.details, *subject.notes]:
            print(f"  - {line}")
        for line in words.warnings:
            print(f"  ! {line}")
        if found.fires:
            print()
            _show_preview(found, request.after)

    told = {"sentence": words.sentence, "details": words.details, "warnings": words.warnings}
    return told | _notes(subject.notes) | _preview_document(found), print_it


def _notes(notes: list[str]) -> dict[str, Any]:
    return {"notes": notes} if notes else {}


def _preview_document(found: Preview) -> dict[str, Any]:
    document: dict[str, Any] = {"fires": list(map(_fire_document, found.fires)), "complete": found.complete}
    if found.removed:
        document["removed"] = [
            {"local": removed.local.isoformat(), "note": removed.note} for removed in found.removed
        ]
    return document


def _fire_document(fire: Fire) -> dict[str, str | None]:
    return {"at": format_instant(fire.at), "local": fire.local.isoformat(), "note": fire.note}


def _show_preview(found: Preview, after: datetime) -> None:
    rows = [(_naive(fire), _fire_row(fire) | {"in": _distance(fire.at - after)}) for fire in found.fires]
    if found.removed:
        rows += [(removed.local, _removed_row(removed)) for removed in found.removed]
        rows.sort(key=lambda row: row[0])
    if rows:
        show_list([row for _, row in rows], _COLUMNS)
    if not found.fires:
        print("No fire comes any more." if found.complete else "No fire comes until then.")
    elif found.complete:
        print("No fire comes after these.")


def _naive(fire: Fire) -> datetime:
    return fire.local.replace(tzinfo=None)


def _fire_row(fire: Fire) -> dict[str, Any]:
    offset = fire.local.isoformat()[len(_naive(fire).isoformat()) :]
    local = f"{fire.local:%Y-%m-%d %H:%M:%S} {offset}"
    return {"at": fire.at, "local": local, "day": f"{fire.local:%a}", "note": fire.note}


def _removed_row(removed: Removed) -> dict[str, Any]:
    local = f"{removed.local:%Y-%m-%d %H:%M:%S}"
    return {"at": None, "local": local, "day": f"{removed.local:%a}", "in": None, "note": removed.note}


def _distance(length: timedelta) -> str:
    """Return how far away a fire is, in the unit that reads best: 3 d."""
    seconds = length.total_seconds()
    for unit, size in (("d", 86_400), ("h", 3600), ("min", 60)):
        if seconds >= 2 * size:
            return f"{seconds / size:.0f} {unit}"
    return f"{seconds:.0f} s"


def _difference(old: str, new: str, days: str, asked: Asked, *, as_json: bool) -> None:
    length = timedelta(days=read_count(days, "days", MAX_DAYS))
    reading = read_reading(asked)
    left, right = (read_side(given, side, reading, asked.name) for given, side in ((old, "A"), (new, "B")))
    assert left.schedule is not None
    assert right.schedule is not None
    zone = right.zone if asked.zone is None else reading.zone(asked.zone)
    found = diff(
        left.schedule, right.schedule, reading.after, reading.after + length, _DIFFERENCES, zone=zone
    )
    notes = list(dict.fromkeys([*left.notes, *right.notes]))
    until = format_instant(found.until)
    if as_json:
        added, removed = (list(map(_fire_document, fires)) for fires in (found.added, found.removed))
        document = {"added": added, "removed": removed, "until": until, "complete": found.complete}
        show_json(document | _notes(notes))
        return
    rows = [("+", fire) for fire in found.added] + [("-", fire) for fire in found.removed]
    if rows:
        rows.sort(key=lambda row: row[1].at)
        columns = (field("change", " "), *(column for column in _COLUMNS if column.title != "IN"))
        show_list([_fire_row(fire) | {"change": sign} for sign, fire in rows], columns)
    print(f"{len(found.added)} added, {len(found.removed)} removed until {until}")
    if not found.complete:
        print("That is as far as both were compared: there may be more; use fewer --days.")
    for note in notes:
        print(note)
