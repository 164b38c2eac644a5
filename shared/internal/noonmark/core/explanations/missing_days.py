"""Sentences about days that not every month or year has: a 31st, a fifth Friday, a day 366."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Final

from noonmark.core.explanations.english import counted, joined, ordinal

_LENGTHS: Final = (31, 29, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31)
_SURE: Final = 28
"""Every month has this day."""
_WEEKS: Final = 4
"""Every month has each weekday this many times."""


def month_day_words(
    days: Collection[int], months: Sequence[int], *, others: bool = False, partly: bool = True
) -> list[str]:
    """Say which months lack a day of the month, and what happens in them.

    Args:
        days: days of the month; negative ones are counted from its end.
        months: the months that the rule allows, 1 to 12.
        others: whether a fire may also come from what is not in `days`.
        partly: whether to name months that lack some of the days and have others.
    """
    sizes = {abs(day) for day in days}
    # A range to the end of the month says itself that months end: of 28 to 31, no day is missed.
    late = sorted(size for size in sizes if size > _SURE and size - 1 not in sizes)
    found = []
    if 29 in late and 2 in months:
        late.remove(29)
        alone = tuple(months) == (2,) and not others and min(sizes) == 29
        leap = "Only leap years have a 29 February." if alone else "February has a 29th in leap years only."
        found.append(leap if 29 in days else "February has 29 days in leap years only.")
    late = [size for size in late if any(_LENGTHS[month - 1] < size for month in months)]
    if late and late[0] == min(sizes) and not others:
        found.append(f"Months {_lacking(late[:1], days)} are skipped.")
        late = late[1:]
    if late and partly:
        found.append(f"Months {_lacking(late, days)} fire only on the other days.")
    return found


def weekday_words(
    weekdays: Collection[tuple[int, str]], *, others: bool = False, year: bool = False
) -> list[str]:
    """Say that not every month has a fifth Friday, or not every year a 53rd, and what happens in the others.

    Args:
        weekdays: numbered weekdays with their names, negative numbers counted from the end.
        others: whether a fire may also come from what is not in `weekdays`.
        year: whether the weekdays are numbered within the year.
    """
    sure = 52 if year else _WEEKS
    names = list(dict.fromkeys(name for number, name in weekdays if abs(number) > sure))
    if not names:
        return []
    unit, place = ("Years", ordinal(sure + 1)) if year else ("Months", counted(sure + 1))
    others = others or len(names) > 1 or any(abs(number) <= sure for number, _ in weekdays)
    then = "fire only on the other days" if others else "are skipped"
    return [f"{unit} without a {place} {joined(names, 'or')} {then}."]


def year_part_words(year_days: Collection[int], weeks: Collection[int]) -> list[str]:
    """Say which days and weeks of a year not every year has; negative numbers are counted from its end."""
    found = []
    if 366 in map(abs, year_days):
        found.append("Only leap years have 366 days.")
    if 53 in map(abs, weeks):
        alone = len(set(map(abs, weeks))) == 1
        found.append(f"Years without a week 53 {'are skipped' if alone else 'fire only in the other weeks'}.")
    return found


def _lacking(sizes: Sequence[int], days: Collection[int]) -> str:
    if all(size in days for size in sizes):
        return f"without a {joined([ordinal(size) for size in sizes], 'or')}"
    return f"of fewer than {joined([str(size) for size in sizes], 'or')} days"
