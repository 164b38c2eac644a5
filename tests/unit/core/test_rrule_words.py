"""What the explainer says about a recurrence."""

from datetime import UTC, datetime

import pytest

from noonmark.core.explanations.recurrence import describe, missing_days, taken_from_start
from noonmark.core.explanations.schedule import explain
from noonmark.core.rrule.recurrence_set import parse_rrule
from noonmark.core.schedules.documents import Context, read_document

START = datetime(1996, 2, 29, 9, 0)  # noqa: DTZ001 - a wall-clock time
SAID = {
    "FREQ=DAILY;COUNT=10": "every day at 09:00, 10 times",
    "FREQ=DAILY;COUNT=1": "every day at 09:00, once",
    "FREQ=WEEKLY;INTERVAL=2;BYDAY=TU,SU": "every 2 weeks on Tuesday and Sunday at 09:00, "
    "counted from 29 February 1996 09:00",
    "FREQ=WEEKLY;INTERVAL=2;BYDAY=TU,SU;WKST=SU": "every 2 weeks on Tuesday and Sunday at 09:00 "
    "(weeks start on Sunday), counted from 29 February 1996 09:00",
    "FREQ=MONTHLY;BYDAY=MO,TU,WE,TH,FR;BYSETPOS=-1": "the last weekday of each month at 09:00",
    "FREQ=MONTHLY;BYDAY=TU,WE,TH;BYSETPOS=3": "the 3rd Tuesday, Wednesday or Thursday of each month at 09:00",
    "FREQ=MONTHLY;BYDAY=-1SU,1FR": "the 1st Friday and the last Sunday of each month at 09:00",
    "FREQ=MONTHLY;BYMONTHDAY=-1,15,-3": "the 15th, the 3rd last day and the last day of each month at 09:00",
    "FREQ=MONTHLY;BYDAY=FR;BYMONTHDAY=13": "the 13th of each month if that is a Friday at 09:00",
    "FREQ=YEARLY": "every year on 29 February at 09:00",
    "FREQ=YEARLY;BYYEARDAY=1,-1": "day 1 and the last day of each year at 09:00",
    "FREQ=YEARLY;BYDAY=20MO": "the 20th Monday of each year at 09:00",
    "FREQ=YEARLY;BYMONTH=3;BYDAY=2TH": "the 2nd Thursday of each March at 09:00",
    "FREQ=YEARLY;BYWEEKNO=20;BYDAY=MO": "every Monday in week 20 of the year at 09:00",
    "FREQ=YEARLY;BYWEEKNO=20": "every Thursday in week 20 of the year at 09:00",
    "FREQ=YEARLY;BYMONTHDAY=30": "the 30th of each month at 09:00",
    "FREQ=YEARLY;BYMONTH=3;BYDAY=MO": "every Monday in March at 09:00",
    "FREQ=MONTHLY;BYDAY=MO,WE": "every Monday and Wednesday at 09:00",
    "FREQ=YEARLY;BYDAY=MO,2TU": "every Monday and the 2nd Tuesday of each year at 09:00",
    "FREQ=DAILY;BYMONTHDAY=1;BYMONTH=5": "every year on 1 May at 09:00",
    "FREQ=DAILY;INTERVAL=10;BYDAY=MO": "every 10 days if that is a Monday at 09:00, counted from "
    "29 February 1996 09:00",
    "FREQ=MONTHLY;INTERVAL=2;BYDAY=MO,TU,WE,TH,FR": "every 2 months on every day from Monday to Friday at 09:00, "
    "counted from 29 February 1996 09:00",
    "FREQ=HOURLY;BYMONTH=3;BYMINUTE=0": "every hour in March at minute 0",
    "FREQ=YEARLY;BYMONTH=3,4;BYDAY=MO,TU;BYSETPOS=1": "the 1st Monday or Tuesday of March and April together, "
    "each year at 09:00",
    "FREQ=MINUTELY;INTERVAL=20;BYHOUR=9,10,11;BYDAY=SA,SU": "every 20 minutes on Saturday and Sunday in the hours "
    "9 to 11, counted from 29 February 1996 09:00",
    "FREQ=SECONDLY;BYSECOND=0": "every second at second 0",
    "FREQ=HOURLY;BYMINUTE=5,35;UNTIL=19970101T000000Z": "every hour at minutes 5 and 35, "
    "until 1 January 1997 00:00 UTC",
    "FREQ=DAILY;BYHOUR=9,17;BYMINUTE=0,30;BYSETPOS=1,-1": "every day at 09:00, 09:30, 17:00 and 17:30, "
    "but of these times in one day only the 1st and the last",
    "FREQ=DAILY;BYHOUR=0,1,2,3,4,5,6,7": "every day in the hours 0 to 7 at minute 0",
    "FREQ=DAILY\\nRDATE:19980101T050000\\nEXDATE:19970903T090000,19970904T090000Z": "every day at 09:00; and on "
    "1 January 1998 05:00, except on 3 September 1997 09:00 and 4 September 1997 09:00 UTC",
    "RDATE:" + ",".join(f"199801{day:02}T050000" for day in range(1, 10)): "on 9 single dates from "
    "1 January 1998 05:00 to 9 January 1998 05:00",
}


