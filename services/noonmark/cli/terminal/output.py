"""Output of results: tables on terminals, plain columns on pipes, JSON for scripts."""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID

from noonmark.core.visible_text import INVISIBLE

Row = Mapping[str, Any]

_ELASTIC_WIDTH = 16
_GAP = 2
"""Spaces between two columns."""

STATE_COLORS = {
    "succeeded": "green", "active": "green", "completed": "green", "alive": "green",
    "running": "cyan", "queued": "cyan", "retrying": "yellow", "waiting": "yellow", "paused": "yellow",
    "cancelling": "yellow", "skipped": "dim", "cancelled": "dim", "discarded": "dim", "left": "dim",
    "undecided": "dim",
    "dead": "red", "unknown": "red", "broken": "red", "lapsed": "red", "failed": "red", "lost": "red",
    "timed_out": "red", "rejected": "red", "accepted": "green", "duplicate": "yellow",
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Column:
    """One column of a listing.

    Attributes:
        title: the column's head.
        cell: returns the text for a row.
        wide: shown only with `--output wide`.
        numeric: aligned to the right.
        elastic: wraps on a narrow terminal, so that other columns are not cut.
        cut: shortened to fit the terminal, so that each row is one line; not shortened on a pipe.
        varies: a wide column that is also shown if rows differ in it.
        key: kept on a narrow terminal, like the first column; others are left out from the right.
        least: the fewest characters of an elastic column or one that can be cut.
    """

    title: str
    cell: Callable[[Row], str]
    wide: bool = False
    numeric: bool = False
    elastic: bool = False
    cut: bool = False
    varies: bool = False
    key: bool = False
    least: int = _ELASTIC_WIDTH


def field(
    name: str,
    title: str = "",
    *,
    wide: bool = False,
    numeric: bool = False,
    elastic: bool = False,
    cut: bool = False,
    varies: bool = False,
    key: bool = False,
) -> Column:
    """Return a column that shows one field of the row."""
    return Column(
        title or name.upper(), lambda row: text(row.get(name)), wide, numeric, elastic, cut, varies, key
    )


def instant_field(name: str, title: str, *, wide: bool = False) -> Column:
    """Return a column for an instant that the API returns as text."""

    def cell(row: Mapping[str, Any]) -> str:
        at = row.get(name)
        return text(datetime.fromisoformat(at) if at else None)

    return Column(title, cell, wide)


def is_terminal() -> bool:
    """Return whether stdout is a terminal."""
    return sys.stdout.isatty()


def show_list(
    rows: Sequence[Row], columns: Sequence[Column], *, wide: bool = False, footer: str = "", empty: str = ""
) -> None:
    """Print a listing: a table on a terminal; aligned columns under one head line on a pipe.

    Args:
        rows: the rows.
        columns: the columns; a cell of several lines is one line on a pipe.
        wide: show wide columns, too.
        footer: printed below the table, on a terminal.
        empty: printed if there are no rows: what was not found, and how such rows come about. On a pipe, the
            head line stays alone on stdout.
    """
    if not rows and empty and is_terminal():
        print(empty)
        return
    shown = [
        column
        for column in columns
        if wide or not column.wide or (column.varies and len({column.cell(row) for row in rows}) > 1)
    ]
    cells = [[column.cell(row) for column in shown] for row in rows]
    if is_terminal():
        _rich_table(shown, cells, footer)
    else:
        lines = [[cell.replace("\n", ". ") for cell in row] for row in cells]
        print(plain_table([column.title for column in shown], lines))
        if not rows and empty:
            print(empty, file=sys.stderr)


def show_fields(fields: Mapping[str, Any], *, title: str = "", precise: bool = False) -> None:
    """Print an object as names and values; `precise` shows instants with milliseconds."""
    if title and is_terminal():
        print(title)
    width = max(map(len, fields), default=0)
    for name, value in fields.items():
        shown = _full(value, precise=precise)
        head, *rest = shown.splitlines() or [""]
        print(f"{name:<{width}}  {head}".rstrip())
        for line in rest:
            print(" " * (width + 2) + line)


def _full(value: object, *, precise: bool) -> str:
    """Return a value in full, nested values as indented JSON."""
    if isinstance(value, dict | list) and value:
        document = json.dumps(value, indent=2, default=_encode, ensure_ascii=False)
        return "\n".join(map(printable, document.splitlines()))
    return precise_instant(value) if precise and isinstance(value, datetime) else text(value)


def show_json(value: object) -> None:
    """Print one JSON document."""
    indent = 2 if is_terminal() else None
    print(_json_text(value, indent))


def as_json_line(value: object) -> str:
    """Return a value as JSON on one line, for streams of documents."""
    return _json_text(value, None)


def _json_text(value: object, indent: int | None) -> str:
    """Return JSON with invisible characters, which occur only inside strings, as escapes."""
    return INVISIBLE.sub(_escape, json.dumps(value, indent=indent, default=_encode, ensure_ascii=False))


def _escape(found: re.Match[str]) -> str:
    """Return the JSON escape of a character."""
    return json.dumps(found[0])[1:-1]


def plain_table(heads: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Return columns aligned by spaces, with two between them and nothing cut."""
    lines = [list(heads), *map(list, rows)]
    widths = [max(len(line[index]) for line in lines) for index in range(len(heads))]
    return "\n".join(
        "  ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)).rstrip()
        for line in lines
    )


def text(value: object) -> str:
    """Return a value as one line of text; a missing value is a dash."""
    if value is None or value == "":
        return "-"
    if isinstance(value, datetime):
        return instant(value)
    if isinstance(value, timedelta):
        return duration(value.total_seconds())
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, dict | list):
        return json.dumps(value, default=_encode)
    return printable(str(value))


def printable(line: str) -> str:
    """Return text on one line without control characters: job names and errors are untrusted.

    Invisible characters, and those that change the direction of text, are shown as escapes of JSON.
    """
    shown = INVISIBLE.sub(_escape, line)
    return shown if shown.isprintable() else "".join(char if char.isprintable() else " " for char in shown)


def instant(at: datetime) -> str:
    """Return an instant in UTC with seconds."""
    return at.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def local_text(at: datetime) -> str:
    """Return a local time with seconds and its offset from UTC."""
    naive = at.replace(tzinfo=None)
    return f"{naive:%Y-%m-%d %H:%M:%S} {at.isoformat()[len(naive.isoformat()) :]}"


def precise_instant(at: datetime | None) -> str:
    """Return an instant in UTC with milliseconds; None is a dash."""
    return at.astimezone(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z") if at else "-"


def duration(seconds: float | None) -> str:
    """Return a duration in a readable unit."""
    if seconds is None:
        return "-"
    size = abs(seconds)
    if size < 1:
        return f"{seconds * 1000:.0f} ms"
    if size < 120:
        return f"{seconds:.1f} s"
    if size < 7200:
        return f"{seconds / 60:.1f} min"
    return f"{seconds / 3600:.1f} h" if size < 172_800 else f"{seconds / 86_400:.1f} d"


def counted(number: int, what: str) -> str:
    """Return a number with its noun: `1 run`, `2 runs`."""
    return f"{number:,} {what}{'' if number == 1 else 's'}"


def verdict(problems: int) -> str:
    """Return the last line of a check."""
    return f"{counted(problems, 'problem')} found" if problems else "no problems found"


def shortened(value: object, limit: int) -> str:
    """Return text of at most `limit` characters."""
    line = text(value)
    return line if len(line) <= limit else line[: limit - 1] + "…"


def _rich_table(columns: Sequence[Column], rows: Sequence[Sequence[str]], footer: str) -> None:
    from rich.console import Console  # noqa: PLC0415 - a listing on a pipe does without
    from rich.table import Table  # noqa: PLC0415
    from rich.text import Text  # noqa: PLC0415

    console = Console(highlight=False)
    kept = narrowed(columns, rows, console.width)
    left_out = [column.title for index, column in enumerate(columns) if index not in kept]
    columns, rows = [columns[index] for index in kept], [[row[index] for index in kept] for row in rows]
    rows = fitted(columns, rows, console.width)
    table = Table(box=None, pad_edge=False, padding=(0, _GAP, 0, 0), header_style="bold")
    least = [_least(*pair) for pair in zip(columns, _needs(columns, rows), strict=True)]
    for column, minimum in zip(columns, least, strict=True):
        table.add_column(
            column.title,
            justify="right" if column.numeric else "left",
            overflow="fold",
            no_wrap=not column.elastic,
            min_width=minimum if column.elastic else None,
        )
    for row in rows:
        table.add_row(*(Text(cell, style=STATE_COLORS.get(cell, "")) for cell in row))
    # The terminal may wrap lines; ids must not be cut.
    width = max(console.width, sum(least) + _GAP * (len(least) - 1))
    Console(highlight=False, width=width).print(table)
    if left_out:
        console.print(Text(f"not shown for lack of width: {', '.join(left_out)}", style="dim"))
    if footer:
        # In one piece, whatever the width: it has a token to copy.
        console.print(Text(footer, style="dim"), soft_wrap=True)


def narrowed(columns: Sequence[Column], rows: Sequence[Sequence[str]], width: int) -> list[int]:
    """Return the indexes of the columns that fit a terminal, at least the first and the key columns."""
    needs = [_least(*pair) for pair in zip(columns, _needs(columns, rows), strict=True)]
    kept = list(range(len(columns)))
    for index in reversed(range(1, len(columns))):
        if sum(needs[one] for one in kept) + _GAP * (len(kept) - 1) <= width:
            break
        if not columns[index].key:
            kept.remove(index)
    return kept


def _needs(columns: Sequence[Column], rows: Sequence[Sequence[str]]) -> list[int]:
    """Return the width of each column's longest line."""
    from rich.cells import cell_len  # noqa: PLC0415

    return [
        max([len(column.title), *(cell_len(line) for row in rows for line in row[index].split("\n"))])
        for index, column in enumerate(columns)
    ]


def _least(column: Column, need: int) -> int:
    """Return the fewest characters that a column can have."""
    return min(need, max(column.least, len(column.title))) if column.elastic or column.cut else need


def fitted(columns: Sequence[Column], rows: Sequence[Sequence[str]], width: int) -> Sequence[Sequence[str]]:
    """Shorten the columns that can be cut until rows fit the terminal, longest texts first.

    Other columns are not shortened, and a cut column keeps at least a few characters.
    """
    from rich.cells import cell_len, set_cell_size  # noqa: PLC0415

    needs = _needs(columns, rows)
    cuts = sorted((needs[index], index) for index, column in enumerate(columns) if column.cut)
    left = (
        width - sum(need for index, need in enumerate(needs) if not columns[index].cut) - _GAP * len(columns)
    )
    for done, (need, index) in enumerate(cuts):
        needs[index] = min(need, max(left // (len(cuts) - done), columns[index].least))
        left -= needs[index]
    return [
        [
            set_cell_size(cell, need - 1).rstrip() + "…" if column.cut and cell_len(cell) > need else cell
            for column, cell, need in zip(columns, row, needs, strict=True)
        ]
        for row in rows
    ]


def _encode(value: object) -> object:
    if isinstance(value, datetime):
        return value.astimezone(UTC).isoformat().replace("+00:00", "Z")
    if isinstance(value, UUID):
        return str(value)
    if isinstance(value, bytes):
        return value.decode("utf-8", errors="replace")
    raise TypeError(f"{type(value).__name__} has no JSON form here")
