"""Calendars as users write them, and the days that they open and close."""

# ruff: noqa: DTZ001
from datetime import date, datetime

import pytest

from noonmark.core.calendars.calendar import (
    LAST_DAY,
    MAX_DATES,
    Calendar,
    CalendarError,
    DayRange,
    OpenDays,
)

FULL = {
    "dates": ["2026-12-25", "2026-07-04", "2026-12-25"],
    "ranges": [
        {"first": "2027-01-01", "last": "2027-01-05"},
        {"first": "2026-12-24", "last": "2026-12-31"},
        {"first": "2026-08-01", "last": "2026-08-01"},
    ],
    "weekdays": ["sun", "SAT", "Sunday"],
    "yearly": ["12-25", "02-29"],
}


def open_days(exclude=None, include=None):
    return OpenDays(
        tuple((name, Calendar.parse(body)) for name, body in (exclude or {}).items()),
        tuple((name, Calendar.parse(body)) for name, body in (include or {}).items()),
    )


def test_a_calendar_is_sorted_without_repetitions_and_with_its_ranges_joined():
    assert Calendar.parse(FULL).body() == {
        "dates": ["2026-07-04", "2026-12-25"],
        "ranges": [
            {"first": "2026-08-01", "last": "2026-08-01"},
            {"first": "2026-12-24", "last": "2027-01-05"},
        ],
        "weekdays": ["SAT", "SUN"],
        "yearly": ["02-29", "12-25"],
    }


@pytest.mark.parametrize("body", [FULL, {"dates": []}, {"weekdays": ["MON"]}, {"yearly": ["02-29"]}])
def test_the_body_of_a_calendar_reads_back_as_the_same_calendar(body):
    calendar = Calendar.parse(body)
    again = Calendar.parse(calendar.body())
    assert (again, again.body(), again.digest(), hash(again)) == (
        calendar,
        calendar.body(),
        calendar.digest(),
        hash(calendar),
    )


def test_the_digest_names_the_content_and_not_how_it_was_written():
    one = Calendar.parse({"dates": ["2026-01-02", "2026-01-01"]})
    same = Calendar.parse({"dates": [date(2026, 1, 1), "2026-01-02"], "weekdays": []})
    other = Calendar.parse({"dates": ["2026-01-01"]})
    assert one == same
    assert one.digest() == same.digest() == "91c388cb5bd85f9f72d5f76b22a43bc0"
    assert one != other
    assert one.digest() != other.digest()


@pytest.mark.parametrize(
    ("body", "days", "others"),
    [
        ({"dates": ["2026-12-25"]}, ["2026-12-25"], ["2026-12-24", "2027-12-25"]),
        (
            {
                "ranges": [
                    {"first": "2026-12-24", "last": "2027-01-01"},
                    {"first": "2026-02-01", "last": "2026-02-03"},
                ]
            },
            ["2026-02-01", "2026-02-03", "2026-12-24", "2026-12-31", "2027-01-01"],
            ["2026-01-31", "2026-02-04", "2026-12-23", "2027-01-02"],
        ),
        ({"weekdays": ["SAT", "SUN"]}, ["2026-11-28", "2026-11-29"], ["2026-11-27", "2026-11-30"]),
        ({"yearly": ["12-25"]}, ["1970-12-25", "2199-12-25", "2500-12-25"], ["2026-12-24"]),
        ({"yearly": ["02-29"]}, ["2028-02-29"], ["2027-02-28", "2027-03-01"]),
        ({"dates": []}, [], ["2026-01-01"]),
    ],
)
def test_a_day_is_in_a_calendar_by_its_date_range_weekday_or_day_of_the_year(body, days, others):
    calendar = Calendar.parse(body)
    assert [day for day in days if date.fromisoformat(day) not in calendar] == []
    assert [day for day in others if date.fromisoformat(day) in calendar] == []


def test_the_days_of_a_calendar_are_listed_in_order():
    calendar = Calendar.parse(FULL)
    found = list(calendar.days(date(2026, 12, 18), date(2026, 12, 25)))
    assert [day.day for day in found] == [19, 20, 24, 25]


