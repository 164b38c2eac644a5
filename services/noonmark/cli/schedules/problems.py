"""Errors of `noonmark schedule`, with the names that the user typed."""

from __future__ import annotations

import json
import re
import shlex
from typing import Final, Literal

from noonmark.core.schedule_error import ScheduleError

Origin = Literal["option", "document"]

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

_EVERY: Final = re.compile(r"P(?:\d+[YMWD]|T(?=\d))[\dHMSYWD.T]*|\d+(?:\.\d+)? ?[smhd]?", re.IGNORECASE)
_RRULE: Final = re.compile(r"(?:RRULE|EXRULE|DTSTART|RDATE|EXDATE)\b[^ ]*|FREQ=.*", re.IGNORECASE | re.DOTALL)
_INSTANT: Final = re.compile(r"\d{4}-\d\d-\d\d.*")
_FILE: Final = re.compile(r".+\.(?:ya?ml|json|jsonl|ndjson)", re.IGNORECASE)
_UNITS: Final = {"s": "PT{}S", "m": "PT{}M", "h": "PT{}H", "d": "P{}D"}


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
    message = in_option_words(error.message) + _hint(error, text, "option")
    return InputError(_FIELD_OF.get(named or "", named), message, error.position, _marked(error, text))


def of_document(error: ScheduleError, text: object, pointer: str) -> InputError:
    """Return the error of a document; `text` is the value at the pointer."""
    message = error.message + _hint(error, text, "document")
    return InputError(_named(error), message, error.position, _marked(error, text), pointer)


def in_option_words(message: str) -> str:
    """Return a message with the names of options instead of fields: --zone for timezone."""
    message = (
        _LEADING.sub(lambda found: f"--{found[0]}", message, count=1) if _LEADING.match(message) else message
    )
    for pattern, option in _AS_OPTIONS:
        message = pattern.sub(option, message)
    return _UNDERSCORED.sub(
        lambda found: f"--{found[1].replace('_', '-')}" + (f" {found[2]}" if found[2] else ""), message
    )


def suggestion(text: str, origin: Origin) -> str | None:
    """Return how to write a text that is not a cron expression but another kind of schedule; else None.

    Args:
        text: the text in origin of a cron expression.
        origin: whether the schedule is from options or a document.
    """
    text = text.strip()
    if _EVERY.fullmatch(text):
        every = _duration(text)
        return f"for a fixed period: {_written('every', every, origin)}"
    if _RRULE.fullmatch(text):
        suffix = " with --dtstart 2026-01-05T09:00:00" if origin == "option" else ""
        return f"for a recurrence rule: {_written('rrule', text, origin)}{suffix}"
    if _INSTANT.fullmatch(text):
        return f"for one instant: {_written('at', text, origin)}"
    return None


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
        advice = f"write {(suggestion(whole, 'option') or f'--cron {_quoted(whole)}').rpartition(': ')[2]}"
    return InputError(None, f"unexpected argument {_quoted(words[0])}; {advice}")


def _quoted(text: str) -> str:
    return f"'{text}'" if "'" not in text and not text.isalnum() else shlex.quote(text)


def _duration(text: str) -> str:
    """Return a duration with a unit as ISO 8601, such as PT15M for 15m; else unchanged."""
    unit = _UNITS.get(text[-1].lower())
    return text if unit is None or text[0] in "pP" else unit.format(text[:-1].strip())


def _written(kind: str, value: str, origin: Origin) -> str:
    if origin == "option":
        return f"--{kind} {shlex.quote(value)}"
    number = kind == "every" and value.isdigit()
    shown: dict[str, object] = {kind: int(value) if number else value}
    if kind == "rrule" and "DTSTART" not in value.upper():
        shown["dtstart"] = "2026-01-05T09:00:00"
    return json.dumps(shown, ensure_ascii=False)


def _hint(error: ScheduleError, text: object, origin: Origin) -> str:
    of_cron = error.pointer.rpartition("/")[2] not in {"every", "rrule", "at", "dtstart", "start", "end"}
    found = suggestion(text, origin) if of_cron and isinstance(text, str) else None
    return f"; {found}" if found else ""


def _named(error: ScheduleError) -> str | None:
    """Return the invalid field: a part of the expression, or the last name of the pointer."""
    if error.field == "DTSTART":
        return "dtstart"
    last = error.pointer.rpartition("/")[2]
    return error.field or (last if not last.isdigit() else "") or None


def _marked(error: ScheduleError, text: object) -> str | None:
    return text if error.position is not None and isinstance(text, str) else None
