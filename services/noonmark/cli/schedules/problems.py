"""Errors of `noonmark schedule`, with the names that the user typed."""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Mapping
from typing import Final

from noonmark.core.schedule_error import ScheduleError
from noonmark.core.schedules.documents import advice_on

_FIELD_OF: Final = {"timezone": "zone", "exclude": "exclude_calendar", "include": "include_calendar"}
"""Fields of documents whose options have other names."""

_LEADING: Final = re.compile(r"(?:every|at|start|end|dtstart|after|until|count|days)(?= (?:is |'|\d))")
_AS_OPTIONS: Final = (
    (re.compile(r"the field 'timezone'"), "--zone"),
    (re.compile(r"in 'timezone'"), "with --zone"),
    (re.compile(r"the schedule's timezone\b"), "--zone"),
    (re.compile(r"^timezone\b"), "--zone"),
    (re.compile(r"the field dtstart"), "--dtstart"),
    (re.compile(r"(?=write a line such as DTSTART)"), "give --dtstart, or "),
    (re.compile(r"give the job a name"), "give one with --name"),
)
_UNDERSCORED: Final = re.compile(
    r"\b(seconds_field|dst_gap|dst_overlap|max_runs|on_holiday)\b"
    r"(?: '(\w+)'(?= (?:reads|means|is not allowed)|\)))?"
)

_WRITE: Final = re.compile(r"\bwrite (?=\{)")
_FILE: Final = re.compile(r".+\.(?:ya?ml|json|jsonl|ndjson)", re.IGNORECASE)


class InputError(Exception):
    """The input is invalid.

    Attributes:
        field: the option or the part of the expression; None if several are involved.
        position: 1-based position of the error in `text`, or None.
        message: a sentence.
        text: the expression that `position` refers to, if any.
        pointer: JSON pointer into the job document, for documents.
    """

    def __init__(
        self,
        field: str | None,
        message: str,
        position: int | None = None,
        text: str | None = None,
        pointer: str | None = None,
    ) -> None:
        """Store the parts of the error."""
        super().__init__(message)
        self.field = field
        self.position = position
        self.message = message
        self.text = text
        self.pointer = pointer

    def document(self) -> dict[str, object]:
        """Return the JSON form, the value of `error`."""
        found: dict[str, object] = {"field": self.field, "position": self.position, "message": self.message}
        return found if self.pointer is None else found | {"pointer": self.pointer}


def of_options(error: ScheduleError, text: object) -> InputError:
    """Return the error of options; `text` is the expression."""
    named = _named(error)
    message = in_option_words(error.message)
    return InputError(_FIELD_OF.get(named or "", named), message, error.position, _marked(error, text))


def of_document(error: ScheduleError, text: object, pointer: str) -> InputError:
    """Return the error of a document; `text` is the value at the pointer."""
    return InputError(_named(error), error.message, error.position, _marked(error, text), pointer)


def in_option_words(message: str) -> str:
    """Return a message with the names of options instead of fields: --zone for timezone."""
    # What it advises to write is translated as a document: its values are not words of the message.
    found, begun = [], 0
    for advice in _WRITE.finditer(message):
        try:
            document, length = json.JSONDecoder().raw_decode(message[advice.end() :])
        except ValueError:
            continue
        found += [_in_option_words(message[begun : advice.end()]), _as_options(document)]
        begun = advice.end() + length
    return "".join([*found, _in_option_words(message[begun:])])


def _in_option_words(message: str) -> str:
    message = (
        _LEADING.sub(lambda found: f"--{found[0]}", message, count=1) if _LEADING.match(message) else message
    )
    for pattern, option in _AS_OPTIONS:
        message = pattern.sub(option, message)
    return _UNDERSCORED.sub(
        lambda found: f"--{found[1].replace('_', '-')}" + (f" {found[2]}" if found[2] else ""), message
    )


def _as_options(document: Mapping[str, object]) -> str:
    """Return the options of a schedule, as they are typed."""
    names = {key: _FIELD_OF.get(key, key).replace("_", "-") for key in document}
    return " ".join(f"--{names[key]} {shlex.quote(str(value))}" for key, value in document.items())


def unexpected(words: list[str], cron: str | None) -> InputError:
    """Return the error of arguments where only options are allowed."""
    if cron is not None:
        whole = " ".join([cron, *words])
        advice = f"put the whole expression in quotes: --cron {_quoted(whole)}"
    elif _FILE.fullmatch(words[0]):
        advice = f"write -f {_quoted(words[0])}"
    elif words[0].lstrip()[:1] in {"{", "["}:
        advice = "use options for a schedule, or -f FILE for documents"
    else:
        whole = " ".join(words)
        found = advice_on(whole)
        advice = f"write {_as_options(found.document) if found else f'--cron {_quoted(whole)}'}"
    return InputError(None, f"unexpected argument {_quoted(words[0])}; {advice}")


def _quoted(text: str) -> str:
    return f"'{text}'" if "'" not in text and not text.isalnum() else shlex.quote(text)


def _named(error: ScheduleError) -> str | None:
    """Return the invalid field: a part of the expression, or the last name of the pointer."""
    if error.field == "DTSTART":
        return "dtstart"
    last = error.pointer.rpartition("/")[2]
    return error.field or (last if not last.isdigit() else "") or None


def _marked(error: ScheduleError, text: object) -> str | None:
    return text if error.position is not None and isinstance(text, str) else None
