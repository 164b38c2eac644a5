"""Recurrence texts that are refused: every message names the place and what is allowed there."""

# ruff: noqa: DTZ001 - recurrence rules are about naive wall-clock times
from datetime import datetime

import pytest

from noonmark.core.rrule.parts import MAX_COUNT
from noonmark.core.rrule.recurrence_set import MAX_RULES, RRuleError, parse_rrule

START = datetime(2026, 1, 5, 9)

REFUSED = [
    # text with ^ before the character that the message names, field, words of the message
    ("FREQ=^FORTNIGHTLY", "FREQ", "use SECONDLY, MINUTELY, HOURLY, DAILY, WEEKLY, MONTHLY, YEARLY"),
    ("^INTERVAL=2", "FREQ", "has no FREQ"),
    ("FREQ=DAILY;^COLOUR=RED", None, "expected NAME=VALUE"),
    ("FREQ=DAILY;^RSCALE=HEBREW", None, "RFC 7529"),
    ("FREQ=DAILY;^;BYHOUR=9", None, "nothing is before the semicolon"),
    ("FREQ=DAILY;^;", None, "nothing is before the semicolon"),
    ("FREQ=DAILY;^INTERVAL", None, "is not known"),
    ("FREQ=DAILY;INTERVAL=2;^INTERVAL=3", "INTERVAL", "is given again"),
    ("FREQ=DAILY;INTERVAL=^0", "INTERVAL", "a whole number from 1 to 999999999"),
    ("FREQ=DAILY;INTERVAL=^-1", "INTERVAL", "a whole number"),
    ("FREQ=DAILY;INTERVAL=^1.5", "INTERVAL", "a whole number"),
    ("FREQ=DAILY;INTERVAL=^²", "INTERVAL", "a whole number"),
    ("FREQ=DAILY;COUNT=^0", "COUNT", f"from 1 to {MAX_COUNT}"),
    (f"FREQ=DAILY;COUNT=^{MAX_COUNT + 1}", "COUNT", f"from 1 to {MAX_COUNT}"),
    (
        "FREQ=DAILY;COUNT=3;UNTIL=^20270101T000000",
        "UNTIL",
        "cannot be combined with COUNT; use one of the two",
    ),
    ("FREQ=DAILY;UNTIL=^20270101", "UNTIL", "has no time of day; write 20260308T023000 (wall clock) or"),
    ("FREQ=DAILY;UNTIL=^tomorrow", "UNTIL", "not a date with a time of day"),
    ("FREQ=DAILY;UNTIL=^20270229T000000", "UNTIL", "does not exist"),
    ("FREQ=DAILY;BYMONTH=1,^13", "BYMONTH", "use 1 to 12"),
    ("FREQ=DAILY;BYMONTH=^-1", "BYMONTH", "use 1 to 12"),
    ("FREQ=DAILY;BYHOUR=9,^24", "BYHOUR", "use 0 to 23"),
    ("FREQ=DAILY;BYHOUR=^+9", "BYHOUR", "without a sign"),
    ("FREQ=DAILY;BYMINUTE=^60", "BYMINUTE", "use 0 to 59"),
    ("FREQ=DAILY;BYSECOND=^60", "BYSECOND", "leap second"),
    ("FREQ=MONTHLY;BYMONTHDAY=^0", "BYMONTHDAY", "use 1 to 31 or -31 to -1"),
    ("FREQ=MONTHLY;BYMONTHDAY=1, ,3".replace(" ", "^"), "BYMONTHDAY", "use 1 to 31"),
    ("FREQ=YEARLY;BYYEARDAY=^-367", "BYYEARDAY", "use 1 to 366 or -366 to -1"),
    ("FREQ=YEARLY;BYWEEKNO=^54", "BYWEEKNO", "use 1 to 53 or -53 to -1"),
    ("FREQ=MONTHLY;BYDAY=MO;BYSETPOS=^0", "BYSETPOS", "use 1 to 366 or -366 to -1"),
    ("FREQ=WEEKLY;BYDAY=MO,^FUNDAY", "BYDAY", "use MO, TU, WE, TH, FR, SA, SU"),
    ("FREQ=MONTHLY;BYDAY=^54MO", "BYDAY", "a number 1 to 53"),
    ("FREQ=MONTHLY;BYDAY=^0MO", "BYDAY", "a number 1 to 53"),
    ("FREQ=WEEKLY;BYDAY=^1MO", "BYDAY", "no meaning with FREQ=WEEKLY; use MO,"),
    ("FREQ=YEARLY;BYWEEKNO=20;BYDAY=^1MO", "BYDAY", "no meaning with BYWEEKNO"),
    ("FREQ=MONTHLY;BYWEEKNO=^20", "BYWEEKNO", "no meaning with FREQ=MONTHLY; use it with FREQ=YEARLY only"),
    ("FREQ=DAILY;BYYEARDAY=^20", "BYYEARDAY", "YEARLY, HOURLY, MINUTELY, SECONDLY"),
    ("FREQ=WEEKLY;BYMONTHDAY=^20", "BYMONTHDAY", "no meaning with FREQ=WEEKLY"),
    ("FREQ=MONTHLY;BYSETPOS=^1", "BYSETPOS", "no set to choose from"),
    ("FREQ=WEEKLY;WKST=^1", "WKST", "use MO, TU"),
    ("RRULE:FREQ=DAILY\n^EXRULE:FREQ=WEEKLY", "EXRULE", "RFC 5545 removed it"),
    ("RRULE:FREQ=DAILY\n^DTEND:20260105T090000", None, "expected RRULE, RDATE, EXDATE, DTSTART"),
    ("RRULE:FREQ=DAILY\n^!!", None, "is not a property"),
    ("RRULE^ FREQ=DAILY", "RRULE", "needs a colon"),
    ("RRULE;^X=Y:FREQ=DAILY", "RRULE", "takes no parameter"),
    (
        "RRULE:FREQ=DAILY\nRDATE;^VALUE=DATE:20260105",
        "RDATE",
        "every other value is a date with a time of day",
    ),
    (
        "RRULE:FREQ=DAILY\nEXDATE;VALUE=DATE:^20260105T090000",
        "EXDATE",
        "is not a day: write a date such as 20260308",
    ),
    ("RRULE:FREQ=DAILY\nEXDATE;VALUE=DATE:^20260230", "EXDATE", "is not a day"),
    ("RRULE:FREQ=DAILY\nEXDATE;VALUE=DATE:^00010101", "EXDATE", "write a date in 1900 or later"),
    ("RRULE:FREQ=SECONDLY\nEXDATE;VALUE=DATE:^20270105", "EXDATE", "more than 10000 times"),
    ("RDATE;^VALUE=PERIOD:20260105T090000/PT1H", "RDATE", "every other value is a date with a time of day"),
    ("RRULE:FREQ=DAILY\nEXDATE:20260106T090000,^20260107", "EXDATE", "has no time of day"),
    ("RRULE:FREQ=DAILY\nEXDATE:20260106T090000,^", "EXDATE", "not a date with a time of day"),
    ("RDATE;TZID=Europe/Paris:^20260105T090000Z", "RDATE", "is in UTC, but the line names the zone"),
    (
        "RRULE:FREQ=DAILY\nDTSTART:^20260106T090000",
        "DTSTART",
        "differs from the field dtstart",
    ),
    ("DTSTART:20260105T090000\n^DTSTART:20260105T090000\nFREQ=DAILY", "DTSTART", "a second DTSTART"),
    ("^", None, "is empty"),
    ("\n".join(["RRULE:FREQ=DAILY"] * MAX_RULES + ["^RRULE:FREQ=DAILY"]), "RRULE", "one RRULE too many"),
]


@pytest.mark.parametrize(("marked", "field", "words"), REFUSED, ids=[each[0][-60:] for each in REFUSED])
def test_what_is_refused_is_named_with_its_place_and_what_is_allowed(marked, field, words):
    with pytest.raises(RRuleError) as caught:
        parse_rrule(marked.replace("^", ""), dtstart=START)
    assert words in caught.value.message
    assert (caught.value.field, caught.value.position) == (field, marked.index("^") + 1)
    assert f"character {caught.value.position}" in caught.value.message or words == "is empty"


def test_places_are_those_of_the_text_as_given_also_in_folded_lines():
    text = "  rrule:FREQ=DAILY;\r\n  BYHOUR=9,\r\n\t25"
    with pytest.raises(RRuleError) as caught:
        parse_rrule(text, dtstart=START)
    assert caught.value.position == text.index("25") + 1
