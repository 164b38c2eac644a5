"""Output of `noonmark schedule diff`: fires and fields that only one of two schedules has."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta
from typing import Any, Final

from noonmark.cli.connections.context import use_named_zone_data
from noonmark.cli.schedules.input import Subject, read_count
from noonmark.cli.schedules.request import ScheduleOptions, read_reading, read_side, unused_calendars
from noonmark.cli.schedules.views import COLUMNS, fire_document, fire_row, with_errors
from noonmark.cli.terminal.output import field, show_json, show_list
from noonmark.core.instants import format_instant
from noonmark.core.schedules.preview import Difference, diff, differing_fields

MAX_DAYS: Final = 3660
ROWS: Final = 20
"""Default number of rows for each side, without --json."""

_DIFFERENCES: Final = 10_000


def show(
    old: str, new: str, days: str, limit: str | None, options: ScheduleOptions, *, as_json: bool
) -> None:
    """Print the changes if one schedule replaces another.

    Args:
        old: cron expression, schedule as JSON, or @FILE.
        new: the replacement, in the same form.
        days: number of days to compare.
        limit: maximum number of fires for each side.
        options: the options that both sides share.
        as_json: print JSON.

    Raises:
        CliError: the input is invalid, without --json.
        typer.Exit: the input is invalid, and the error is printed.
    """
    use_named_zone_data()
    with_errors(lambda: _difference(old, new, days, limit, options, as_json=as_json), as_json=as_json)


def _difference(
    old: str, new: str, days: str, limit: str | None, options: ScheduleOptions, *, as_json: bool
) -> None:
    length = timedelta(days=read_count(days, "days", MAX_DAYS))
    most = read_count(limit, "limit", _DIFFERENCES) if limit is not None else None
    reading = read_reading(options)
    left, right = (read_side(given, side, reading, options.name) for given, side in ((old, "A"), (new, "B")))
    assert left.schedule is not None
    assert right.schedule is not None
    cap = most if most is not None and as_json else _DIFFERENCES
    clocks = (_clock(left, right), _clock(right, left))
    found = diff(left.schedule, right.schedule, reading.after, reading.after + length, cap, zones=clocks)
    fields = differing_fields(left.schedule, right.schedule)
    if left.unknown != right.unknown and "calendars" not in fields:
        fields.append("calendars")
    notes = [*left.notes, *right.notes, *_about_zones(left, right)]
    notes = list(dict.fromkeys([*notes, *unused_calendars(reading.calendars, (left, right))]))
    if as_json:
        show_json(_document(found, fields) | ({"notes": notes} if notes else {}))
        return
    print(_summary(found, fields))
    _show_rows(found, ROWS if most is None else most)
    for note in notes:
        print(note)


def _clock(side: Subject, other: Subject) -> Any:
    """Return the time zone for the rows of a side: its own, if it has one."""
    return side.zone if side.reads_clock or side.names_zone else other.zone


def _about_zones(left: Subject, right: Subject) -> list[str]:
    """Return a note on the time zones of the rows, if the two sides differ."""
    if not (left.reads_clock and right.reads_clock) or left.zone.name == right.zone.name:
        return []
    note = f"A uses {left.zone.name}, B uses {right.zone.name}: each row shows local time of its side."
    unnamed = [side for side, subject in (("A", left), ("B", right)) if not subject.names_zone]
    return [note + "".join(f" {side} names no zone; set it with --zone." for side in unnamed)]


def _document(found: Difference, fields: Sequence[str]) -> dict[str, Any]:
    added, removed = (list(map(fire_document, fires)) for fires in (found.added, found.removed))
    until = format_instant(found.until)
    return {
        "added": added,
        "removed": removed,
        "until": until,
        "complete": found.complete,
        "fields": list(fields),
    }


def _summary(found: Difference, fields: Sequence[str]) -> str:
    added, removed = len(found.added), len(found.removed)
    lines = [f"{added} added, {removed} removed until {format_instant(found.until)}"]
    if not found.complete:
        lines.append("The comparison stopped there; there may be more differences. Use fewer --days.")
    if fields:
        head = "Different fields" if added or removed else "Same fires, but different fields"
        lines.append(f"{head}: {', '.join(fields)}")
    return "\n".join(lines)


def _show_rows(found: Difference, most: int) -> None:
    rows = [("+", fire) for fire in found.added[:most]] + [("-", fire) for fire in found.removed[:most]]
    if not rows:
        return
    rows.sort(key=lambda row: row[1].at)
    print()
    show_list([fire_row(fire) | {"change": sign} for sign, fire in rows], (field("change", " "), *COLUMNS))
    added, removed = (max(len(fires) - most, 0) for fires in (found.added, found.removed))
    if added or removed:
        print(f"Not shown: {added} more added, {removed} more removed; use --limit N.")
