"""Texts that are schedules elsewhere, or of another kind here: recognized, and translated for the message."""

from __future__ import annotations

import json
import re
from typing import Final, NamedTuple

from noonmark.core.cron.on_calendar import on_calendar
from noonmark.core.instants import parse_duration

_AWS_CRON: Final = re.compile(r"cron\(\s*(.*?)\s*\)", re.IGNORECASE | re.DOTALL)
_AWS_RATE: Final = re.compile(r"rate\(\s*(\d{1,9})\s+(minute|hour|day)s?\s*\)", re.IGNORECASE)
_AWS_AT: Final = re.compile(r"at\(\s*(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d)\s*\)", re.IGNORECASE)
_AWS_YEAR: Final = re.compile(r"\*|(?:19|20|21)\d\d(?:[-,/]\d+)*")
_EVERY: Final = re.compile(r"(?:@?every|each)\s+(.+)", re.IGNORECASE | re.DOTALL)
_COUNTED: Final = re.compile(r"(?:([0-9]{1,9})\s*)?(second|sec|minute|min|hour|hr|day|week)s?", re.IGNORECASE)
_GO_DURATION: Final = re.compile(r"(?:[0-9]{1,9}(?:\.[0-9]{0,9})?(?:ns|us|\u00b5s|\u03bcs|ms|s|m|h))+")
_GO_PART: Final = re.compile(r"([0-9.]+)([a-z\u00b5\u03bc]+)")
_GO_UNITS: Final = {
    "ns": 1e-9,
    "us": 1e-6,
    "\u00b5s": 1e-6,
    "\u03bcs": 1e-6,
    "ms": 1e-3,
    "s": 1,
    "m": 60,
    "h": 3600,
}
_RRULE: Final = re.compile(r"(?:RRULE|DTSTART|RDATE|EXDATE)\b\S*|FREQ=.*", re.IGNORECASE | re.DOTALL)
_INSTANT: Final = re.compile(r"(\d{4}-\d\d-\d\d)(?:[Tt ](\d\d:\d\d)(:\d\d)?)?(.*)")
_PERIOD: Final = "is a fixed period"
_START: Final = "2026-01-05T09:00:00"
EXAMPLES: Final[dict[str, dict[str, object]]] = {
    "cron": {"cron": "0 9 * * MON-FRI"},
    "every": {"every": "5m"},
    "at": {"at": f"{_START}Z"},
    "rrule": {"rrule": "FREQ=DAILY", "dtstart": _START},
}
"""What to write instead of a text whose translation no schedule allows, by the field of the translation."""


class Foreign(NamedTuple):
    """A text that is a schedule elsewhere, or of another kind here.

    Attributes:
        what: what it is, to follow the text in a message.
        document: the schedule to write instead: a translation, or an example.
    """

    what: str
    document: dict[str, object]

    def __str__(self) -> str:
        """Return what follows the text in a message; the JSON is the last part."""
        return f"{self.what}; write {json.dumps(self.document, ensure_ascii=False)}"


def recognized(text: str) -> Foreign | None:
    """Return what a text is and its translation; None: not recognized.

    Whether the translation is accepted is not checked: `schedules.advice` does that.
    """
    text = text.strip()
    found = next((found for recognize in _RECOGNIZERS if (found := recognize(text)) is not None), None)
    return Foreign(*found) if found is not None else None


def translation(text: str) -> str | None:
    """Return what a text is and what to write instead, to follow the text in a message; None: not recognized.

    Such as `is AWS's cron(...); write {"cron": "0 9 * * MON-FRI"}`. The JSON is the last part.
    """
    if text.strip() == "-":
        return "is Spring's word for no schedule; leave out the schedule, or pause the job"
    found = recognized(text)
    return str(found) if found is not None else None


_Found = tuple[str, dict[str, object]] | None


