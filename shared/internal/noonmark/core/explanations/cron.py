"""A cron rule in plain English.

The words come from the values of the fields, so `0,15,30,45` and `*/15` read the same.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import partial
from typing import NamedTuple

from noonmark.core.cron.expression import CronRule, FieldText
from noonmark.core.explanations.days import day_words
from noonmark.core.explanations.english import MONTHS, WEEKDAYS, capital, elided, members, ordinal
from noonmark.core.explanations.times import over_midnight, restarts, time_words


class CronWords(NamedTuple):
    """A rule in words.

    Attributes:
        when: "Every day at 02:30", without a full stop.
        details: sentences about how it was read, and about what may surprise you.
    """

    when: str
    details: list[str]


def describe_cron(rule: CronRule, *, dialect: str = "unix") -> CronWords:
    """Say when a rule fires, on the wall clock."""
    times, days = time_words(rule), day_words(rule)
    if times.fixed:
        when = f"{days.text}{',' if days.clauses else ''} {times.text}"
    elif times.all_day and days.every_day:
        when = times.text
    else:
        when = f"{times.text}, {days.text}"
    details = [
        *_reading(rule, dialect),
        *filter(None, map(_hashed, rule.fields)),
        *days.details,
        *filter(None, map(restarts, rule.fields)),
    ]
    night = over_midnight(members(rule.hours))
    if night and not days.every_day:
        details.append(night)
    return CronWords(capital(when), details)


def _reading(rule: CronRule, dialect: str) -> Iterator[str]:
    if rule.seconds_field:
        yield f"The {rule.seconds_field} of the {len(rule.fields)} fields is read as the seconds."
    weekday = next((field for field in rule.fields if field.name == "day-of-week"), None)
    questioned = any(field.text == "?" for field in rule.fields)
    if dialect == "unix" and questioned and weekday and re.search(r"\d", weekday.text.partition("#")[0]):
        yield (
            "Weekdays are read as cron counts them: 1 is Monday. If the expression is from Quartz, where 1 is"
            " Sunday, set the dialect to quartz."
        )
    if dialect == "quartz" and weekday and re.search(r"(?:^|[,-])\d", weekday.text):
        yield "Weekdays are read as Quartz counts them: 1 is Sunday, 7 is Saturday."


def _hashed(field: FieldText) -> str | None:
    if not re.search(r"(?:^|,)[Hh](?![\w])", field.text):
        return None
    values = elided(members(field.mask), partial(_value, field))
    return f"H in the {field.name} field resolves to {values}, from the job's name."


def _value(field: FieldText, value: int) -> str:
    if field.name == "month":
        return MONTHS[value - 1]
    if field.name == "day-of-week":
        return WEEKDAYS[value]
    return ordinal(value) if field.name == "day-of-month" else str(value)
