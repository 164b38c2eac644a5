"""The days of a cron expression in plain English."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final, NamedTuple

from noonmark.core.cron.expression import CronRule, DayTerm
from noonmark.core.explanations.english import (
    MONTHS,
    WEEKDAYS,
    arc,
    counted,
    elided,
    joined,
    members,
    ordinal,
    plural,
)
from noonmark.core.explanations.missing_days import month_day_words, weekday_words

ALL_DAYS: Final = (1 << 32) - 2
ALL_WEEKDAYS: Final = (1 << 7) - 1
ALL_MONTHS: Final = (1 << 13) - 2
_FEW: Final = 5
_CLAUSE: Final = re.compile(r", (?:and|from|every|only|or|in) |…")


class DayWords(NamedTuple):
    """The days in words.

    Attributes:
        text: "every day", "on the 1st of the month, and also every Friday".
        every_day: no day is excluded.
        clauses: a comma belongs after it.
        details: sentences about what may surprise you.
    """

    text: str
    every_day: bool
    clauses: bool
    details: list[str]


def day_words(rule: CronRule) -> DayWords:
    """Say on which days a rule fires."""
    texts = {field.name: field.text for field in rule.fields}
    by_date = rule.days != ALL_DAYS
    by_weekday = rule.weekdays != ALL_WEEKDAYS
    years = _years(rule, texts.get("year", "*"))
    details: list[str] = []
    if rule.either and by_date != by_weekday:
        details.append(_swallowed(by_date=by_date))
        by_date = by_weekday = False
    if by_date:
        details += _date_details(rule, texts, alone=rule.either or not by_weekday)
    if by_weekday:
        details += _weekday_details(rule, texts)
    if by_date and by_weekday:
        text = _either(rule) if rule.either else _both(rule)
        details.append(
            "Neither day field starts with *: a day fires when its date or its weekday matches."
            if rule.either
            else "A day field starts with *: a day fires only when its date and its weekday match."
        )
    elif by_date:
        text, years = _dates(rule, years)
    elif by_weekday:
        text = _weekdays(rule)
    else:
        text = f"every day{_in_months(rule.months)}"
    text += years
    every_day = text == "every day"
    return DayWords(text, every_day, bool(_CLAUSE.search(text)), details)


def _swallowed(*, by_date: bool) -> str:
    full, other = ("day-of-week", "day-of-month") if by_date else ("day-of-month", "day-of-week")
    return (
        f"The {full} field names every day without starting with *, so the {other} field excludes nothing:"
        " a day needs to match only one of the two."
    )


def _years(rule: CronRule, text: str) -> str:
    if rule.years is None or text == "*":
        return ""
    years = members(rule.years)
    if len(years) == 1:
        return f" in {years[0]}"
    found = arc(years, 10_000) if len(years) > 2 else None
    if found is None:
        return f", in {elided(years, str)}"
    step = f"every {ordinal(found.step)} year " if found.step > 1 else ""
    open_ended = "/" in text and "-" not in text
    return f", {step}from {years[0]}" + ("" if open_ended else f" to {years[-1]}")


def _month_names(months: int) -> str:
    values = members(months)
    found = arc(values, 12, 1) if len(values) > 2 else None
    if found and found.step == 1:
        return f"from {MONTHS[found.start - 1]} to {MONTHS[found.last - 1]}"
    return joined([MONTHS[month - 1] for month in values])


def _in_months(months: int) -> str:
    if months == ALL_MONTHS:
        return ""
    names = _month_names(months)
    return f" {names}" if names.startswith("from ") else f" in {names}"


def _of_months(months: int) -> str:
    if months == ALL_MONTHS:
        return " of the month"
    names = _month_names(months)
    return f" of each month {names}" if names.startswith("from ") else f" of {names}"


def _dates(rule: CronRule, years: str) -> tuple[str, str]:
    """Return the words, and those about the years that are not in them yet."""
    days, months = members(rule.days), members(rule.months)
    if len(days) == 1 and not rule.day_terms and len(months) == 1:
        date = f"{days[0]} {MONTHS[months[0] - 1]}"
        if years.startswith(" in "):
            return f"on {date} {years.removeprefix(' in ')}", ""
        return f"every year on {date}", years
    return f"on {joined(_date_parts(rule, 'and'))}{_of_months(rule.months)}", years


def _date_parts(rule: CronRule, word: str) -> list[str]:
    """Return the days of a month as phrases to follow "on": "the 1st and 15th", "the last day"."""
    days = members(rule.days)
    missing = [day for day in range(1, 32) if not rule.days >> day & 1]
    found = arc(days, 31, 1) if len(days) > 2 else None
    parts = []
    if found and found.step == 1 and (found.start <= found.last or len(missing) > _FEW):
        parts.append(f"the {ordinal(found.start)} to {ordinal(found.last)}")
    elif len(missing) <= _FEW:
        parts.append(f"every day but the {joined([ordinal(day) for day in missing])}")
    elif days:
        parts.append(f"the {elided(days, ordinal, word)}")
    return [*parts, *(_term(term) for term in rule.day_terms)]


def _term(term: DayTerm) -> str:
    last = "the last day" if not term.number else f"the {ordinal(term.number)} day before the last"
    if term.kind == "from_last":
        return last
    if term.kind == "weekday_near":
        return f"the weekday (Monday to Friday) nearest to the {ordinal(term.number)}"
    if term.kind == "weekday_near_last":
        return (
            f"the weekday (Monday to Friday) nearest to {last}"
            if term.number
            else "the last weekday (Monday to Friday)"
        )
    return f"the {counted(-1 if term.kind == 'last' else term.number)} {WEEKDAYS[term.weekday]}"


def _weekday_run(values: Sequence[int]) -> str | None:
    found = arc(values, 7) if len(values) > 2 else None
    return f"{WEEKDAYS[found.start]} to {WEEKDAYS[found.last]}" if found and found.step == 1 else None


def _weekday_names(values: Sequence[int]) -> list[str]:
    """Return the names in the order of a week that starts on Monday."""
    return [WEEKDAYS[value] for value in sorted(values, key=lambda value: (value - 1) % 7)]


def _weekdays(rule: CronRule) -> str:
    values, months, parts = members(rule.weekdays), _in_months(rule.months), []
    if run := _weekday_run(values):
        parts.append(f"every day from {run}{',' if 'from' in months else ''}{months}")
    elif values:
        parts.append(f"every {joined(_weekday_names(values))}{months}")
    if not rule.weekday_terms:
        return parts[0]
    terms = joined([_term(term) for term in rule.weekday_terms])
    return ", and ".join([*parts, f"on {terms}{_of_months(rule.months)}"])


def _either(rule: CronRule) -> str:
    return f"on {joined(_date_parts(rule, 'and'))}{_of_months(rule.months)}, and also {_weekdays(rule)}"


def _both(rule: CronRule) -> str:
    dates = joined(_date_parts(rule, "or"), "or")
    values = members(rule.weekdays)
    if rule.weekday_terms:
        return f"{_weekdays(rule)}, only if that is {dates} of the month"
    run = _weekday_run(values)
    names = f"day from {run}" if run else joined(_weekday_names(values), "or")
    return f"every {names} that is {dates}{_of_months(rule.months)}"


def _date_details(rule: CronRule, texts: dict[str, str], *, alone: bool) -> list[str]:
    """Return sentences about what may surprise you in the dates of a month.

    Args:
        rule: the rule.
        texts: its fields as written.
        alone: whether a date is enough for a day to fire.
    """
    days, found = members(rule.days), []
    step = re.search(r"/(\d+)$", texts["day-of-month"])
    if step and len(days) > 1 and alone and (apart := 31 + days[0] - days[-1]) < int(step[1]):
        found.append(
            f"Day steps start again each month: the {ordinal(days[-1])} and the next {ordinal(days[0])} are"
            f" {plural(apart, 'day')} apart in a month of 31 days."
        )
    if days and not (step and days[0] <= 28):  # of steps, the sentence above speaks
        others = bool(rule.day_terms) or (alone and rule.weekdays != ALL_WEEKDAYS)
        found += month_day_words(days, members(rule.months), others=others)
    if any(term.kind.startswith("weekday_near") for term in rule.day_terms):
        found.append("The nearest weekday is always in the same month.")
    return found


def _weekday_details(rule: CronRule, texts: dict[str, str]) -> list[str]:
    found = []
    values = members(rule.weekdays)
    terms = [
        (-1 if term.kind == "last" else term.number, WEEKDAYS[term.weekday]) for term in rule.weekday_terms
    ]
    found += weekday_words(terms, others=bool(values) or (rule.either and rule.days != ALL_DAYS))
    if re.fullmatch(r"[*\w]+/\d+", texts["day-of-week"]) and len(values) > 1:
        found.append(f"Weekday steps start again each week, on {WEEKDAYS[values[0]]}.")
    return found
