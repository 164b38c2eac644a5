"""A recurrence in plain English: stiff, but complete."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import datetime
from typing import Final

from noonmark.core.explanations.missing_days import month_day_words, weekday_words, year_part_words
from noonmark.core.rrule.expansion import completed
from noonmark.core.rrule.parts import Freq, RuleParts
from noonmark.core.rrule.recurrence_set import Recurrence, RecurrenceSet

_UNITS: Final = ("year", "month", "week", "day", "hour", "minute", "second")
_DAYS: Final = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")
_MONTHS: Final = (
    *("January", "February", "March", "April", "May", "June"),
    *("July", "August", "September", "October", "November", "December"),
)
_WEEKDAYS: Final = tuple((0, day) for day in range(5))
_WEEKEND: Final = ((0, 5), (0, 6))
_LISTED: Final = 6  # more times of day or dates than this are not listed one by one


def describe(recurrence: Recurrence | RecurrenceSet) -> str:
    """Return what the rule or the set says, such as "every 2 weeks on Tuesday and Sunday at 09:00".

    The sentence names each fire: reading it back gives the same instants, without knowledge of RFC 5545.
    """
    if isinstance(recurrence, Recurrence):
        return _rule(recurrence) + _except(recurrence.excluded)
    pieces = [_rule(rule) for rule in recurrence.rules]
    dates = (*recurrence.dates.moments, *recurrence.instants)
    if dates:
        pieces.append(f"on {_moments(dates)}")
    local = recurrence.rules[0].excluded if recurrence.rules else ()
    return "; and ".join(pieces) + _except((*local, *sorted(recurrence.excluded_instants)))


def _rule(rule: Recurrence) -> str:
    parts = completed(rule.parts, rule.dtstart)
    text = _picked(parts) or f"{_fires(parts)}{_times(parts)}{_position(parts)}"
    if parts.wkst and (
        (parts.freq is Freq.WEEKLY and (parts.interval > 1 or parts.bysetpos)) or parts.byweekno
    ):
        text += f" (weeks start on {_DAYS[parts.wkst]})"
    if parts.interval > 1:
        text += f", counted from {_moment(rule.dtstart)}"
    if parts.count is not None:
        text += ", once" if parts.count == 1 else f", {parts.count} times"
    until = parts.until or parts.until_utc
    return text if until is None else f"{text}, until {_moment(until)}"


def taken_from_start(rule: Recurrence) -> str | None:
    """Say which days the rule takes from DTSTART because it names none; None if it names some."""
    parts, start = rule.parts, rule.dtstart
    if parts.freq >= Freq.DAILY or parts.byyearday or parts.bymonthday or parts.byday:
        return None
    if parts.byweekno or parts.freq is Freq.WEEKLY:
        return f"The rule has no BYDAY, so it fires on the weekday of DTSTART, {_DAYS[start.weekday()]}."
    day = _ordinal(start.day)
    if parts.freq is Freq.MONTHLY or parts.bymonth:
        return f"The rule names no day, so it fires on the day of DTSTART, the {day} of the month."
    return (
        f"The rule names no day, so it fires on the date of DTSTART, {start.day} {_MONTHS[start.month - 1]}."
    )


def missing_days(rule: Recurrence, *, others: bool = False) -> list[str]:
    """Say which days of the rule not every month or year has.

    Args:
        rule: the rule.
        others: whether other rules or dates fire, too.
    """
    parts = completed(rule.parts, rule.dtstart)
    months = parts.bymonth or tuple(range(1, 13))
    found = []
    if parts.bymonthday and not (parts.byyearday or parts.byweekno):
        # BYSETPOS counts the days that a month has: those left over may not fire.
        found += month_day_words(parts.bymonthday, months, others=others, partly=not parts.bysetpos)
    found += year_part_words(parts.byyearday, parts.byweekno)
    numbered = [(number, _DAYS[day]) for number, day in parts.byday if number]
    plain = len(parts.byday) - len(numbered)
    of_year = parts.freq is Freq.YEARLY and not parts.bymonth
    if (
        parts.bysetpos
        and parts.freq is Freq.MONTHLY
        and plain == len(parts.byday) == 1
        and _time_count(parts) == 1
    ):
        numbered, plain = [(place, _DAYS[parts.byday[0][1]]) for place in parts.bysetpos], 0
    return found + weekday_words(numbered, others=others or plain > 0, year=of_year)


def _fires(parts: RuleParts) -> str:
    """Return the period and the days, such as "every Monday in March" or "every 2 years on 3 May"."""
    if parts.freq <= Freq.DAILY and parts.interval == 1:
        return f"every year on {_date(parts)}" if _date(parts) else _days(parts)
    unit = _UNITS[parts.freq]
    period = f"every {unit}" if parts.interval == 1 else f"every {parts.interval} {unit}s"
    if parts.freq is Freq.DAILY:
        return period + _if_that_is([*_months_and_weeks(parts), *_limits(parts)])
    days = _date(parts) or _days(parts)
    if parts.freq is Freq.WEEKLY or parts.freq > Freq.DAILY:
        # A week has one Monday: "every 2 weeks on Monday".
        days = days.removeprefix("every day from ").removeprefix("every ")
    return f"{period}{days[3:]}" if days == "day" or days.startswith("day in ") else f"{period} on {days}"


def _picked(parts: RuleParts) -> str | None:
    """Return the short form of numbered days: "the last weekday of each month at 17:00"."""
    whole = parts.interval == 1 and parts.freq in (Freq.YEARLY, Freq.MONTHLY, Freq.WEEKLY)
    if not whole or parts.byyearday or parts.bymonthday or parts.byweekno or not parts.byday:
        return None
    if parts.bysetpos and (any(ordinal for ordinal, _ in parts.byday) or _time_count(parts) > 1):
        return None
    if parts.bysetpos:
        picked = f"{_join([_ordinal(place) for place in _forward(parts.bysetpos)])} {_one_of(parts.byday)}"
    elif all(ordinal for ordinal, _ in parts.byday):
        picked = _numbered(parts.byday)
    else:
        return None
    if parts.freq is Freq.MONTHLY and parts.bymonth:
        within = f"each {_months(parts)}"
    elif parts.freq is Freq.YEARLY and parts.bymonth and parts.bysetpos:
        within = f"{_months(parts)} together, each year"
    elif parts.bymonth:
        return None if parts.freq is Freq.WEEKLY else _numbered_in_months(parts, picked)
    else:
        within = f"each {_UNITS[parts.freq]}"
    article = "" if picked.startswith("the ") else "the "
    return f"{article}{picked} of {within}{_times(parts)}"


def _numbered_in_months(parts: RuleParts, picked: str) -> str:
    return f"{picked} of each {_months(parts)}{_times(parts)}"


def _date(parts: RuleParts) -> str | None:
    """Return the only date of a year that the rule allows, such as "3 May"."""
    single = len(parts.bymonth) == len(parts.bymonthday) == 1 and parts.bymonthday[0] > 0
    if not single or parts.byday or parts.byyearday or parts.byweekno:
        return None
    return f"{parts.bymonthday[0]} {_MONTHS[parts.bymonth[0] - 1]}"


def _days(parts: RuleParts) -> str:
    """Return which days the rule allows: the days of the narrowest part, then what else must be true of them.

    Such as "the 13th of each month if that is a Friday", or "every Monday in March".
    """
    months = _months(parts)
    each = f"of {months}" if months else "of each month"
    if parts.freq is Freq.MONTHLY and parts.interval > 1 and not months:
        each = "of the month"
    limits = _limits(parts)
    if parts.byyearday:
        of_year = "of each year" if parts.interval == 1 or parts.freq > Freq.YEARLY else "of the year"
        return f"{_year_days(parts)} {of_year}{_if_that_is([*_months_and_weeks(parts), *limits[1:]])}"
    if parts.bymonthday:
        weeks = _months_and_weeks(parts)[bool(months) :]
        return f"{_month_days(parts)} {each}{_if_that_is([*weeks, *limits[1:]])}"
    numbered = [day for day in parts.byday if day[0]]
    plain = [day for day in parts.byday if not day[0]]
    pieces = []
    if plain or not numbered:
        pieces.append(f"every {_weekdays(plain)}" + "".join(f" {each}" for each in _months_and_weeks(parts)))
    if numbered:
        year = parts.freq is Freq.YEARLY and not months
        pieces.append(f"{_numbered(numbered)} {'of each year' if year else each}")
    return " and ".join(pieces)


def _limits(parts: RuleParts) -> list[str]:
    """Return what must be true of a day besides its month and its week, to follow "if that is"."""
    limits = []
    if parts.byyearday:
        limits.append(f"{_year_days(parts, 'or')} of the year")
    if parts.bymonthday:
        limits.append(f"{_month_days(parts, 'or')} of the month")
    numbered = [day for day in parts.byday if day[0]]
    plain = [day for day in parts.byday if not day[0]]
    if parts.byday and len(plain) < len(_DAYS):
        days = [f"a {_weekdays(plain, 'or')}"] if plain else []
        if numbered:
            by_month = parts.freq is Freq.MONTHLY or parts.bymonth
            days.append(f"{_numbered(numbered, 'or')} of the {'month' if by_month else 'year'}")
        limits.append(" or ".join(days))
    return limits


def _months_and_weeks(parts: RuleParts) -> list[str]:
    found = [f"in {_months(parts)}"] if parts.bymonth else []
    if parts.byweekno:
        weeks = [_counted(number, "week") for number in _forward(parts.byweekno)]
        found.append(f"in {_join(weeks)} of the year")
    return found


def _if_that_is(limits: Sequence[str]) -> str:
    return f" if that is {', and if that is '.join(limits)}" if limits else ""


def _months(parts: RuleParts) -> str:
    return _join([_MONTHS[month - 1] for month in parts.bymonth]) if parts.bymonth else ""


def _year_days(parts: RuleParts, word: str = "and") -> str:
    return _join([_counted(number, "day") for number in _forward(parts.byyearday)], word)


def _month_days(parts: RuleParts, word: str = "and") -> str:
    days = [_ordinal(day) if day > 0 else f"{_ordinal(day)} day" for day in _forward(parts.bymonthday)]
    return _join([f"the {day}" for day in days], word)


def _forward(numbers: Iterable[int]) -> list[int]:
    """Return the numbers in the order of a period: those counted from its end come last."""
    return sorted(numbers, key=lambda number: (number < 0, number))


def _weekdays(days: Sequence[tuple[int, int]], word: str = "and") -> str:
    """Return unnumbered weekdays, to follow "every" or "a"."""
    if tuple(days) == _WEEKDAYS:
        return "day from Monday to Friday"
    if len(days) in (0, len(_DAYS)):
        return "day"
    return _join([_DAYS[day] for _, day in days], word)


def _numbered(days: Sequence[tuple[int, int]], word: str = "and") -> str:
    return _join([f"the {_ordinal(number)} {_DAYS[day]}" for number, day in _in_order(days)], word)


def _one_of(days: Sequence[tuple[int, int]]) -> str:
    """Return unnumbered weekdays of which one is picked: "weekday", "Monday or Friday"."""
    if tuple(days) == _WEEKDAYS:
        return "weekday"
    return "day of the weekend" if tuple(days) == _WEEKEND else _weekdays(days, "or")


def _in_order(days: Iterable[tuple[int, int]]) -> list[tuple[int, int]]:
    """Return numbered days in the order of a month: those counted from its end come last."""
    return sorted(days, key=lambda day: (day[0] < 0, day))


def _times(parts: RuleParts) -> str:
    if parts.freq <= Freq.DAILY and _time_count(parts) <= _LISTED:
        return f" at {_join([*_clock_times(parts)])}"
    text = ""
    if parts.byhour:
        text += f" in the hour{_numbers(parts.byhour)}"
    if parts.byminute:
        text += f" at minute{_numbers(parts.byminute)}"
    if parts.bysecond and (parts.bysecond != (0,) or parts.freq is Freq.SECONDLY):
        text += f" at second{_numbers(parts.bysecond)}"
    return text


def _time_count(parts: RuleParts) -> int:
    return len(parts.byhour) * len(parts.byminute) * len(parts.bysecond)


def _clock_times(parts: RuleParts) -> Iterable[str]:
    seconds = parts.bysecond != (0,)
    for hour in parts.byhour:
        for minute in parts.byminute:
            for second in parts.bysecond:
                yield f"{hour:02}:{minute:02}" + (f":{second:02}" if seconds else "")


def _position(parts: RuleParts) -> str:
    if not parts.bysetpos:
        return ""
    places = _join([f"the {_ordinal(place)}" for place in _forward(parts.bysetpos)])
    return f", but of these times in one {_UNITS[parts.freq]} only {places}"


def _numbers(numbers: Sequence[int]) -> str:
    """Return " 5", or "s 1, 2 and 5", or "s 9 to 17"."""
    if len(numbers) == 1:
        return f" {numbers[0]}"
    if len(numbers) > 2 and numbers[-1] - numbers[0] == len(numbers) - 1:
        return f"s {numbers[0]} to {numbers[-1]}"
    return f"s {_join([str(number) for number in numbers])}"


def _counted(number: int, unit: str) -> str:
    return f"{unit} {number}" if number > 0 else f"the {_ordinal(number)} {unit}"


def _ordinal(number: int) -> str:
    """Return "1st", "22nd", "last" (-1), "3rd last" (-3)."""
    if number < 0:
        return "last" if number == -1 else f"{_ordinal(-number)} last"
    teen = number % 100 in (11, 12, 13)
    return f"{number}{'th' if teen else {1: 'st', 2: 'nd', 3: 'rd'}.get(number % 10, 'th')}"


def _except(moments: Sequence[datetime]) -> str:
    return f", except on {_moments(moments)}" if moments else ""


def _moments(moments: Sequence[datetime]) -> str:
    if len(moments) > _LISTED:
        return f"{len(moments)} single dates from {_moment(moments[0])} to {_moment(moments[-1])}"
    return _join([_moment(moment) for moment in moments])


def _moment(moment: datetime) -> str:
    text = f"{moment.day} {_MONTHS[moment.month - 1]} {moment.year} {moment:%H:%M}"
    return text + (f":{moment.second:02}" if moment.second else "") + (" UTC" if moment.tzinfo else "")


def _join(words: Sequence[str], word: str = "and") -> str:
    return words[0] if len(words) == 1 else f"{', '.join(words[:-1])} {word} {words[-1]}"
