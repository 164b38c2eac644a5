"""Reads the English sentence about a cron expression back: which days, and which seconds of a day, does it name?

It knows English and the calendar only, and finds every way to read a sentence: two different ways are an error.
"""

from __future__ import annotations

import calendar
import re
from collections.abc import Callable, Iterator
from datetime import date, timedelta

from tests.support.recurrence_reader import MONTHS

WEEKDAYS = ("Sunday", "Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday")
COUNTED = {"first": 1, "second": 2, "third": 3, "fourth": 4, "fifth": 5, "last": -1}
_CLOCK = r"\d\d:\d\d(?::\d\d)?"
_LIST = rf"{_CLOCK}(?:(?:, … and |, | and ){_CLOCK})*"
_NUMBERS = r":?\d+(?:(?:, … and |, | and ):?\d+)*"
_MONTH, _WEEKDAY = "|".join(MONTHS), "|".join(WEEKDAYS)
_SCOPE = rf" of (?:the month|each month from (?P<first>{_MONTH}) to (?P<last>{_MONTH})|(?P<months>(?:{_MONTH}|, | and )+))"
_WITHIN = rf"(?:,? from (?P<first>{_MONTH}) to (?P<last>{_MONTH})| in (?P<months>(?:{_MONTH}|, | and )+?))?"
Days = Callable[[date], bool]
Seconds = frozenset[int]


def fires(sentence: str, low: date, high: date) -> int:
    """Return how many instants the sentence names on the days from `low` to before `high`."""
    text = sentence[0].lower() + sentence[1:]
    days = [low + timedelta(days=number) for number in range((high - low).days)]
    counts = {len(seconds) * sum(map(on, days)) for on, seconds in _ways(text)}
    assert len(counts) == 1, f"{len(counts)} ways to read {sentence!r}"
    return counts.pop()


def _ways(text: str) -> Iterator[tuple[Days, Seconds]]:
    if found := re.fullmatch(rf"(.+?),? at ({_LIST})", text):
        on = _days(found[1])
        if on is not None:
            yield on, frozenset(_listed(found[2], _clock))
    whole = _times(text)
    if whole is not None:
        yield lambda _at: True, whole
    for comma in re.finditer(", ", text):
        seconds, on = _times(text[: comma.start()]), _days(text[comma.end() :])
        if seconds is not None and on is not None:
            yield on, seconds


def _listed(text: str, value: Callable[[str], int]) -> list[int]:
    """Read a list; `…` continues the steps of the numbers before it to the last one."""
    head, dots, last = text.partition(", … ")
    values = [value(item) for item in re.split(r", | and | or ", head)]
    if dots:
        step = values[1] - values[0]
        assert values[2] - values[1] == step, text
        end = value(re.sub(r"^(?:and|or) ", "", last))
        values = [*range(values[0], end + 1, step)]
        assert values[-1] == end, text
    return values


def _clock(text: str) -> int:
    hour, minute, second = [*map(int, text.split(":")), 0][:3]
    return hour * 3600 + minute * 60 + second


def _around(first: int, last: int, step: int, size: int) -> list[int]:
    """Return the values from first to last in a cycle, which may pass its end."""
    return [value % size for value in range(first, last + 1 if last >= first else last + size + 1, step)]


def _step(text: str | None) -> int:
    return int(text) if text else 1


