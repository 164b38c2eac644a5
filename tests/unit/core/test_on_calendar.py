"""Calendar events of systemd, with the expressions of cron that have the same instants."""

import re
from datetime import UTC, datetime

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from noonmark.core.cron.expression import parse_cron
from noonmark.core.cron.foreign import translation
from noonmark.core.cron.on_calendar import on_calendar
from noonmark.core.schedules.documents import Context, read_document

# From systemd.time(7), and what `systemd-analyze calendar` shows as their normalized form.
SAME = [
    ("minutely", "* * * * *"),
    ("hourly", "0 * * * *"),
    ("weekly", "0 0 * * MON"),
    ("quarterly", "0 0 1 1,4,7,10 *"),
    ("semiannually", "0 0 1 1,7 *"),
    ("annually", "0 0 1 1 *"),
    ("Sat,Thu,Mon..Wed,Sat..Sun", "0 0 * * SAT,THU,MON-WED,SAT-SUN"),
    ("Wednesday", "0 0 * * WED"),
    ("*-*-* 04:00:00", "0 4 * * *"),
    ("05:40", "40 5 * * *"),
    ("Mon..Fri 9:00", "0 9 * * MON-FRI"),
    ("Wed..Wed,Wed *:20..40/5", "20-40/5 * * * WED-WED,WED"),
    ("*:0/15", "0-59/15 * * * *"),
    ("*-*-1,15 0/6:30", "30 0-23/6 1,15 * *"),
    ("*-01/2-03 12:00:00", "0 12 3 1-12/2 *"),
    ("12-25 08:00", "0 8 25 12 *"),
    ("OnCalendar=Mon..Fri 09:00", "0 9 * * MON-FRI"),
    ("OnCalendar=*-*-01 03:00:00", "0 3 1 * *"),
    ("OnCalendar = Sat,Sun 09:00:00", "0 9 * * SAT,SUN"),
    ("oncalendar=weekly", "0 0 * * MON"),
    ("OnCalendar=*:0/15", "0-59/15 * * * *"),
]


@pytest.mark.parametrize(("text", "cron"), SAME)
def test_a_calendar_event_is_translated(text: str, cron: str) -> None:
    assert on_calendar(text) == {"cron": cron}
    parse_cron(cron)


def test_seconds_and_zone_are_kept() -> None:
    assert on_calendar("*:*:0/20 Europe/Berlin") == {
        "cron": "0-59/20 * * * * *",
        "seconds_field": "first",
        "timezone": "Europe/Berlin",
    }
    parse_cron("0-59/20 * * * * *", seconds_field="first")
    assert on_calendar("daily UTC") == {"cron": "0 0 * * *", "timezone": "UTC"}


@pytest.mark.parametrize(
    ("text", "rrule"),
    [
        (
            "Mon *-*-01..07 09:00",
            "FREQ=MONTHLY;BYDAY=MO;BYMONTHDAY=1,2,3,4,5,6,7;BYHOUR=9;BYMINUTE=0;BYSECOND=0",
        ),
        ("Fri *-*-13", "FREQ=MONTHLY;BYDAY=FR;BYMONTHDAY=13;BYHOUR=0;BYMINUTE=0;BYSECOND=0"),
        (
            "Sat..Mon,Wed *-2/5-1/15 0/12:30",
            "FREQ=MONTHLY;BYDAY=MO,WE,SA,SU;BYMONTHDAY=1,16,31;BYMONTH=2,7,12;BYHOUR=0,12;BYMINUTE=30;BYSECOND=0",
        ),
    ],
)
def test_weekday_and_day_together_are_a_rule_of_days_that_match_both(text: str, rrule: str) -> None:
    document = on_calendar(text)
    assert document == {"rrule": rrule, "dtstart": "2026-01-01T00:00:00"}
    after = datetime(2026, 1, 1, tzinfo=UTC)
    schedule = read_document(document, Context(after))
    days = {int(day) for day in re.findall(r"BYMONTHDAY=([0-9,]*)", rrule)[0].split(",")}
    for _ in range(10):
        after = schedule.next(after)
        assert after.day in days
        assert f"{after:%a}"[:2].upper() in rrule.partition("BYDAY=")[2].partition(";")[0]


