"""What is said of months that lack a day is what a calendar shows."""

from __future__ import annotations

import re
from calendar import monthrange
from itertools import combinations

import pytest

from noonmark.core.explanations.missing_days import month_day_words

YEARS = range(2024, 2032)
CANDIDATES = (1, 28, 29, 30, 31, -1, -29, -30, -31)
MONTHS = (tuple(range(1, 13)), (2,), (1, 3), (4, 6), (1, 2), (2, 4), (1, 4))


def fires(days, year, month):
    """The days of a month that the rule names."""
    last = monthrange(year, month)[1]
    found = {day if day > 0 else last + 1 + day for day in days if abs(day) <= last}
    return sorted(found)


@pytest.mark.parametrize("months", MONTHS, ids=str)
@pytest.mark.parametrize("size", [1, 2, 3])
def test_exactly_the_months_without_any_of_the_days_are_said_to_be_skipped(months, size):
    for days in combinations(CANDIDATES, size):
        said = month_day_words(days, months)
        skipped = re.findall(
            r"Months (?:without a|of fewer than) (\d+)\w* (?:days )?are skipped", " ".join(said)
        )
        least = int(skipped[0]) if skipped else 29 if any("leap years" in line for line in said) else 0
        for year in YEARS:
            for month in months:
                last = monthrange(year, month)[1]
                if not fires(days, year, month):
                    assert last < least, (days, months, year, month, said)
                elif skipped:
                    assert last >= least, (days, months, year, month, said)


@pytest.mark.parametrize("months", MONTHS, ids=str)
def test_nothing_is_said_where_every_month_has_every_day(months):
    for size in (1, 2, 3):
        for days in combinations(CANDIDATES, size):
            lacks = any(
                abs(day) > monthrange(year, month)[1] for day in days for year in YEARS for month in months
            )
            assert lacks or month_day_words(days, months) == [], (days, months)
