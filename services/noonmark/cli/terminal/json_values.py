"""Options whose value is JSON: given in place, or read from a file with `@FILE`, as curl takes it."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any, Final

from noonmark.cli.terminal.problems import CliError, ExitCode, cannot_read

JSON_FORMS: Final = "JSON, @FILE, or @- for stdin"
"""The forms of the value, for help texts."""

MOST_BYTES: Final = 1024 * 1024
"""Maximum size of a file; a payload in it may be indented, and is smaller when it is sent."""


def read_json_option(given: str | None, option: str) -> Any:
    """Return the value of a JSON option; None if it was not given.

    Args:
        given: JSON, `@FILE`, or `@-` for standard input.
        option: name of the option, for messages.

    Raises:
        CliError: the file cannot be read or is too large, or the text is not JSON.
    """
    if given is None:
        return None
    text, place = given, option
    if given.startswith("@"):
        text, place = _text_of(given[1:], option)
    try:
        return json.loads(text)
    except (ValueError, RecursionError) as error:
        raise CliError(f"{place} is not JSON: {error}{_hint(given, option)}", ExitCode.USAGE) from error


def is_json_file(file: str) -> bool:
    """Return whether a file is JSON by its name, so that it is not read as YAML."""
    return file.lower().endswith(".json")


def json_place(error: ValueError | RecursionError) -> tuple[int, int, str]:
    """Return line and column, both from 1, and reason of the error of a parser of JSON."""
    if isinstance(error, json.JSONDecodeError):
        return error.lineno, error.colno, error.msg
    return 1, 1, "it is nested too deeply" if isinstance(error, RecursionError) else str(error)


def reads_stdin(given: str | None) -> bool:
    """Return whether the value of a JSON option comes from standard input."""
    return given == "@-"


def _text_of(file: str, option: str) -> tuple[str, str]:
    """Return the text of a file, and how messages name it."""
    if not file:
        raise CliError(f"{option} @ names no file; write @FILE, or @- for stdin", ExitCode.USAGE)
    place = f"{option} {'standard input' if file == '-' else file}"
    try:
        if file == "-":
            data = sys.stdin.buffer.read(MOST_BYTES + 1)
        else:
            with Path(file).open("rb") as source:
                data = source.read(MOST_BYTES + 1)
        if len(data) > MOST_BYTES:
            raise CliError(f"{place} has more than {MOST_BYTES} bytes", ExitCode.USAGE)
        return data.decode("utf-8-sig"), place
    except (OSError, UnicodeDecodeError) as error:
        raise cannot_read(place, error) from error


def _hint(given: str, option: str) -> str:
    """Return how to read a file, if the value is the name of one."""
    try:
        names_file = not given.startswith("@") and Path(given).is_file()
    except (OSError, ValueError):  # not a name that a file can have
        return ""
    return f"; to read the file, write {option} @{given}" if names_file else ""
