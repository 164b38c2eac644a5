"""Calendar events of systemd, with the expressions of cron that have the same instants."""

import re
from datetime import UTC, datetime

import pytest

from noonmark.core.cron.expression import parse_cron
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
    "text",
    # A year, and days from the end have no translation; the rest is not systemd's.
    [
        "2027-01-01 09:00",
        "*-02~03",
        "0 9 * * *",
        "*/5 * * * *",
        "1-5 * * * *",
        "noon",
        "noon 09:00",
        "workdays 09:00",
        "Mon 09:00 sharp",
        "",
        "0 9 * * MON",
    ],
)
def test_what_cannot_be_said_or_systemd_would_refuse_is_not_translated(text: str) -> None:
    assert on_calendar(text) is None
