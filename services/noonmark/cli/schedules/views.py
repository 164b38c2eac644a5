"""Output of `noonmark schedule`: JSON, or tables and text."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from datetime import datetime, timedelta
from typing import Any, Final

import typer

from noonmark.cli.connections.context import use_named_zone_data
from noonmark.cli.schedules.input import Subject
from noonmark.cli.schedules.problems import InputError
from noonmark.cli.schedules.request import Request, ScheduleOptions, read_request, unused_calendars
from noonmark.cli.terminal.output import Column, field, local_text, printable, show_json, show_list
from noonmark.cli.terminal.problems import CliError, ExitCode
from noonmark.core.instants import format_instant
from noonmark.core.schedules.preview import Fire, Preview, Removed, preview

_NOTHING: Final = Preview([], complete=True, removed=[])

_UNITS: Final = (("y", 365.25 * 86_400), ("d", 86_400), ("h", 3600), ("min", 60))
_WHEN: Final = (field("at", "UTC"), field("local"), field("day"))
_NOTE: Final = Column("NOTE", lambda row: row["note"] or "", elastic=True)
COLUMNS: Final = (*_WHEN, _NOTE)
"""Columns of a fire, without its distance."""


def show(view: str, options: ScheduleOptions, *, as_json: bool) -> None:
    """Print a view of each schedule.

    Args:
        view: `next` or `explain`.
        options: the options.
        as_json: print JSON.

    Raises:
        CliError: the input is invalid, without --json.
        typer.Exit: the input, or part of it, is invalid, and the error is printed.
    """
    use_named_zone_data()

    def run() -> None:
        request = read_request(options)
        render = _explanation if view == "explain" else _fires
        _each(request, render, as_json=as_json)

    with_errors(run, as_json=as_json)


def with_errors(action: Callable[[], None], *, as_json: bool) -> None:
    """Run it; print input errors as text or JSON.

    Raises:
        CliError: the input is invalid, without --json.
        typer.Exit: the input is invalid, and the error is printed.
    """
    try:
        action()
    except InputError as error:
        if as_json:
            show_json({"error": error.document()})
            raise typer.Exit(ExitCode.USAGE) from None
        raise CliError(_sentence(error), ExitCode.USAGE) from None


def _sentence(error: InputError) -> str:
    """Return the message, with a mark below the expression if the error has a position."""
    if error.text is None or error.position is None or not error.text.isprintable():
        return error.message
    return f"{error.message}\n  {error.text}\n  {' ' * (error.position - 1)}^"


View = tuple[dict[str, Any], Callable[[], None]]
"""The JSON form of one schedule, and the function that prints it as text."""


def _each(request: Request, render: Callable[[Subject, Request], View], *, as_json: bool) -> None:
    failed, read = False, list[Subject]()
    for number, (name, subject) in enumerate(request.subjects):
        label = "" if request.single else printable(name) if name else f"document {number + 1}"
        if isinstance(subject, InputError):
            failed = True
            if as_json:
                _line({"name": name, "error": subject.document()})
            else:
                _print_note(f"{label}: {_sentence(subject)}", apart=bool(number))
            continue
        read.append(subject)
        document, print_it = render(subject, request)
        if as_json and request.single:
            show_json(document)
        elif as_json:
            _line({"name": name} | document)
        else:
            if label:
                print(f"\n{label}:" if number else f"{label}:")
            print_it()
    # An invalid document may be the reason why a calendar is unused.
    unused = unused_calendars(request.calendars, read) if not failed else []
    for hint in [*request.hints, *unused]:
        _print_note(f"note: {hint}", apart=not as_json)
    if failed:
        raise typer.Exit(ExitCode.USAGE)


def _print_note(text: str, *, apart: bool) -> None:
    """Print on stderr, after earlier output and, on one terminal, separated from it."""
    sys.stdout.flush()
    print(f"\n{text}" if apart else text, file=sys.stderr, flush=True)


def _line(document: dict[str, Any]) -> None:
    print(json.dumps(document, ensure_ascii=False))


def _preview(subject: Subject, request: Request) -> Preview:
    if subject.schedule is None:
        return _NOTHING
    return preview(subject.schedule, request.after, request.until, request.count, zone=subject.zone)


def _fires(subject: Subject, request: Request) -> View:
    found = _preview(subject, request)

    def print_it() -> None:
        if subject.schedule is not None:
            _show_preview(found, request)
        for note in subject.notes:
            print(note)

    return _preview_document(found) | _notes(subject.notes), print_it


def _explanation(subject: Subject, request: Request) -> View:
    from noonmark.core.explanations.schedule import Explanation, explain  # noqa: PLC0415 - `next` does without

    words = Explanation("Once, as soon as the job is created.")
    if subject.schedule is not None:
        words = explain(subject.schedule, request.after, zone=subject.zone)
    found = _preview(subject, request)

    def print_it() -> None:
        print(words.sentence)
        for line in [*words.details, *subject.notes]:
            print(f"  - {line}")
        for line in words.warnings:
            print(f"  ! {line}")
        if found.fires:
            print()
            _show_preview(found, request)

    shown = {"sentence": words.sentence, "details": words.details, "warnings": words.warnings}
    return shown | _notes(subject.notes) | _preview_document(found), print_it


def _notes(notes: list[str]) -> dict[str, Any]:
    return {"notes": notes} if notes else {}


def _preview_document(found: Preview) -> dict[str, Any]:
    document: dict[str, Any] = {"fires": list(map(fire_document, found.fires)), "complete": found.complete}
    if found.removed:
        document["removed"] = [
            {"local": removed.local.isoformat(), "note": removed.note} for removed in found.removed
        ]
    return document


def fire_document(fire: Fire) -> dict[str, str | None]:
    """Return the JSON form of a fire."""
    return {"at": format_instant(fire.at), "local": fire.local.isoformat(), "note": fire.note}


def _show_preview(found: Preview, request: Request) -> None:
    rows = [
        (_naive(fire), fire_row(fire) | {"in": _distance(fire.at - request.after)}) for fire in found.fires
    ]
    if found.removed:
        rows += [(removed.local, _removed_row(removed)) for removed in found.removed]
        rows.sort(key=lambda row: row[0])
    if rows:
        # "IN" counts from now; another start needs another title.
        distance = field("in", "FROM --after" if request.since else "IN", numeric=True)
        show_list([row for _, row in rows], (*_WHEN, distance, _NOTE))
    if not found.fires:
        print("No more fires." if found.complete else "No fires until then.")
    elif found.complete:
        print("No fires after these.")


def _naive(fire: Fire) -> datetime:
    return fire.local.replace(tzinfo=None)


def fire_row(fire: Fire) -> dict[str, Any]:
    """Return a fire as a row of `COLUMNS`."""
    return {"at": fire.at, "local": local_text(fire.local), "day": f"{fire.local:%a}", "note": fire.note}


def _removed_row(removed: Removed) -> dict[str, Any]:
    local = f"{removed.local:%Y-%m-%d %H:%M:%S}"
    return {"at": None, "local": local, "day": f"{removed.local:%a}", "in": None, "note": removed.note}


def _distance(length: timedelta) -> str:
    """Return the distance of a fire in a readable unit: 3 d."""
    seconds = length.total_seconds()
    for unit, size in _UNITS:
        if seconds >= 2 * size:
            return f"{seconds / size:.0f} {unit}"
    return f"{seconds:.0f} s"
