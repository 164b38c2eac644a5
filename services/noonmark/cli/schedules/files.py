"""Files of `noonmark schedule`: job documents and calendars."""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final, NamedTuple

from noonmark.cli.schedules.problems import InputError
from noonmark.cli.terminal.json_values import is_json_file, json_place
from noonmark.cli.terminal.problems import cannot_read
from noonmark.cli.terminal.yaml_text import loader, yaml_problem
from noonmark.core.calendars.calendar import Calendar, CalendarError
from noonmark.core.instants import shortened

MAX_FILE_BYTES: Final = 64 * 1024 * 1024
_ICS_YEARS: Final = 10


class Documents(NamedTuple):
    """Contents of a file.

    Attributes:
        items: documents; an error in place of each invalid one.
        listed: they are the items of one list, not separate lines or documents.
    """

    items: list[Any | InputError]
    listed: bool


def read_calendars(given: Sequence[str]) -> dict[str, Calendar]:
    """Read `NAME=FILE` options: calendars as JSON, YAML or iCalendar.

    Raises:
        InputError: one cannot be read.
    """
    found: dict[str, Calendar] = {}
    for item in given:
        name, equals, file = item.partition("=")
        if not (name and equals and file):
            raise InputError("calendar", f"--calendar is {shortened(item)}; expected NAME=FILE")
        text = _text_of(file, "calendar")
        try:
            if text.lstrip("\ufeff \r\n").upper().startswith("BEGIN:VCALENDAR"):
                found[name] = _from_ics(text, file)
            else:
                (body,) = _documents(text, file)
                found[name] = Calendar.parse(body)
        except InputError as error:
            raise InputError("calendar", error.message) from None
        except CalendarError as error:
            raise InputError("calendar", f"{file}: {error.message}") from None
        except ValueError:
            raise InputError("calendar", f"{file} must contain one calendar object") from None
    return found


def _from_ics(text: str, file: str) -> Calendar:
    from noonmark.cli.schedules.ics import IcsError, read_ics  # noqa: PLC0415 - for the rare form only

    try:
        return read_ics(text.encode(), today=datetime.now(UTC).date(), years=_ICS_YEARS).calendar
    except IcsError as error:
        raise InputError("calendar", f"{file} {error}") from None


def read_file(file: str) -> Documents:
    """Read the documents of a file: YAML, JSON, a list, or JSON lines.

    Raises:
        InputError: it cannot be read, has another form, or is empty.
    """
    documents = _documents(_text_of(file, "file"), file)
    listed = len(documents) == 1 and isinstance(documents[0], list)
    if listed:
        documents = documents[0]
    if not documents:
        raise InputError("file", f"{_label(file)} contains no document")
    return Documents(documents, listed)


def _label(file: str) -> str:
    return "standard input" if file == "-" else file


def _text_of(file: str, option: str) -> str:
    try:
        if file == "-":
            return sys.stdin.read(MAX_FILE_BYTES)
        with Path(file).open(encoding="utf-8") as source:
            return source.read(MAX_FILE_BYTES)
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(option, str(cannot_read(_label(file), error))) from None


def _documents(text: str, file: str) -> list[Any]:
    text = text.removeprefix("\ufeff")
    try:
        return [json.loads(text)]
    except RecursionError:
        raise InputError("file", f"{_label(file)} is nested too deeply") from None
    except ValueError as error:
        broken = error
    if (found := _json_lines(text, file)) is not None:
        return found
    if is_json_file(file) and text.strip():
        line, column, reason = json_place(broken)
        raise InputError("file", f"{_label(file)} is not JSON: line {line}, column {column}: {reason}")
    return _yaml(text, file)


def _json_lines(text: str, file: str) -> list[Any] | None:
    """Return a document or an error for each line; None for a file without JSON lines.

    A file with invalid lines counts if all lines begin like objects, or half of them are objects.
    """
    # Split at line feeds only: `splitlines` also splits at characters that JSON strings can contain.
    lines = [(number, line) for number, line in enumerate(text.split("\n"), start=1) if line.strip()]
    if len(lines) < 2 or any(line.rstrip() == "---" for _, line in lines):
        return None
    found = [_json_line(line, number, file) for number, line in lines]
    whole = sum(
        isinstance(item, dict) and line[0] == "{" for item, (_, line) in zip(found, lines, strict=True)
    )
    begun = all(line.lstrip().startswith("{") for _, line in lines)
    if begun and isinstance(found[0], InputError) and not whole:
        raise found[0]
    return found if begun or 2 * whole >= len(lines) else None


def _json_line(line: str, number: int, file: str) -> Any:
    try:
        return json.loads(line)
    except json.JSONDecodeError as error:
        reason = f"{error.msg} (character {error.pos + 1})"
    except (ValueError, RecursionError) as error:
        reason = str(error)
    return InputError("file", f"{_label(file)}: line {number} is not JSON: {reason}")


def _yaml(text: str, file: str) -> list[Any]:
    """Return the documents of a stream; the last item is an error if the stream breaks off."""
    import yaml  # noqa: PLC0415 - takes a while, for this form only

    found: list[Any] = []
    try:
        for document in yaml.load_all(text, loader()):
            if document is not None:
                found.append(document)  # noqa: PERF401 - those before an error are kept
    except (yaml.YAMLError, RecursionError, ValueError) as error:
        broken = InputError("file", f"{_label(file)} is neither JSON nor YAML: {yaml_problem(error)}")
        if not found:
            raise broken from None
        found.append(broken)
    return found
