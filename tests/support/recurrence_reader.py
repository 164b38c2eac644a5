"""Reads the English sentence about a recurrence back: which instants does it name?

It knows English and the calendar, and nothing of RFC 5545 or of noonmark's code: a sentence that a person would
misread is misread here too.
"""

# ruff: noqa: DTZ001 - sentences are about naive wall-clock times
from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import date, datetime, timedelta

MONTHS = (
    "January", "February", "March", "April", "May", "June", "July", "August", "September", "October",
    "November", "December",
)  # fmt: skip
WEEKDAYS = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")
_DAY = "|".join(WEEKDAYS)
_CLOCK = r"\d\d:\d\d(?::\d\d)?"
_NUMBERS = r"\d+(?:(?:, | and | to )\d+)*"
_PLACE = r"(?:\d+\w\w last|\d+\w\w|last)"
_SIZES = {"hour": 3600, "minute": 60, "second": 1}
OnDay = Callable[[date], bool]


@dataclass
class Sentence:
    """What a sentence says.

    Attributes:
        unit: of the period, such as "week"; interval: every how many of them, from `origin`.
        on: whether a day is meant.
        times: the seconds of a day that are meant.
        places: which of the times in one period are meant; empty: all.
        by_day: whether `places` count the days of a period, not its times.
        week_start: the weekday on which weeks start, Monday is 0.
    """

    unit: str
    interval: int
    origin: datetime | None
    on: OnDay
    times: list[int]
    places: list[int]
    week_start: int
    by_day: bool = False

    def count(self, low: date, high: date) -> int:
        """Return how many instants lie on the days from `low` to before `high`."""
        groups: dict[tuple[int, ...], list[datetime]] = defaultdict(list)
        day = low - timedelta(days=7)
        while day < high + timedelta(days=7):
            if self.on(day):
                for second in self.times:
                    at = datetime(day.year, day.month, day.day) + timedelta(seconds=second)
                    groups[self._period(at)].append(at)
            day += timedelta(days=1)
        picked = (at for key, group in groups.items() if self._is_due(key) for at in self._picked(group))
        return sum(low <= at.date() < high for at in picked)

    def _period(self, at: datetime) -> tuple[int, ...]:
        if self.unit == "year":
            return (at.year,)
        if self.unit == "month":
            return (at.year * 12 + at.month,)
        if self.unit == "week":
            return ((at.toordinal() - 1 - self.week_start) // 7,)
        if self.unit == "day":
            return (at.toordinal(),)
        second = at.hour * 3600 + at.minute * 60 + at.second
        return ((at.toordinal() * 86_400 + second) // _SIZES[self.unit],)

    def _is_due(self, key: tuple[int, ...]) -> bool:
        if self.interval == 1:
            return True
        assert self.origin is not None, "an interval that is counted from nowhere"
        return (key[0] - self._period(self.origin)[0]) % self.interval == 0

    def _picked(self, group: list[datetime]) -> list[datetime]:
        if not self.places:
            return group
        keys = sorted({at.date() for at in group}) if self.by_day else group
        size = len(keys)
        at = {place - 1 if place > 0 else size + place for place in self.places}
        chosen = {keys[index] for index in at if 0 <= index < size}
        return [moment for moment in group if (moment.date() if self.by_day else moment) in chosen]


def read(text: str) -> Sentence:
    """Read a sentence about one rule, without COUNT, UNTIL and exceptions."""
    text, origin = _cut(text, r", counted from (\d+ \w+ \d{4} \d\d:\d\d(?::\d\d)?)")
    text, week_start = _cut(text, r" \(weeks start on (\w+)\)")
    first = WEEKDAYS.index(week_start) if week_start else 0
    text, places = _cut(text, r", but of these times in one ((?:\w+) only .+)")
    text, times = _times(text)
    begin = _moment(origin) if origin else None
    short = re.fullmatch(rf"the ({_PLACE}(?:(?:, | and ){_PLACE})*) (?P<one>.+?) of (?P<within>.+)", text)
    if short and not places and " if that is " not in text:
        picked = _picked_one(short, first)
        if picked is not None:
            unit, on, which = picked
            return Sentence(unit, 1, begin, on, times("year"), which, first, by_day=True)
    unit, interval, on = _days_and_period(text, first)
    positions: list[int] = []
    if places:
        named, _, list_ = places.partition(" only ")
        assert unit in {"", named} or interval == 1
        unit, positions = named, [_place(word.removeprefix("the ")) for word in _items(list_)]
    return Sentence(unit or "day", interval, begin, on, times(unit), positions, first)


def _cut(text: str, pattern: str) -> tuple[str, str | None]:
    found = re.search(pattern + "$", text)
    return (text[: found.start()], found[1]) if found else (text, None)


def _items(text: str) -> list[str]:
    return re.split(r", | and | or ", text)


def _place(word: str) -> int:
    """Read 1st, last, 3rd last."""
    number = re.match(r"\d+", word)
    if word.endswith("last"):
        return -int(number[0]) if number else -1
    assert number is not None, word
    return int(number[0])


def _moment(text: str) -> datetime:
    day, month, year, clock = text.split()
    midnight = datetime(int(year), MONTHS.index(month) + 1, int(day))
    return midnight + timedelta(seconds=_clock(clock))


def _clock(text: str) -> int:
    numbers = [*map(int, text.split(":")), 0][:3]
    return numbers[0] * 3600 + numbers[1] * 60 + numbers[2]


def _times(text: str) -> tuple[str, Callable[[str], list[int]]]:
    """Return the text before the times of day, and what gives their seconds for a period's unit."""
    text, clocks = _cut(text, rf" at ({_CLOCK}(?:(?:, | and ){_CLOCK})*)")
    if clocks:
        seconds = [_clock(item) for item in _items(clocks)]
        return text, lambda _unit: seconds
    text, second = _cut(text, rf" at seconds? ({_NUMBERS})")
    text, minute = _cut(text, rf" at minutes? ({_NUMBERS})")
    text, hour = _cut(text, rf" in the hours? ({_NUMBERS})")

    def found(unit: str) -> list[int]:
        hours = _numbers(hour) if hour else [*range(24)]
        minutes = _numbers(minute) if minute else [*range(60)]
        # What is not said of seconds is the full minute, unless each second counts.
        seconds = _numbers(second) if second else [*range(60)] if unit == "second" else [0]
        return [h * 3600 + m * 60 + s for h in hours for m in minutes for s in seconds]

    return text, found


def _numbers(text: str) -> list[int]:
    if " to " in text:
        low, high = map(int, text.split(" to "))
        return [*range(low, high + 1)]
    return [int(item) for item in _items(text)]


def _picked_one(found: re.Match[str], week_start: int) -> tuple[str, OnDay, list[int]] | None:
    """Read "the 1st and last Monday or Tuesday of each month": a place in a period; None: it is none."""
    one, within = found["one"], found["within"]
    places = _items(found[1])
    if one not in {"weekday", "day of the weekend", "day"} and not re.fullmatch(
        rf"(?:{_DAY})(?:(?:, | or )(?:{_DAY}))*", one
    ):
        return None
    if one == "day" and not within.startswith(("each ", *MONTHS)):
        return None
    allowed = {"weekday": range(5), "day of the weekend": (5, 6), "day": range(7)}.get(one)
    days = set(allowed) if allowed is not None else {WEEKDAYS.index(word) for word in _items(one)}
    together = within.removesuffix(" together, each year")
    unit = "year" if together != within else within.removeprefix("each ")
    months = set(range(1, 13))
    if unit not in {"year", "month", "week"} or together != within:
        months = {MONTHS.index(word) + 1 for word in _items(together.removeprefix("each "))}
        unit = "year" if together != within else "month"
    return unit, lambda at: at.weekday() in days and at.month in months, [_place(word) for word in places]


def _days_and_period(text: str, week_start: int) -> tuple[str, int, OnDay]:
    head = re.fullmatch(
        r"every (?:(?P<n>\d+) )?(?P<unit>year|month|week|day|hour|minute|second)s?"
        r"(?: on (?P<days>.+)| if that is (?P<limits>.+)| (?P<within>in .+))?",
        text,
    )
    if head is None:
        return "", 1, _days(text, week_start)
    unit, interval = head["unit"], int(head["n"] or 1)
    if head["limits"]:
        return unit, interval, _all(_limit(each, week_start) for each in _split_limits(head["limits"]))
    return unit, interval, _days(head["days"] or f"day {head['within'] or ''}".strip(), week_start)


def _split_limits(text: str) -> list[str]:
    return text.split(", and if that is ")


def _all(conditions: Iterator[OnDay]) -> OnDay:
    every = list(conditions)
    return lambda at: all(condition(at) for condition in every)


def _days(text: str, week_start: int) -> OnDay:
    """Read which days are meant: "every Monday in March", "the 13th of each month if that is a Friday"."""
    if date_ := re.fullmatch(rf"(\d+) ({'|'.join(MONTHS)})", text):
        return lambda at: (at.day, MONTHS[at.month - 1]) == (int(date_[1]), date_[2])
    primary, *limits = text.split(" if that is ", 1)
    wanted = [_primary(primary, week_start)]
    wanted += [_limit(each, week_start) for each in (_split_limits(limits[0]) if limits else ())]
    return _all(iter(wanted))


def _primary(text: str, week_start: int) -> OnDay:
    both = re.fullmatch(rf"(every .*?) and (the (?:\d+\w\w )?(?:last )?(?:{_DAY})\b.*)", text)
    if both:
        left, right = _primary(both[1], week_start), _counted_days(both[2])
        return lambda at: left(at) or right(at)
    plain = re.fullmatch(
        rf"(?:every )?(?P<days>(?:day from )?Monday to Friday|day|(?:{_DAY})(?:(?:, | and )(?:{_DAY}))*)"
        r"(?: in (?P<months>(?!week|the ).+?))?(?: (?P<weeks>in (?:week|the ).+))?",
        text,
    )
    if plain is None:
        return _counted_days(text)
    conditions = [_weekdays(plain["days"])]
    if plain["months"]:
        conditions.append(_limit(f"in {plain['months']}", week_start))
    if plain["weeks"]:
        conditions.append(_limit(plain["weeks"], week_start))
    return _all(iter(conditions))


def _weekdays(text: str) -> OnDay:
    if text == "day":
        return lambda _at: True
    days = set(range(5)) if "to" in text.split() else {WEEKDAYS.index(word) for word in _items(text)}
    return lambda at: at.weekday() in days


def _limit(text: str, week_start: int) -> OnDay:
    """Read what follows "if that is"."""
    if text.startswith("in ") and text.endswith(" of the year"):
        weeks = [_counted(word, "week") for word in _items(text[3:].removesuffix(" of the year"))]
        return lambda at: _in_weeks(at, weeks, week_start)
    if text.startswith("in "):
        months = {MONTHS.index(word) + 1 for word in _items(text[3:])}
        return lambda at: at.month in months
    if text.startswith("a "):
        plain, _, numbered = text[2:].partition(" or the ")
        named = _weekdays(plain.removeprefix("day from "))
        if not numbered:
            return named
        also = _counted_days(f"the {numbered}")
        return lambda at: named(at) or also(at)
    return _counted_days(text)


def _counted(word: str, unit: str) -> int:
    """Read "week 5", "the last week", "day 60", "the 3rd last day"."""
    if found := re.fullmatch(rf"{unit} (\d+)", word):
        return int(found[1])
    return _place(word.removeprefix("the ").removesuffix(f" {unit}"))


def _counted_days(text: str) -> OnDay:
    """Read "the 1st Friday and the last Sunday of each month", "the 13th of March", "day 60 of each year"."""
    listed, _, scope = text.rpartition(" of ")
    scope = scope.removeprefix("each ").removeprefix("the ")
    months = set(range(1, 13))
    if scope not in {"month", "year"}:
        months = {MONTHS.index(word) + 1 for word in _items(scope)}
    in_year = scope == "year"
    items = _items(listed)

    def matches(at: date) -> bool:
        if at.month not in months:
            return False
        begin = date(at.year, 1, 1) if in_year else at.replace(day=1)
        after = date(at.year + 1, 1, 1) if in_year or at.month == 12 else date(at.year, at.month + 1, 1)
        return any(_is_counted(item, at, begin, after, in_year=in_year) for item in items)

    return matches


def _is_counted(item: str, at: date, begin: date, after: date, *, in_year: bool) -> bool:
    if found := re.fullmatch(rf"the (.+) ({_DAY})", item):
        place = (at - begin).days // 7 + 1
        back = -(((after - at).days - 1) // 7) - 1
        return WEEKDAYS[at.weekday()] == found[2] and _place(found[1]) in {place, back}
    place, back = (at - begin).days + 1, -(after - at).days
    if in_year:
        return _counted(item, "day") in {place, back}
    return _place(item.removeprefix("the ").removesuffix(" day")) in {place, back}


def _in_weeks(at: date, weeks: list[int], week_start: int) -> bool:
    """Whether the day is in one of the numbered weeks; week 1 is the first with four days of its year."""
    begin = at - timedelta(days=(at.weekday() - week_start) % 7)
    year = (begin + timedelta(days=3)).year
    number, size = _week_number(begin, year), _weeks_of(year, week_start)
    return number in weeks or number - size - 1 in weeks


def _week_one(year: int, week_start: int) -> date:
    fourth = date(year, 1, 4)
    return fourth - timedelta(days=(fourth.weekday() - week_start) % 7)


def _week_number(begin: date, year: int) -> int:
    return (begin - _week_one(year, begin.weekday())).days // 7 + 1


def _weeks_of(year: int, week_start: int) -> int:
    return (_week_one(year + 1, week_start) - _week_one(year, week_start)).days // 7