def _aws(text: str) -> _Found:
    if found := _AWS_RATE.fullmatch(text):
        return "is AWS's rate(...)", {"every": f"{found[1]}{found[2][0].lower()}"}
    if found := _AWS_AT.fullmatch(text):
        return "is AWS's at(...)", {"at": f"{found[1]}Z"}
    found = _AWS_CRON.fullmatch(text)
    fields = (found[1] if found else text).split()
    if found is None and not _is_aws_cron(fields):
        return None
    what = "is AWS's cron(...)" if found else "has six fields, as AWS's cron(...) has them (years last)"
    if len(fields) != 6:
        return f"{what} but has not its six fields", EXAMPLES["cron"]
    *five, year = fields
    # AWS counts weekdays as Quartz does, from 1, and reads `L`, `W` and `#` as it does.
    plain = not re.search(r"[\dL#]", five[4].upper()) and not re.search(r"[LW]", five[2].upper())
    if year == "*" and plain:
        return what, {"cron": " ".join(five).replace("?", "*")}
    return what, {"cron": " ".join(["0", *fields]), "dialect": "quartz"}


def _is_aws_cron(fields: list[str]) -> bool:
    """Return whether six fields are AWS's without its `cron(...)`: a day field is `?`, and years are last.

    Quartz and Spring have a `?` one field later, so that such an expression is none of theirs.
    """
    return len(fields) == 6 and "?" in {fields[2], fields[4]} and _AWS_YEAR.fullmatch(fields[5]) is not None


def _every(text: str) -> _Found:
    """Recognize `@every 5m` of Go's cron, and the words `every 5 minutes`, `every hour`, `5 minutes`."""
    found = _EVERY.fullmatch(text)
    period = found[1].strip() if found is not None else text
    counted = _COUNTED.fullmatch(period)
    if counted is not None and (found is not None or counted[1]):
        return _PERIOD, {"every": f"{counted[1] or 1}{counted[2][0].lower()}"}
    if found is None:
        return None
    if _is_duration(period):
        return _PERIOD, {"every": _seconds_or_text(period)}
    if text.startswith("@") and _GO_DURATION.fullmatch(period):
        return _PERIOD, {"every": _go_seconds(period)}
    return (_PERIOD, EXAMPLES["every"]) if text.startswith("@") else None


def _go_seconds(text: str) -> int | float:
    """Return the seconds of a duration of Go, such as `1.5h` or `500ms`."""
    seconds = round(sum(float(number) * _GO_UNITS[unit] for number, unit in _GO_PART.findall(text)), 6)
    return int(seconds) if seconds == int(seconds) else seconds


def _duration(text: str) -> _Found:
    return (_PERIOD, {"every": _seconds_or_text(text)}) if _is_duration(text) else None


def _seconds_or_text(duration: str) -> int | str:
    return int(duration) if duration.isdecimal() else duration


def _rule_or_instant(text: str) -> _Found:
    if _RRULE.fullmatch(text):
        document: dict[str, object] = {"rrule": text}
        return "is a recurrence rule", document | ({} if "DTSTART" in text.upper() else {"dtstart": _START})
    found = _INSTANT.fullmatch(text)
    if found is None:
        return None
    day, clock, seconds, rest = found.groups()
    if rest.startswith(" ") and on_calendar(text) is not None:
        return None
    return "is one instant", {"at": text if rest else f"{day}T{clock or '00:00'}{seconds or ':00'}Z"}


def _quartz(text: str) -> _Found:
    if len(text.split()) != 7:
        return None
    return "has seven fields, as Quartz has them (seconds first, years last)", {
        "cron": text,
        "dialect": "quartz",
    }


def _systemd(text: str) -> _Found:
    found = on_calendar(text)
    if isinstance(found, str):
        return f"is systemd's OnCalendar=, but {found}", EXAMPLES["cron"]
    return ("is systemd's OnCalendar=", found) if found is not None else None


def _is_duration(text: str) -> bool:
    try:
        parse_duration(text)
    except ValueError:
        return False
    return True


_RECOGNIZERS: Final = (_aws, _every, _duration, _rule_or_instant, _quartz, _systemd)