@pytest.mark.parametrize(
    ("text", "document", "fires"),
    # The instants are what `systemd-analyze calendar --base-time=2026-06-01 --iterations` shows.
    [
        (
            "2027-*-01 09:00:00",
            {"cron": "0 0 9 1 * ? 2027", "dialect": "quartz"},
            [f"2027-{month:02}-01T09:00" for month in range(1, 13)],
        ),
        ("2026-12-24 10:00", {"at": "2026-12-24T10:00:00Z"}, ["2026-12-24T10:00"]),
        ("Thu 2026-12-24 10:00 UTC", {"at": "2026-12-24T10:00:00Z"}, ["2026-12-24T10:00"]),
        (
            "2026-12-24 10:00 Europe/Berlin",
            {"cron": "0 0 10 24 12 ? 2026", "dialect": "quartz", "timezone": "Europe/Berlin"},
            ["2026-12-24T09:00"],
        ),
        (
            "Thu,Fri 2026-12-24 8..9:00",
            {"cron": "0 0 8-9 24 12 ? 2026", "dialect": "quartz"},
            ["2026-12-24T08:00", "2026-12-24T09:00"],
        ),
        (
            "Fri 2027-01-* 10:00",
            {"cron": "0 0 10 ? 1 FRI 2027", "dialect": "quartz"},
            [f"2027-01-{day:02}T10:00" for day in (1, 8, 15, 22, 29)],
        ),
        (
            "2027..2028-12-25",
            {"cron": "0 0 0 25 12 ? 2027-2028", "dialect": "quartz"},
            ["2027-12-25T00:00", "2028-12-25T00:00"],
        ),
        (
            "2095/2-01-01",
            {"cron": "0 0 0 1 1 ? 2095-2099/2", "dialect": "quartz"},
            ["2095-01-01T00:00", "2097-01-01T00:00", "2099-01-01T00:00"],
        ),
        (
            "Mon 2027..2028-09-1..7",
            {
                "rrule": "FREQ=MONTHLY;BYDAY=MO;BYMONTHDAY=1,2,3,4,5,6,7;BYMONTH=9;BYHOUR=0;BYMINUTE=0;BYSECOND=0"
                ";UNTIL=20281231T235959",
                "dtstart": "2027-01-01T00:00:00",
            },
            ["2027-09-06T00:00", "2028-09-04T00:00"],
        ),
        (
            "2027-02~03",
            {"cron": "0 0 0 L-2 2 ? 2027", "dialect": "quartz"},
            ["2027-02-26T00:00"],
        ),
        (
            "Mon 2027-05~07/1",
            {
                "rrule": "FREQ=MONTHLY;BYDAY=MO;BYMONTHDAY=-7,-6,-5,-4,-3,-2,-1;BYMONTH=5;BYHOUR=0;BYMINUTE=0;BYSECOND=0"
                ";UNTIL=20271231T235959",
                "dtstart": "2027-01-01T00:00:00",
            },
            ["2027-05-31T00:00"],
        ),
    ],
)
def test_an_event_with_years_fires_in_these_years_only(text, document, fires) -> None:
    assert on_calendar(text) == document
    after = datetime(2026, 6, 1, tzinfo=UTC)
    schedule = read_document(document, Context(after))
    found = []
    while (following := schedule.next(after)) is not None:
        after = following
        found.append(f"{after:%Y-%m-%dT%H:%M}")
    assert found == fires


@pytest.mark.parametrize(
    ("text", "cron"),
    [("*-02~03", "0 0 L-2 2 *"), ("*-*~01 10:00", "0 10 L * *"), ("*-*~02/1", "0 0 L-1,L * *")],
)
def test_days_from_the_end_of_the_month_are_translated(text: str, cron: str) -> None:
    assert on_calendar(text) == {"cron": cron}
    parse_cron(cron)


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("Mon 2026-12-24 10:00", "it never occurs: 2026-12-24 is a Thursday"),
        ("OnCalendar=2027-02-30", "its date does not exist"),
        ("Mon 2027,2029-*-1..7", "no single schedule has a weekday, a day of the month and a list of years"),
    ],
)
def test_an_event_without_a_translation_says_why(text: str, why: str) -> None:
    assert on_calendar(text) == why
    assert translation(text) == f'is systemd\'s OnCalendar=, but {why}; write {{"cron": "0 9 * * MON-FRI"}}'


@pytest.mark.parametrize(
    "text",
    [
        "0 9 * * *",
        "*/5 * * * *",
        "1-5 * * * *",
        "noon",
        "noon 09:00",
        "workdays 09:00",
        "Mon 09:00 sharp",
        "",
        "0 9 * * MON",
        "*/2-01-01 09:00",
        "27-01-01x",
    ],
)
def test_what_systemd_would_refuse_is_not_translated(text: str) -> None:
    assert on_calendar(text) is None


@pytest.mark.parametrize(
    "text", ["0-/", "99..-/31", "Tue..Fri /0~990", "Mon /0-/02026", "FriTue 12~,", "*-*-,", "Mon.. 9:00"]
)
def test_what_is_only_like_a_calendar_event_is_none(text: str) -> None:
    assert on_calendar(text) is None


_PIECES = [
    "0",
    "1",
    "5",
    "31",
    "12",
    "2026",
    "*",
    "/",
    "-",
    "~",
    ",",
    "..",
    ":",
    " ",
    "Mon",
    "Tue..Fri",
    "UTC",
    "99",
]


@given(st.lists(st.sampled_from(_PIECES), max_size=10).map("".join))
@settings(max_examples=500, deadline=None)
def test_any_text_of_the_pieces_of_calendar_events_has_an_answer(text: str) -> None:
    on_calendar(text)
