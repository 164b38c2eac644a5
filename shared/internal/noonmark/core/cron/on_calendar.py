"""Translates systemd's `OnCalendar=` into a schedule, for messages (systemd.time(7), "Calendar events")."""

from __future__ import annotations

import re
from datetime import date
from typing import Final

from noonmark.core.cron.fields import LAST_YEAR

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
_DAY: Final = "(?:mon|tues?|wed(?:nes)?|thu(?:rs?)?|fri|sat(?:ur)?|sun)(?:day)?"
_DAYS: Final = re.compile(rf"{_DAY}(?:(?:\.\.|-|,){_DAY})*,?", re.IGNORECASE)
_ITEM: Final = r"(?:\*|\d+(?:\.\.\d+)?)(?:/\d+)?"
_PART: Final = rf"{_ITEM}(?:,{_ITEM})*"
_DATE: Final = re.compile(rf"(?:(?P<year>{_PART})-)?(?P<month>{_PART})(?P<sign>[-~])(?P<day>{_PART})")
_YEARS: Final = re.compile(r"(\d{4})(?:\.\.(\d{4}))?")
_TIME: Final = re.compile(rf"(?P<hour>{_PART}):(?P<minute>{_PART})(?::(?P<second>{_PART}))?")
_ZONE: Final = re.compile(r"UTC|[A-Za-z_]+(?:/[A-Za-z0-9_+-]+)+")
_LAST: Final = {"second": 59, "minute": 59, "hour": 23, "day": 31, "month": 12, "year": LAST_YEAR}
_FIRST: Final = {"second": 0, "minute": 0, "hour": 0, "day": 1, "month": 1}
_WEEKDAYS: Final = ("MON", "TUE", "WED", "THU", "FRI", "SAT", "SUN")
_RULE_START: Final = "2026-01-01T00:00:00"


def on_calendar(text: str) -> dict[str, object] | str | None:
    """Return the schedule document of a calendar event of systemd.

    A text instead says why it has none; None: the text is not a calendar event. Weekday and day together are
    a recurrence rule, because cron fires on days that match one of them. Years need the dialect of Quartz,
    which has a field for them. A single instant is `at`.
    """
    words = re.sub(r"^OnCalendar\s*=\s*", "", text.strip(), flags=re.IGNORECASE).split()
    zone = words.pop() if len(words) > 1 and _ZONE.fullmatch(words[-1]) else None
    cron = _SHORTHANDS.get(words[0].lower()) if len(words) == 1 else None
    fields = None if cron is not None else _fields(words)
    document: dict[str, object] | str | None = {"cron": cron} if cron is not None else None
    if fields is not None:
        document = _on_date(fields, zone) if _is_date(fields) else _document(fields)
    if not isinstance(document, dict) or zone is None or "at" in document:
        return document
    return document | {"timezone": zone}


def _is_date(fields: dict[str, str]) -> bool:
    """Return whether the day is one date of one year."""
    return all(fields[name].isdecimal() for name in ("year", "month", "day"))


def _on_date(fields: dict[str, str], zone: str | None) -> dict[str, object] | str:
    """Return the schedule of one date: one instant, or the instants of its day."""
    try:
        day = date(*(int(fields[name]) for name in ("year", "month", "day")))
    except ValueError:
        return "its date does not exist"
    if fields["weekday"] != "*" and _WEEKDAYS[day.weekday()][:2] not in _days(fields["weekday"]):
        return f"it never occurs: {day} is a {day:%A}"
    clock = [fields[name] for name in ("hour", "minute", "second")]
    if zone in {None, "UTC"} and all(part.isdecimal() for part in clock):
        return {"at": f"{day}T{':'.join(f'{int(part):02}' for part in clock)}Z"}
    return _document(fields | {"weekday": "*"})


def _document(fields: dict[str, str]) -> dict[str, object] | str:
    both = fields["weekday"] != "*" and fields["day"] != "*"
    return _rule_document(fields) if both else _cron_document(fields)


