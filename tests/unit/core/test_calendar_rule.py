"""Rules under calendars, case by case; tests/property walks through all times."""

# ruff: noqa: DTZ001
from datetime import date, datetime, timedelta

import pytest

from noonmark.core.calendars.calendar import Calendar, OnHoliday, OpenDays
from noonmark.core.calendars.rule import CalendarRule
from noonmark.core.cron.expression import parse_cron

SKIP, NEXT, PREVIOUS = OnHoliday.SKIP, OnHoliday.NEXT_BUSINESS_DAY, OnHoliday.PREVIOUS_BUSINESS_DAY
ALL_WEEK = ["MON", "TUE", "WED", "THU", "FRI", "SAT", "SUN"]


def days_of(exclude=None, include=None):
    return OpenDays(
        (("holidays", Calendar.parse(exclude)),) if exclude else (),
        (("business", Calendar.parse(include)),) if include else (),
    )


def test_a_holiday_is_skipped_or_moved_at_the_same_time_of_day():
    rule, days = parse_cron("30 9 * * *"), days_of({"weekdays": ["SAT", "SUN"], "dates": ["2026-12-25"]})
    thursday, monday = datetime(2026, 12, 24, 9, 30), datetime(2026, 12, 28, 9, 30)
    fires = {mode: CalendarRule(rule, days, mode).next(thursday) for mode in OnHoliday}
    assert fires == {SKIP: monday, NEXT: monday, PREVIOUS: monday}
    rule = parse_cron("30 9 25 12 *")
    fires = {mode: CalendarRule(rule, days, mode).next(datetime(2026, 1, 1)) for mode in OnHoliday}
    assert fires == {SKIP: datetime(2028, 12, 25, 9, 30), NEXT: monday, PREVIOUS: thursday}


def test_a_moved_fire_names_the_first_day_it_comes_from_and_an_own_one_names_none():
    days = days_of({"ranges": [{"first": "2026-12-24", "last": "2026-12-27"}]})
    weekly = CalendarRule(parse_cron("0 9 * * THU-SUN"), days, NEXT)
    assert weekly.note_of(datetime(2026, 12, 28, 9)) == "moved: 2026-12-24 is in calendar holidays"
    assert weekly.note_of(datetime(2026, 12, 28, 10)) is None
    daily = CalendarRule(parse_cron("0 9 * * *"), days, NEXT)
    assert daily.note_of(datetime(2026, 12, 28, 9)) is None
    assert CalendarRule(parse_cron("0 9 * * *"), days, SKIP).note_of(datetime(2026, 12, 28, 9)) is None


def test_what_calendars_took_away_is_told_with_the_reason_up_to_the_limit():
    rule = CalendarRule(parse_cron("0 9,17 * * *"), days_of({"dates": ["2026-12-25", "2026-12-31"]}))
    told = rule.skipped(datetime(2026, 12, 1), datetime(2027, 1, 31), 3)
    assert told == [
        (datetime(2026, 12, 25, 9), "skipped: 2026-12-25 is in calendar holidays"),
        (datetime(2026, 12, 25, 17), "skipped: 2026-12-25 is in calendar holidays"),
        (datetime(2026, 12, 31, 9), "skipped: 2026-12-31 is in calendar holidays"),
    ]


def test_a_fire_without_an_open_day_within_a_year_is_told_as_skipped():
    days = days_of({"ranges": [{"first": "2026-01-01", "last": "2028-12-31"}]})
    rule = CalendarRule(parse_cron("0 9 1 6 *"), days, NEXT)
    assert rule.skipped(datetime(2026, 1, 1), datetime(2029, 12, 31), 10) == [
        (
            datetime(year, 6, 1, 9),
            f"skipped: {year}-06-01 is in calendar holidays, and no day in the 366 after it is open",
        )
        for year in (2026, 2027)
    ]
    assert rule.next(datetime(2026, 1, 1)) == datetime(2029, 1, 1, 9)
    back = CalendarRule(parse_cron("0 9 1 6 *"), days, PREVIOUS)
    assert back.next(datetime(2025, 7, 1)) == datetime(2025, 12, 31, 9)
    assert back.next(datetime(2026, 1, 1)) == datetime(2029, 6, 1, 9)


@pytest.mark.parametrize("mode", OnHoliday)
@pytest.mark.parametrize("expression", ["* * * * *", "0 9 * * *", "0 0 29 2 MON", "0 9 * * SAT"])
def test_a_rule_whose_days_are_all_closed_has_no_fire_and_its_search_ends(expression, mode):
    rule = CalendarRule(parse_cron(expression), days_of({"weekdays": ALL_WEEK}), mode)
    at = datetime(2026, 11, 28, 12)
    assert (rule.next(at), rule.previous(at), rule.count(at, at + timedelta(days=3650))) == (None, None, 0)


def test_only_closed_days_of_a_rule_end_its_search():
    weekly = CalendarRule(parse_cron("0 9 * * SAT"), days_of({"weekdays": ["SAT"]}))
    assert weekly.next(datetime(2026, 11, 28)) is None
    assert weekly.previous(datetime(2026, 11, 28)) is None


@pytest.mark.parametrize("mode", OnHoliday)
def test_an_open_day_years_away_is_found(mode):
    days = days_of(None, {"dates": ["2040-06-01"]})
    rule = CalendarRule(parse_cron("0 9 * * *"), days, mode)
    assert rule.next(datetime(2026, 1, 1)) == datetime(2040, 6, 1, 9)
    assert rule.next(datetime(2040, 6, 1, 9)) is None
    assert rule.previous(datetime(2060, 1, 1)) == datetime(2040, 6, 1, 9)


@pytest.mark.parametrize("mode", OnHoliday)
def test_the_ends_of_time_are_no_obstacle(mode):
    rule = CalendarRule(parse_cron("0 9 * * *"), days_of({"weekdays": ["SAT", "SUN"]}), mode)
    assert rule.next(datetime(9999, 12, 31, 12)) is None
    assert rule.previous(datetime(1, 1, 1, 1)) is None
    assert rule.previous(datetime(9999, 12, 31, 12)) == datetime(9999, 12, 31, 9)


class Counting:
    """A rule that notes how often it is asked."""

    def __init__(self, rule):
        self.rule, self.asked = rule, 0

    def __getattr__(self, name):
        self.asked += 1
        return getattr(self.rule, name)


def test_ten_years_of_minutes_are_counted_by_stretches_of_open_days():
    days = days_of({"weekdays": ["SAT", "SUN"], "yearly": ["12-25", "01-01"]})
    begin, end = datetime(2025, 12, 31, 23, 59), datetime(2035, 12, 31, 23, 59)
    open_days = sum(days.is_open(date(2026, 1, 1) + timedelta(days=n)) for n in range(3652))
    minutes = parse_cron("* * * * *")
    rule = Counting(minutes)
    assert CalendarRule(rule, days, SKIP).count(begin, end) == 1440 * open_days
    assert rule.asked < 600
    # What is moved comes to minutes that fire anyway.
    assert CalendarRule(minutes, days, NEXT).count(begin, end) == 1440 * open_days
    assert CalendarRule(minutes, days, PREVIOUS).count(begin, end) == 1440 * open_days


def test_equal_rules_are_equal_keys():
    days = [days_of({"dates": ["2026-12-25"]}) for _ in range(2)]
    assert len({CalendarRule(parse_cron("0 9 * * *"), one, NEXT) for one in days}) == 1