def _times(text: str) -> Seconds | None:
    """Read which seconds of a day are meant."""
    text, second = _tail(text)
    if text == "every hour, on the hour":
        return _combined(range(24), [0], [second])
    if found := re.fullmatch(r"every hour at :(\d\d)", text):
        return _combined(range(24), [int(found[1])], [second])
    if found := re.fullmatch(rf"at ({_LIST})", text):
        return frozenset(_listed(found[1], _clock))
    if found := re.fullmatch(rf"every (?:(\d+) )?hours? from ({_CLOCK})(?: to ({_CLOCK}))?", text):
        begin = _clock(found[2])
        step = _step(found[1])
        last = _clock(found[3]) // 3600 if found[3] else begin // 3600 + 24 - step
        hours = _around(begin // 3600, last % 24 if found[3] else last, step, 24)
        return frozenset(hour * 3600 + begin % 3600 for hour in hours)
    if found := re.fullmatch(rf"every (?:(\d+) )?(minute|second)s? from ({_CLOCK}) to ({_CLOCK})", text):
        size = 60 if found[2] == "minute" else 1
        return frozenset(
            at + second for at in _around(_clock(found[3]), _clock(found[4]), size * _step(found[1]), 86_400)
        )
    if found := re.fullmatch(r"(.*?(?:second|seconds)\b.*?)(?: (?:of|in) (.+))?", text):
        seconds = _in_minute(found[1])
        minutes = _minutes(found[2]) if found[2] else _combined(range(24), range(60), [0])
        if seconds is not None and minutes is not None:
            return frozenset(minute + each for minute in minutes for each in seconds)
    return _shifted(_minutes(text, of_hours=True), second)


def _tail(text: str) -> tuple[str, int]:
    found = re.fullmatch(r"(.+), at second (\d+)", text)
    return (found[1], int(found[2])) if found else (text, 0)


def _shifted(seconds: Seconds | None, by: int) -> Seconds | None:
    return None if seconds is None else frozenset(each + by for each in seconds)


def _combined(hours: object, minutes: object, seconds: object) -> Seconds:
    return frozenset(
        h * 3600 + m * 60 + s
        for h in hours  # type: ignore[attr-defined]
        for m in minutes  # type: ignore[attr-defined]
        for s in seconds  # type: ignore[attr-defined]
    )


def _in_minute(text: str) -> list[int] | None:
    if found := re.fullmatch(r"every (?:(\d+) )?seconds?(?: from second (\d+)(?: to (\d+))?)?", text):
        first, step = int(found[2] or 0), _step(found[1])
        if found[3]:
            return _around(first, int(found[3]), step, 60)
        return [*range(first, 60, step)]
    found = re.fullmatch(rf"at seconds ({_NUMBERS})", text)
    return _listed(found[1], int) if found else None


def _minutes(text: str, *, of_hours: bool = False) -> Seconds | None:
    """Read "every 15 minutes of every 2nd hour from 00", "the minutes :00 and :20 of every hour"."""
    which, _, where = text.partition(" of ")
    if found := re.fullmatch(rf"the minutes? ({_LIST})", text):
        return frozenset(_listed(found[1], _clock))
    hours = _hours(where) if where else [*range(24)]
    minutes = _in_hour(which)
    return None if hours is None or minutes is None else _combined(hours, minutes, [0])


def _in_hour(text: str) -> list[int] | None:
    if found := re.fullmatch(rf"(?:at|the minutes?) (?=:)({_NUMBERS})", text):
        return _listed(found[1], lambda item: int(item[1:]))
    if found := re.fullmatch(r"every (\d+)(?:st|nd|rd|th) minute from :(\d\d)", text):
        return [*range(int(found[2]), 60, int(found[1]))]
    found = re.fullmatch(r"every (?:(\d+) )?minutes?(?: from :(\d\d)(?: to :(\d\d))?)?", text)
    if found is None:
        return None
    first, step = int(found[2] or 0), _step(found[1])
    return _around(first, int(found[3]), step, 60) if found[3] else [*range(first, 60, step)]


def _hours(text: str) -> list[int] | None:
    if text == "every hour":
        return [*range(24)]
    if found := re.fullmatch(r"each hour from (\d\d) to (\d\d)", text):
        return _around(int(found[1]), int(found[2]), 1, 24)
    if found := re.fullmatch(r"every (\d+)(?:st|nd|rd|th) hour from (\d\d)", text):
        return [*range(int(found[2]), 24, int(found[1]))]
    found = re.fullmatch(rf"the hours? ({_NUMBERS})", text)
    return _listed(found[1], int) if found else None


def _months(found: re.Match[str]) -> set[int]:
    if found["first"]:
        return {
            month + 1 for month in _around(MONTHS.index(found["first"]), MONTHS.index(found["last"]), 1, 12)
        }
    if found["months"]:
        return {MONTHS.index(name) + 1 for name in re.split(", | and ", found["months"])}
    return set(range(1, 13))


def _days(text: str) -> Days | None:
    """Read which days are meant; None: this is no phrase about days."""
    text = text.rstrip(",")
    if found := re.fullmatch(rf"every year on (\d+) ({_MONTH})", text):
        return lambda at: (at.day, MONTHS[at.month - 1]) == (int(found[1]), found[2])
    if found := re.fullmatch(r"(on .+), and also (every .+|on .+)", text):
        left, right = _days(found[1]), _days(found[2])
        return None if left is None or right is None else lambda at: left(at) or right(at)
    if found := re.fullmatch(r"(.+), only if that is (.+)", text):
        left, right = _days(found[1]), _days(f"on {found[2].replace(' or ', ' and ')}")
        return None if left is None or right is None else lambda at: left(at) and right(at)
    if found := re.fullmatch(r"(every .+), and (on .+)", text):
        left, right = _days(found[1]), _days(found[2])
        return None if left is None or right is None else lambda at: left(at) or right(at)
    if found := re.fullmatch(rf"every (.+) that is (.+?{_SCOPE})", text):
        named = _weekdays(found[1].replace(" or ", " and "))
        dates = _days(f"on {found[2].replace(' or ', ' and ')}")
        return None if named is None or dates is None else lambda at: named(at) and dates(at)
    if found := re.fullmatch(rf"on (.+?){_SCOPE}", text):
        months, dates = _months(found), _dates(found[1])
        return None if dates is None else lambda at: at.month in months and dates(at)
    if found := re.fullmatch(rf"every (.+?){_WITHIN}", text):
        months, named = _months(found), _weekdays(found[1])
        return None if named is None else lambda at: at.month in months and named(at)
    return None


def _weekdays(text: str) -> Days | None:
    if text == "day":
        return lambda _at: True
    if found := re.fullmatch(rf"day from ({_WEEKDAY}) to ({_WEEKDAY})", text):
        days = _around(WEEKDAYS.index(found[1]), WEEKDAYS.index(found[2]), 1, 7)
    elif re.fullmatch(rf"(?:{_WEEKDAY})(?:(?:, | and )(?:{_WEEKDAY}))*", text):
        days = [WEEKDAYS.index(name) for name in re.split(", | and ", text)]
    else:
        return None
    return lambda at: at.isoweekday() % 7 in days


def _dates(text: str) -> Days | None:
    """Read the days of a month that follow "on": "the 1st and 15th", "the last day", "the first Monday"."""
    words = r"(?:, | and )(?=the |every )"
    found: list[Days] = []
    for item in re.split(words, text):
        on = _date(item)
        if on is None:
            return None
        found.append(on)
    return lambda at: any(on(at) for on in found)


def _date(item: str) -> Days | None:
    numbers = r"\d+(?:st|nd|rd|th)"
    if found := re.fullmatch(rf"the ({numbers}) to ({numbers})", item):
        days = _around(int(found[1][:-2]) - 1, int(found[2][:-2]) - 1, 1, 31)
        return lambda at: at.day - 1 in days
    if found := re.fullmatch(rf"every day but the ({numbers}(?:(?:, | and ){numbers})*)", item):
        missing = _listed(found[1], lambda word: int(word[:-2]))
        return lambda at: at.day not in missing
    if re.fullmatch(rf"the {numbers}(?:(?:, … and |, | and ){numbers})*", item):
        days = _listed(item.removeprefix("the "), lambda word: int(word[:-2]))
        return lambda at: at.day in days
    if found := re.fullmatch(rf"the (\w+) ({_WEEKDAY})", item):
        return _nth(COUNTED[found[1]], WEEKDAYS.index(found[2]))
    if found := re.fullmatch(rf"(?:the last day|the ({numbers}) day before the last)", item):
        before = int(found[1][:-2]) if found[1] else 0
        return lambda at: at.day == _length(at) - before
    if item == "the last weekday (Monday to Friday)":
        return lambda at: at.day == _near(at, _length(at))
    return _nearest(item, numbers)


def _nearest(item: str, numbers: str) -> Days | None:
    found = re.fullmatch(
        rf"the weekday \(Monday to Friday\) nearest to the (?:({numbers}) day before the last|({numbers}))",
        item,
    )
    if found is None:
        return None
    number = int((found[1] or found[2])[:-2])
    if found[1]:
        return lambda at: _length(at) > number and at.day == _near(at, _length(at) - number)
    return lambda at: number <= _length(at) and at.day == _near(at, number)


def _nth(place: int, weekday: int) -> Days:
    def on(at: date) -> bool:
        number = (at.day - 1) // 7 + 1 if place > 0 else -1 if at.day + 7 > _length(at) else 0
        return at.isoweekday() % 7 == weekday and number == place

    return on


def _length(at: date) -> int:
    return calendar.monthrange(at.year, at.month)[1]


def _near(at: date, day: int) -> int:
    """Return the weekday nearest to a day of the month, in the same month."""
    weekday = at.replace(day=day).weekday()
    if weekday == 5:
        return day - 1 if day > 1 else day + 2
    if weekday == 6:
        return day + 1 if day < _length(at) else day - 2
    return day