@pytest.mark.parametrize(("text", "words"), SAID.items(), ids=[text[:50] for text in SAID])
def test_a_recurrence_is_said_in_words(text, words):
    assert describe(parse_rrule(text, dtstart=START)) == words


def test_a_single_rule_is_said_with_its_exceptions():
    rule = parse_rrule("RRULE:FREQ=DAILY\nEXDATE:19970903T090000", dtstart=START).rules[0]
    assert describe(rule) == "every day at 09:00, except on 3 September 1997 09:00"


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (
            "FREQ=YEARLY;BYWEEKNO=20",
            "The rule has no BYDAY, so it fires on the weekday of DTSTART, Thursday.",
        ),
        ("FREQ=WEEKLY", "The rule has no BYDAY, so it fires on the weekday of DTSTART, Thursday."),
        ("FREQ=MONTHLY", "The rule names no day, so it fires on the day of DTSTART, the 29th of the month."),
        (
            "FREQ=YEARLY;BYMONTH=5",
            "The rule names no day, so it fires on the day of DTSTART, the 29th of the month.",
        ),
        ("FREQ=YEARLY", "The rule names no day, so it fires on the date of DTSTART, 29 February."),
        ("FREQ=WEEKLY;BYDAY=TH", None),
        ("FREQ=YEARLY;BYWEEKNO=20;BYMONTHDAY=15", None),
        ("FREQ=DAILY", None),
    ],
)
def test_days_that_only_dtstart_names_are_pointed_out(text, words):
    assert taken_from_start(parse_rrule(text, dtstart=START).rules[0]) == words


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("FREQ=MONTHLY;BYMONTHDAY=30", "Months without a 30th are skipped."),
        ("FREQ=YEARLY;BYMONTHDAY=31", "Months without a 31st are skipped."),
        ("FREQ=DAILY;BYMONTHDAY=31", "Months without a 31st are skipped."),
        ("FREQ=MONTHLY;BYMONTHDAY=31;BYDAY=FR", "Months without a 31st are skipped."),
        ("FREQ=MONTHLY;BYMONTHDAY=15,31", "Months without a 31st fire only on the other days."),
        ("FREQ=MONTHLY;BYMONTHDAY=-31", "Months of fewer than 31 days are skipped."),
        ("FREQ=MONTHLY;BYMONTHDAY=29", "February has a 29th in leap years only."),
        ("FREQ=MONTHLY", "February has a 29th in leap years only."),
        ("FREQ=YEARLY", "Only leap years have a 29 February."),
        ("FREQ=YEARLY;BYYEARDAY=366", "Only leap years have 366 days."),
        ("FREQ=YEARLY;BYWEEKNO=53;BYDAY=MO", "Years without a week 53 are skipped."),
        ("FREQ=YEARLY;BYWEEKNO=1,53;BYDAY=MO", "Years without a week 53 fire only in the other weeks."),
        ("FREQ=MONTHLY;BYDAY=5FR", "Months without a fifth Friday are skipped."),
        ("FREQ=MONTHLY;BYDAY=-5FR", "Months without a fifth Friday are skipped."),
        ("FREQ=MONTHLY;BYDAY=FR;BYSETPOS=5", "Months without a fifth Friday are skipped."),
        ("FREQ=MONTHLY;BYDAY=1MO,5FR", "Months without a fifth Friday fire only on the other days."),
        ("FREQ=YEARLY;BYDAY=53MO", "Years without a 53rd Monday are skipped."),
        ("FREQ=MONTHLY;BYMONTHDAY=28,29,30,31;BYSETPOS=-1", None),
        ("FREQ=MONTHLY;BYMONTHDAY=15,31;BYSETPOS=2", None),
        ("FREQ=YEARLY;BYMONTH=1,3;BYMONTHDAY=31", None),
        ("FREQ=MONTHLY;BYMONTHDAY=-1", None),
        ("FREQ=YEARLY;BYDAY=5FR", None),
        ("FREQ=DAILY", None),
    ],
)
def test_days_that_not_every_month_or_year_has_are_pointed_out(text, words):
    assert missing_days(parse_rrule(text, dtstart=START).rules[0]) == [words] * (words is not None)


def test_an_explanation_says_what_becomes_of_months_without_the_day():
    def details(text):
        document, after = {"rrule": text, "timezone": "UTC"}, datetime(2026, 1, 1, tzinfo=UTC)
        return explain(read_document(document, Context(after)), after).details

    assert "Months without a 30th are skipped." in details(
        "DTSTART:20260130T090000\nRRULE:FREQ=MONTHLY;BYMONTHDAY=30"
    )
    # Another rule of the set fires in those months.
    both = "DTSTART:20260130T090000\nRRULE:FREQ=MONTHLY;BYMONTHDAY=30\nRRULE:FREQ=MONTHLY;BYMONTHDAY=1"
    assert "Months without a 30th fire only on the other days." in details(both)
