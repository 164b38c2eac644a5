"""Translates systemd's `OnCalendar=` into a schedule, for messages (systemd.time(7), "Calendar events")."""

from __future__ import annotations

import re
from typing import Final

_SHORTHANDS: Final = {
    "minutely": "* * * * *",
    "hourly": "0 * * * *",
    "daily": "0 0 * * *",
    "weekly": "0 0 * * MON",
    "monthly": "0 0 1 * *",
    "quarterly": "0 0 1 1,4,7,10 *",
    "semiannually": "0 0 1 1,7 *",
    "yearly": "0 0 1 1 *",
    "annually": "0 0 1 1 *",
}
_DAY: Final = "(?:mon|tue|wed|thu|fri|sat|sun)[a-z]*"
_DAYS: Final = re.compile(rf"{_DAY}(?:(?:\.\.|-|,){_DAY})*,?", re.IGNORECASE)
_PART: Final = r"[\d*,./]+"
_DATE: Final = re.compile(rf"(?:(?P<year>{_PART})-)?(?P<month>{_PART})[-](?P<day>{_PART})")
_TIME: Final = re.compile(rf"(?P<hour>{_PART}):(?P<minute>{_PART})(?::(?P<second>{_PART}))?")
_ZONE: Final = re.compile(r"UTC|[A-Za-z_]+(?:/[A-Za-z0-9_+-]+)+")
_LAST: Final = {"second": 59, "minute": 59, "hour": 23, "day": 31, "month": 12}
_FIRST: Final = {"second": 0, "minute": 0, "hour": 0, "day": 1, "month": 1}
_WEEKDAYS: Final = ("MON", "TUE", "WED", "THU", "FRI", "SAT", "SUN")
_RULE_START: Final = "2026-01-01T00:00:00"


def on_calendar(text: str) -> dict[str, object] | None:
    """Return the schedule document of a calendar event of systemd.

    Weekday and day together are a recurrence rule: cron fires on days that match one of them.
    None: it is not one, or there is no translation, such as for a year.
    """
    words = re.sub(r"^OnCalendar\s*=\s*", "", text.strip(), flags=re.IGNORECASE).split()
    zone = words.pop() if len(words) > 1 and _ZONE.fullmatch(words[-1]) else None
    cron = _SHORTHANDS.get(words[0].lower()) if len(words) == 1 else None
    fields = None if cron is not None else _fields(words)
    document: dict[str, object] | None = {"cron": cron} if cron is not None else None
    if fields is not None:
        both = fields["weekday"] != "*" and fields["day"] != "*"
        document = _rule_document(fields) if both else _cron_document(fields)
    return document | {"timezone": zone} if document is not None and zone is not None else document


def _cron_document(fields: dict[str, str]) -> dict[str, object]:
    cron = " ".join(fields[name] for name in ("minute", "hour", "day", "month", "weekday"))
    second = fields["second"]
    return {"cron": cron} if second == "0" else {"cron": f"{second} {cron}", "seconds_field": "first"}


def _rule_document(fields: dict[str, str]) -> dict[str, object]:
    """Return the recurrence rule of days that match both their weekday and their number."""
    parts = ["FREQ=MONTHLY", f"BYDAY={','.join(_days(fields['weekday']))}"]
    parts += [f"BYMONTHDAY={_listed(fields['day'], 'day')}"]
    if fields["month"] != "*":
        parts.append(f"BYMONTH={_listed(fields['month'], 'month')}")
    parts += [f"BY{name.upper()}={_listed(fields[name], name)}" for name in ("hour", "minute", "second")]
    return {"rrule": ";".join(parts), "dtstart": _RULE_START}


def _days(weekday: str) -> list[str]:
    """Return the weekdays of lists and ranges of cron as a rule names them: MO, TU."""
    found: list[int] = []
    for item in weekday.split(","):
        first, _, last = item.partition("-")
        start, end = _WEEKDAYS.index(first), _WEEKDAYS.index(last or first)
        found += [day % 7 for day in range(start, end + 1 if end >= start else end + 8)]
    return [_WEEKDAYS[day][:2] for day in sorted(set(found))]


def _listed(field: str, name: str) -> str:
    """Return the values of a field of cron, listed as a rule lists them; what is no number stays."""
    values: list[int] = []
    for item in field.split(","):
        base, _, step = item.partition("/")
        first, _, last = (f"{_FIRST[name]}-{_LAST[name]}" if base == "*" else base).partition("-")
        if not (first.isdecimal() and (last or first).isdecimal() and (step or "1").isdecimal()):
            return field
        values += range(int(first), min(int(last or first), 99) + 1, int(step or 1) or 1)
    return ",".join(map(str, sorted(set(values))))


def _fields(words: list[str]) -> dict[str, str] | None:
    """The fields of cron; None: some word is no part of a calendar event, or it names a year."""
    weekday = words.pop(0) if words and _DAYS.fullmatch(words[0]) else "*"
    date = _DATE.fullmatch(words[0]) if words else None
    words = words[1:] if date else words
    time = _TIME.fullmatch(words[0]) if words else None
    words = words[1:] if time else words
    # A word that is left is none of systemd's: to drop it would change the schedule.
    if words or not (date or time or weekday != "*"):
        return None
    said = {"month": "*", "day": "*", **(date.groupdict() if date else {})}
    said |= time.groupdict() if time else {"hour": "0", "minute": "0"}
    if said.pop("year", None) not in {None, "*"}:
        return None
    fields = {name: _numbers(part or "0", name) for name, part in ({"second": "0"} | said).items()}
    days = re.sub(rf"({_DAY})", lambda found: found[1][:3].upper(), weekday, flags=re.IGNORECASE)
    return fields | {"weekday": days.replace("..", "-").strip(",")}


def _numbers(text: str, field: str) -> str:
    """A component as cron writes it: `1..5` is a range, and a step from a number goes to the end."""
    items = []
    for item in text.split(","):
        base, slash, step = re.sub(r"\b0+(?=\d)", "", item).replace("..", "-").partition("/")
        ends = base == "*" or "-" in base or not slash
        items.append(f"{base if ends else f'{base}-{_LAST[field]}'}{slash}{step}")
    return ",".join(items)