@pytest.mark.parametrize(
    ("body", "pointer", "message"),
    [
        ("2026-12-25", "", "calendar is a string; expected an object with 'dates', 'ranges', 'weekdays' and"),
        ({}, "", "calendar has no days; expected at least one of"),
        ({"days": []}, "/days", "unknown field 'days'; expected dates, ranges, weekdays, yearly"),
        ({"a/b": []}, "/a~1b", "unknown field 'a/b'"),
        ({"dates": "2026-12-25"}, "/dates", "dates is a string; expected a list"),
        ({"dates": None}, "/dates", "dates is null; expected a list"),
        ({"dates": {"2026-12-25": 1}}, "/dates", "dates is an object; expected a list"),
        ({"dates": ["2026-12-24", 20261225]}, "/dates/1", "dates[1] is a number; expected a date such as"),
        ({"dates": ["25.12.2026"]}, "/dates/0", "dates[0] is '25.12.2026', which is not a date; expected"),
        ({"dates": ["20261225"]}, "/dates/0", "dates[0] is '20261225', which is not a date"),
        ({"dates": ["2026-02-30"]}, "/dates/0", "dates[0] is 2026-02-30: day"),
        ({"dates": ["1969-12-31"]}, "/dates/0", "from 1970-01-01 to 2199-12-31"),
        ({"dates": [date(2200, 1, 1)]}, "/dates/0", "dates[0] is 2200-01-01; expected"),
        ({"dates": [datetime(2026, 1, 1)]}, "/dates/0", "dates[0] is an object; expected"),
        (
            {"dates": ["2026-01-01"] * (MAX_DATES + 1)},
            "/dates",
            "dates holds 10,001 items; expected at most 10,000",
        ),
        ({"ranges": ["2026-12-25"]}, "/ranges/0", "ranges[0] is a string; expected an object with the dates"),
        (
            {"ranges": [{"first": "2026-12-25"}]},
            "/ranges/0",
            "ranges[0] has other fields than 'first' and 'last'",
        ),
        (
            {"ranges": [{"first": "2026-12-25", "last": "soon"}]},
            "/ranges/0/last",
            "ranges[0].last is 'soon', which is not a date",
        ),
        (
            {"ranges": [{"first": "2026-12-25", "last": "2026-12-24"}]},
            "/ranges/0/last",
            "ranges[0] ends on 2026-12-24, before it begins on 2026-12-25; expected 2026-12-25 or a later day",
        ),
        (
            {"weekdays": ["SA"]},
            "/weekdays/0",
            "weekdays[0] is 'SA'; expected MON, TUE, WED, THU, FRI, SAT, SUN",
        ),
        ({"weekdays": [6]}, "/weekdays/0", "weekdays[0] is a number; expected MON"),
        ({"yearly": ["2-29"]}, "/yearly/0", "yearly[0] is '2-29'; expected month and day such as 12-25"),
        ({"yearly": ["02-30"]}, "/yearly/0", "yearly[0] is 02-30: day"),
    ],
)
def test_a_wrong_calendar_is_refused_with_the_place_and_what_is_allowed_there(body, pointer, message):
    with pytest.raises(CalendarError) as caught:
        Calendar.parse(body)
    assert caught.value.pointer == pointer
    assert message in caught.value.message


def test_a_day_is_open_in_any_included_calendar_and_in_no_excluded_one():
    days = open_days(
        {"us-holidays": {"dates": ["2026-12-25"]}, "inventory": {"dates": ["2026-12-29", "2026-12-25"]}},
        {"weeks": {"weekdays": ["MON", "TUE", "FRI"]}, "extra": {"dates": ["2026-12-26"]}},
    )
    reasons = {day: days.closed_by(date(2026, 12, day)) for day in range(24, 30)}
    assert reasons == {
        24: "2026-12-24 is in none of the calendars weeks, extra",
        25: "2026-12-25 is in calendar us-holidays",
        26: None,
        27: "2026-12-27 is in none of the calendars weeks, extra",
        28: None,
        29: "2026-12-29 is in calendar inventory",
    }
    assert [days.is_open(date(2026, 12, day)) for day in reasons] == [
        not reason for reason in reasons.values()
    ]


def test_one_included_calendar_is_named_alone():
    days = open_days(include={"quarter-ends": {"yearly": ["12-31"]}})
    assert days.closed_by(date(2026, 12, 30)) == "2026-12-30 is not in calendar quarter-ends"


def test_the_next_and_the_previous_open_day_are_not_the_day_itself():
    days = open_days({"weekend": {"weekdays": ["SAT", "SUN"]}})
    friday, monday = date(2026, 11, 27), date(2026, 11, 30)
    assert days.next_open(friday) == monday
    assert days.previous_open(monday) == friday
    assert days.next_open(date(2026, 11, 25)) == date(2026, 11, 26)


def test_the_search_for_an_open_day_ends_at_its_bound_and_at_the_last_year():
    never = open_days({"all": {"weekdays": ["MON", "TUE", "WED", "THU", "FRI", "SAT", "SUN"]}})
    once = open_days(include={"once": {"dates": ["2028-01-01"]}})
    assert never.next_open(date(2026, 1, 1)) is None
    assert never.previous_open(date(2026, 1, 1)) is None
    assert never.next_open(date.max) is None
    assert never.previous_open(date.min) is None
    assert once.next_open(date(2026, 12, 31)) == date(2028, 1, 1)
    assert once.next_open(date(2026, 12, 30)) is None
    assert once.next_open(date(2026, 12, 30), within_days=1000) == date(2028, 1, 1)


def test_open_stretches_leave_the_closed_days_out_and_are_cut_at_new_year():
    days = open_days({"holidays": {"dates": ["2026-12-25", "2026-12-26"]}})
    assert list(days.open_stretches(date(2026, 12, 24), date(2027, 1, 2))) == [
        DayRange(date(2026, 12, 24), date(2026, 12, 24)),
        DayRange(date(2026, 12, 27), date(2026, 12, 31)),
        DayRange(date(2027, 1, 1), date(2027, 1, 2)),
    ]
    assert list(days.open_stretches(date(2026, 12, 25), date(2026, 12, 26))) == []


def test_the_largest_calendar_is_read_and_asked_quickly_enough_to_be_used_as_a_key():
    first = LAST_DAY.toordinal() - MAX_DATES + 1
    calendar = Calendar.parse({"dates": [date.fromordinal(first + n).isoformat() for n in range(MAX_DATES)]})
    assert {calendar: 1}[Calendar.parse(calendar.body())] == 1
    assert LAST_DAY in calendar