def _cron_document(fields: dict[str, str]) -> dict[str, object]:
    # A negative day is counted from the end of the month: the second last is the last but one.
    days = [f"L{int(one) + 1 or ''}" if one.startswith("-") else one for one in fields["day"].split(",")]
    fields = fields | {"day": ",".join(days)}
    if fields["year"] != "*":
        fields |= {"day": "?"} if fields["weekday"] != "*" else {"weekday": "?"}
        quartz = ("second", "minute", "hour", "day", "month", "weekday", "year")
        return {"cron": " ".join(fields[name] for name in quartz), "dialect": "quartz"}
    cron = " ".join(fields[name] for name in ("minute", "hour", "day", "month", "weekday"))
    second = fields["second"]
    return {"cron": cron} if second == "0" else {"cron": f"{second} {cron}", "seconds_field": "first"}


def _rule_document(fields: dict[str, str]) -> dict[str, object] | str:
    """Return the recurrence rule of days that match both their weekday and their number."""
    years = _YEARS.fullmatch(fields["year"].replace("-", ".."))
    if fields["year"] != "*" and years is None:
        return "no single schedule has a weekday, a day of the month and a list of years"
    parts = ["FREQ=MONTHLY", f"BYDAY={','.join(_days(fields['weekday']))}"]
    parts += [f"BYMONTHDAY={_listed(fields['day'], 'day')}"]
    if fields["month"] != "*":
        parts.append(f"BYMONTH={_listed(fields['month'], 'month')}")
    parts += [f"BY{name.upper()}={_listed(fields[name], name)}" for name in ("hour", "minute", "second")]
    if years is None:
        return {"rrule": ";".join(parts), "dtstart": _RULE_START}
    parts.append(f"UNTIL={years[2] or years[1]}1231T235959")
    return {"rrule": ";".join(parts), "dtstart": f"{years[1]}-01-01T00:00:00"}


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
        if item.startswith("-"):
            values.append(int(item))
            continue
        base, _, step = item.partition("/")
        first, _, last = (f"{_FIRST[name]}-{_LAST[name]}" if base == "*" else base).partition("-")
        if not (first.isdecimal() and (last or first).isdecimal() and (step or "1").isdecimal()):
            return field
        values += range(int(first), min(int(last or first), 99) + 1, int(step or 1) or 1)
    return ",".join(map(str, sorted(set(values))))


def _fields(words: list[str]) -> dict[str, str] | None:
    """The fields of cron, and the year; None: some word is no part of a calendar event.

    Days that are counted from the end of the month are negative.
    """
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
    said |= {"year": said.get("year") or "*", "second": said.get("second") or "0"}
    if "*/" in said["year"]:
        return None
    from_end = said.pop("sign", "-") == "~"
    fields = {name: _numbers(part, name) for name, part in said.items()}
    if from_end:
        fields["day"] = _from_end(said["day"])
    days = re.sub(rf"({_DAY})", lambda found: found[1][:3].upper(), weekday, flags=re.IGNORECASE)
    return fields | {"weekday": days.replace("..", "-").strip(",")}


def _from_end(text: str) -> str:
    """Days that are counted from the end of the month, as negative numbers: `7/1` are the last seven."""
    days: set[int] = set()
    for item in text.split(","):
        base, _, step = item.partition("/")
        first, _, last = base.partition("..")
        if not (first.isdecimal() and (last or first).isdecimal() and (step or "1").isdecimal()):
            return text
        begin, end = sorted((int(first), int(last) if last else 1 if step else int(first)))
        days |= {-day for day in range(min(end, 99), begin - 1, -(int(step or 1) or 1))}
    return ",".join(map(str, sorted(days)))


def _numbers(text: str, field: str) -> str:
    """A component as cron writes it: `1..5` is a range, and a step from a number goes to the end."""
    items = []
    for item in text.split(","):
        base, slash, step = re.sub(r"\b0+(?=\d)", "", item).replace("..", "-").partition("/")
        ends = base == "*" or "-" in base or not slash
        items.append(f"{base if ends else f'{base}-{_LAST[field]}'}{slash}{step}")
    return ",".join(items)
