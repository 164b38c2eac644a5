"""What is wrong with what `noonmark schedule` was given, in the words of whoever gave it."""

from __future__ import annotations

import json
import re
import shlex
from typing import Final, Literal

from noonmark.core.schedule_error import ScheduleError

Place = Literal["option", "document"]

_FIELD_OF: Final = {"timezone": "zone", "exclude": "exclude_calendar", "include": "include_calendar"}
"""Fields of documents whose options are called otherwise."""

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
    """What was given is wrong.

    Attributes:
        field: the option, or the part of the expression; None where it is no single one.
        position: 1-based character of `text` where the trouble is, or None.
        message: a sentence.
        text: the expression that `position` counts in, where there is one.
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
        """Take what is told of it."""
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
    """Return what is wrong with options; `text` is the expression that was given."""
    named = _named(error)
    message = in_option_words(error.message) + _hint(error, text, "option")
    return InputError(_FIELD_OF.get(named or "", named), message, error.position, _marked(error, text))


def of_document(error: ScheduleError, text: object, pointer: str) -> InputError:
    """Return what is wrong with a document; `text` is what stands at the pointer."""
    message = error.message + _hint(error, text, "document")
    return InputError(_named(error), message, error.position, _marked(error, text), pointer)


def in_option_words(message: str) -> str:
    """Return a message about a document with the names of options: --zone instead of timezone."""
    message = (
        _LEADING.sub(lambda found: f"--{found[0]}", message, count=1) if _LEADING.match(message) else message
    )
    for pattern, option in _AS_OPTIONS:
        message = pattern.sub(option, message)
    return _UNDERSCORED.sub(
        lambda found: f"--{found[1].replace('_', '-')}" + (f" {found[2]}" if found[2] else ""), message
    )


def suggestion(text: str, place: Place) -> str | None:
    """Say how a text is written that is another kind of schedule than cron; None where it is not.

    Args:
        text: what stood where a cron expression was read.
        place: whether options make up the schedule, or a document does.
    """
    text = text.strip()
    if _EVERY.fullmatch(text):
        every = _duration(text)
        return f"for a fixed period: {_written('every', every, place)}"
    if _RRULE.fullmatch(text):
        beside = " with --dtstart 2026-01-05T09:00:00" if place == "option" else ""
        return f"for a recurrence rule: {_written('rrule', text, place)}{beside}"
    if _INSTANT.fullmatch(text):
        return f"for one instant: {_written('at', text, place)}"
    return None


def unexpected(words: list[str], cron: str | None) -> InputError:
    """Return what to say of words that stand where only options may."""
    if cron is not None:
        whole = " ".join([cron, *words])
        told = f"put the whole expression in quotes: --cron {_quoted(whole)}"
    elif _FILE.fullmatch(words[0]):
        told = f"write -f {_quoted(words[0])}"
    elif words[0].lstrip()[:1] in {"{", "["}:
        told = "options make up the schedule; -f FILE reads documents"
    else:
        whole = " ".join(words)
        told = f"write {(suggestion(whole, 'option') or f'--cron {_quoted(whole)}').rpartition(': ')[2]}"
    return InputError(None, f"unexpected argument {_quoted(words[0])}; {told}")


def _quoted(text: str) -> str:
    return f"'{text}'" if "'" not in text and not text.isalnum() else shlex.quote(text)


def _duration(text: str) -> str:
    """Return a length as ISO 8601 where it has a unit, such as PT15M for 15m; else as it stands."""
    unit = _UNITS.get(text[-1].lower())
    return text if unit is None or text[0] in "pP" else unit.format(text[:-1].strip())


def _written(kind: str, value: str, place: Place) -> str:
    if place == "option":
        return f"--{kind} {shlex.quote(value)}"
    number = kind == "every" and value.isdigit()
    shown: dict[str, object] = {kind: int(value) if number else value}
    if kind == "rrule" and "DTSTART" not in value.upper():
        shown["dtstart"] = "2026-01-05T09:00:00"
    return json.dumps(shown, ensure_ascii=False)


def _hint(error: ScheduleError, text: object, place: Place) -> str:
    of_cron = error.pointer.rpartition("/")[2] not in {"every", "rrule", "at", "dtstart", "start", "end"}
    found = suggestion(text, place) if of_cron and isinstance(text, str) else None
    return f"; {found}" if found else ""


def _named(error: ScheduleError) -> str | None:
    """Return the field that is wrong: a part of the expression, or the last name of the pointer."""
    if error.field == "DTSTART":
        return "dtstart"
    last = error.pointer.rpartition("/")[2]
    return error.field or (last if not last.isdigit() else "") or None


def _marked(error: ScheduleError, text: object) -> str | None:
    return text if error.position is not None and isinstance(text, str) else None
