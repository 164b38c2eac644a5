"""Texts that are schedules elsewhere, or of another kind here: recognized, and translated for the message."""

from __future__ import annotations

import json
import re
from typing import Final

from noonmark.core.cron.on_calendar import on_calendar
from noonmark.core.instants import parse_duration

_AWS_CRON: Final = re.compile(r"cron\(\s*(.*?)\s*\)", re.IGNORECASE | re.DOTALL)
_AWS_RATE: Final = re.compile(r"rate\(\s*(\d{1,9})\s+(minute|hour|day)s?\s*\)", re.IGNORECASE)
_AWS_AT: Final = re.compile(r"at\(\s*(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d)\s*\)", re.IGNORECASE)
_EVERY: Final = re.compile(r"(?:@?every|each)\s+(.+)", re.IGNORECASE | re.DOTALL)
_COUNTED: Final = re.compile(r"(?:([0-9]{1,9})\s*)?(second|sec|minute|min|hour|hr|day|week)s?", re.IGNORECASE)
_RRULE: Final = re.compile(r"(?:RRULE|DTSTART|RDATE|EXDATE)\b\S*|FREQ=.*", re.IGNORECASE | re.DOTALL)
_INSTANT: Final = re.compile(r"\d{4}-\d\d-\d\d.*")
_PERIOD: Final = "is a fixed period"
_START: Final = "2026-01-05T09:00:00"


def translation(text: str) -> str | None:
    """Return what a text is and what to write instead, to follow the text in a message; None: not recognized.

    Such as `is AWS's cron(...); write {"cron": "0 9 * * MON-FRI"}`. The JSON is the last part.
    """
    text = text.strip()
    for recognize in (_aws, _every, _duration, _rule_or_instant, _quartz, _systemd):
        found = recognize(text)
        if found is not None:
            what, document = found
            return f"{what}; write {json.dumps(document, ensure_ascii=False)}"
    return (
        "is Spring's word for no schedule; leave out the schedule, or pause the job" if text == "-" else None
    )


_Found = tuple[str, dict[str, object]] | None


def _aws(text: str) -> _Found:
    if found := _AWS_RATE.fullmatch(text):
        return "is AWS's rate(...)", {"every": f"{found[1]}{found[2][0].lower()}"}
    if found := _AWS_AT.fullmatch(text):
        return "is AWS's at(...)", {"at": f"{found[1]}Z"}
    found = _AWS_CRON.fullmatch(text)
    if found is None:
        return None
    fields = found[1].split()
    if len(fields) != 6:
        return "is AWS's cron(...) but has not its six fields", {"cron": "0 9 * * MON-FRI"}
    *five, year = fields
    # AWS counts weekdays as Quartz does, from 1, and reads `L`, `W` and `#` as it does.
    plain = not re.search(r"[\dL#]", five[4].upper()) and not re.search(r"[LW]", five[2].upper())
    if year == "*" and plain:
        return "is AWS's cron(...)", {"cron": " ".join(five).replace("?", "*")}
    return "is AWS's cron(...)", {"cron": " ".join(["0", *fields]), "dialect": "quartz"}


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
    return (_PERIOD, {"every": "5m"}) if text.startswith("@") else None


def _duration(text: str) -> _Found:
    return (_PERIOD, {"every": _seconds_or_text(text)}) if _is_duration(text) else None


def _seconds_or_text(duration: str) -> int | str:
    return int(duration) if duration.isdecimal() else duration


def _rule_or_instant(text: str) -> _Found:
    if _RRULE.fullmatch(text):
        document: dict[str, object] = {"rrule": text}
        return "is a recurrence rule", document | ({} if "DTSTART" in text.upper() else {"dtstart": _START})
    return ("is one instant", {"at": text}) if _INSTANT.fullmatch(text) else None


def _quartz(text: str) -> _Found:
    if len(text.split()) != 7:
        return None
    return "has seven fields, as Quartz has them (seconds first, years last)", {
        "cron": text,
        "dialect": "quartz",
    }


def _systemd(text: str) -> _Found:
    document = on_calendar(text)
    return ("is systemd's OnCalendar=", document) if document is not None else None


def _is_duration(text: str) -> bool:
    try:
        parse_duration(text)
    except ValueError:
        return False
    return True
