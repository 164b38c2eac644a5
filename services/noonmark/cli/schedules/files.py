"""Files that `noonmark schedule` reads: job documents, and what calendars hold."""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final, NamedTuple

from noonmark.cli.schedules.problems import InputError
from noonmark.cli.terminal.yaml_text import loader
from noonmark.core.calendars.calendar import Calendar, CalendarError
from noonmark.core.instants import shortened

MAX_FILE_BYTES: Final = 64 * 1024 * 1024
_ICS_YEARS: Final = 10


class Documents(NamedTuple):
    """What a file holds.

    Attributes:
        items: documents, and in place of each that cannot be read what is wrong with it.
        listed: they are the items of one list, not lines or documents of their own.
    """

    items: list[Any | InputError]
    listed: bool


def read_calendars(given: Sequence[str]) -> dict[str, Calendar]:
    """Read `NAME=FILE` options: the calendars' bodies as JSON, YAML or iCalendar.

    Raises:
        InputError: one cannot be read.
    """
    found: dict[str, Calendar] = {}
    for item in given:
        name, equals, file = item.partition("=")
        if not (name and equals and file):
            raise InputError("calendar", f"--calendar is {shortened(item)}; allowed: NAME=FILE")
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
            raise InputError("calendar", f"{file} holds no single calendar: one object is needed") from None
    return found


def _from_ics(text: str, file: str) -> Calendar:
    from noonmark.cli.schedules.ics import IcsError, read_ics  # noqa: PLC0415 - for the rare form only

    try:
        return read_ics(text.encode(), today=datetime.now(UTC).date(), years=_ICS_YEARS).calendar
    except IcsError as error:
        raise InputError("calendar", f"{file} {error}") from None


def read_file(file: str) -> Documents:
    """Read the documents of a file: YAML, a JSON document, a list of them, or one per line.

    Raises:
        InputError: it cannot be read, is none of these, or is empty.
    """
    documents = _documents(_text_of(file, "file"), file)
    listed = len(documents) == 1 and isinstance(documents[0], list)
    if listed:
        documents = documents[0]
    if not documents:
        raise InputError("file", f"{_place(file)} holds no document")
    return Documents(documents, listed)


def _place(file: str) -> str:
    return "standard input" if file == "-" else file


def _text_of(file: str, option: str) -> str:
    try:
        if file == "-":
            return sys.stdin.read(MAX_FILE_BYTES)
        with Path(file).open(encoding="utf-8") as source:
            return source.read(MAX_FILE_BYTES)
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(option, f"{_place(file)} cannot be read: {error}") from None


def _documents(text: str, file: str) -> list[Any]:
    try:
        return [json.loads(text)]
    except RecursionError:
        raise InputError("file", f"{_place(file)} is nested too deeply to be read") from None
    except ValueError:
        pass
    return _json_lines(text, file) or _yaml(text, file)


def _json_lines(text: str, file: str) -> list[Any] | None:
    """Return one document of each line, or what is wrong with it; None for a file that is no JSON lines.

    It is, also where some lines are broken, when all lines begin as objects do, or half of them are some.
    """
    # At line feeds only: JSON texts may hold other characters that `splitlines` takes for the end of a line.
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
        told = f"{error.msg} (character {error.pos + 1})"
    except (ValueError, RecursionError) as error:
        told = str(error)
    return InputError("file", f"{_place(file)}: line {number} is not JSON: {told}")


def _yaml(text: str, file: str) -> list[Any]:
    """Return the documents of a stream; the last is what is wrong with it where it ends in a broken one."""
    import yaml  # noqa: PLC0415 - takes a while, for this form only

    found: list[Any] = []
    try:
        for document in yaml.load_all(text, loader()):
            if document is not None:
                found.append(document)  # noqa: PERF401 - those before an error are kept
    except (yaml.YAMLError, RecursionError, ValueError) as error:
        told = " ".join(str(error).split()) or "nested too deeply"
        hint = "; an expression that starts with * stands in quotes" if "alias" in told else ""
        broken = InputError("file", f"{_place(file)} is neither JSON nor YAML: {told}{hint}")
        if not found:
            raise broken from None
        found.append(broken)
    return found
