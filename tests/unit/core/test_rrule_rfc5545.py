"""The examples of RFC 5545, section 3.8.5.3, with the local dates that the standard prints, and the case list."""

# ruff: noqa: DTZ007, ISC004 - recurrence rules are about naive wall-clock times
import json
from datetime import datetime, timedelta
from pathlib import Path
from zoneinfo import ZoneInfo

import pytest

from noonmark.core.rrule.recurrence_set import RRuleError, parse_rrule

START = "1997-09-02 09:00"
CASES = json.loads((Path(__file__).parents[2] / "cases" / "fire_instants.json").read_text())
RULE_CASES = [case for case in CASES if case["kind"] == "rrule"]


def at(text: str) -> datetime:
    return datetime.strptime(text, "%Y-%m-%d %H:%M")


def days(text: str, time: str = "09:00") -> list[datetime]:
    """Read "1997-09-02..05 1997-10-01,03": dates, day ranges and day lists of a month, at one time of day."""
    found = []
    for month_text in text.split():
        month, listed = month_text[:8], month_text[8:]
        for item in listed.split(","):
            low, _, high = item.partition("..")
            found += [at(f"{month}{day:02} {time}") for day in range(int(low), int(high or low) + 1)]
    return found


def times(day: str, text: str) -> list[datetime]:
    return [at(f"{day} {time}") for time in text.split()]


WHOLE_JANUARIES = days("1998-01-01..31 1999-01-01..31 2000-01-01..31")
EVERY_20_MINUTES = [
    time
    for day in ("1997-09-02", "1997-09-03")
    for time in times(day, " ".join(f"{hour}:{minute:02}" for hour in range(9, 17) for minute in (0, 20, 40)))
]
ENDS = True
GOES_ON = False

EXAMPLES = [
    ("FREQ=DAILY;COUNT=10", START, ENDS, days("1997-09-02..11")),
    (
        "FREQ=DAILY;UNTIL=19971224T000000Z",
        START,
        ENDS,
        days("1997-09-02..30 1997-10-01..31 1997-11-01..30 1997-12-01..23"),
    ),
    (
        "FREQ=DAILY;INTERVAL=2",
        START,
        GOES_ON,
        days("1997-09-02,04,06,08,10,12,14,16,18,20,22,24,26,28,30 1997-10-02,04"),
    ),
    ("FREQ=DAILY;INTERVAL=10;COUNT=5", START, ENDS, days("1997-09-02,12,22 1997-10-02,12")),
    (
        "FREQ=YEARLY;UNTIL=20000131T140000Z;BYMONTH=1;BYDAY=SU,MO,TU,WE,TH,FR,SA",
        "1998-01-01 09:00",
        ENDS,
        WHOLE_JANUARIES,
    ),
    ("FREQ=DAILY;UNTIL=20000131T140000Z;BYMONTH=1", "1998-01-01 09:00", ENDS, WHOLE_JANUARIES),
    ("FREQ=WEEKLY;COUNT=10", START, ENDS, days("1997-09-02,09,16,23,30 1997-10-07,14,21,28 1997-11-04")),
    (
        "FREQ=WEEKLY;UNTIL=19971224T000000Z",
        START,
        ENDS,
        days("1997-09-02,09,16,23,30 1997-10-07,14,21,28 1997-11-04,11,18,25 1997-12-02,09,16,23"),
    ),
    (
        "FREQ=WEEKLY;INTERVAL=2;WKST=SU",
        START,
        GOES_ON,
        days("1997-09-02,16,30 1997-10-14,28 1997-11-11,25 1997-12-09,23 1998-01-06,20 1998-02-03"),
    ),
    (
        "FREQ=WEEKLY;UNTIL=19971007T000000Z;WKST=SU;BYDAY=TU,TH",
        START,
        ENDS,
        days("1997-09-02,04,09,11,16,18,23,25,30 1997-10-02"),
    ),
    (
        "FREQ=WEEKLY;COUNT=10;WKST=SU;BYDAY=TU,TH",
        START,
        ENDS,
        days("1997-09-02,04,09,11,16,18,23,25,30 1997-10-02"),
    ),
    (
        "FREQ=WEEKLY;INTERVAL=2;UNTIL=19971224T000000Z;WKST=SU;BYDAY=MO,WE,FR",
        "1997-09-01 09:00",
        ENDS,
        days(
            "1997-09-01,03,05,15,17,19,29 1997-10-01,03,13,15,17,27,29,31 1997-11-10,12,14,24,26,28 1997-12-08,10,12,22"
        ),
    ),
    (
        "FREQ=WEEKLY;INTERVAL=2;COUNT=8;WKST=SU;BYDAY=TU,TH",
        START,
        ENDS,
        days("1997-09-02,04,16,18,30 1997-10-02,14,16"),
    ),
    (
        "FREQ=MONTHLY;COUNT=10;BYDAY=1FR",
        "1997-09-05 09:00",
        ENDS,
        days(
            "1997-09-05 1997-10-03 1997-11-07 1997-12-05 1998-01-02 1998-02-06 1998-03-06 1998-04-03 1998-05-01 1998-06-05"
        ),
    ),
    (
        "FREQ=MONTHLY;UNTIL=19971224T000000Z;BYDAY=1FR",
        "1997-09-05 09:00",
        ENDS,
        days("1997-09-05 1997-10-03 1997-11-07 1997-12-05"),
    ),
    (
        "FREQ=MONTHLY;INTERVAL=2;COUNT=10;BYDAY=1SU,-1SU",
        "1997-09-07 09:00",
        ENDS,
        days("1997-09-07,28 1997-11-02,30 1998-01-04,25 1998-03-01,29 1998-05-03,31"),
    ),
    (
        "FREQ=MONTHLY;COUNT=6;BYDAY=-2MO",
        "1997-09-22 09:00",
        ENDS,
        days("1997-09-22 1997-10-20 1997-11-17 1997-12-22 1998-01-19 1998-02-16"),
    ),
    (
        "FREQ=MONTHLY;BYMONTHDAY=-3",
        "1997-09-28 09:00",
        GOES_ON,
        days("1997-09-28 1997-10-29 1997-11-28 1997-12-29 1998-01-29 1998-02-26"),
    ),
    (
        "FREQ=MONTHLY;COUNT=10;BYMONTHDAY=2,15",
        START,
        ENDS,
        days("1997-09-02,15 1997-10-02,15 1997-11-02,15 1997-12-02,15 1998-01-02,15"),
    ),
    (
        "FREQ=MONTHLY;COUNT=10;BYMONTHDAY=1,-1",
        "1997-09-30 09:00",
        ENDS,
        days("1997-09-30 1997-10-01,31 1997-11-01,30 1997-12-01,31 1998-01-01,31 1998-02-01"),
    ),
    (
        "FREQ=MONTHLY;INTERVAL=18;COUNT=10;BYMONTHDAY=10,11,12,13,14,15",
        "1997-09-10 09:00",
        ENDS,
        days("1997-09-10..15 1999-03-10..13"),
    ),
    (
        "FREQ=MONTHLY;INTERVAL=2;BYDAY=TU",
        START,
        GOES_ON,
        days("1997-09-02,09,16,23,30 1997-11-04,11,18,25 1998-01-06,13,20,27 1998-03-03,10,17,24,31"),
    ),
    (
        "FREQ=YEARLY;COUNT=10;BYMONTH=6,7",
        "1997-06-10 09:00",
        ENDS,
        days(
            "1997-06-10 1997-07-10 1998-06-10 1998-07-10 1999-06-10 1999-07-10 2000-06-10 2000-07-10 2001-06-10 2001-07-10"
        ),
    ),
    (
        "FREQ=YEARLY;INTERVAL=2;COUNT=10;BYMONTH=1,2,3",
        "1997-03-10 09:00",
        ENDS,
        days(
            "1997-03-10 1999-01-10 1999-02-10 1999-03-10 2001-01-10 2001-02-10 2001-03-10 2003-01-10 2003-02-10 2003-03-10"
        ),
    ),
    (
        "FREQ=YEARLY;INTERVAL=3;COUNT=10;BYYEARDAY=1,100,200",
        "1997-01-01 09:00",
        ENDS,
        days(
            "1997-01-01 1997-04-10 1997-07-19 2000-01-01 2000-04-09 2000-07-18 2003-01-01 2003-04-10 2003-07-19 2006-01-01"
        ),
    ),
    ("FREQ=YEARLY;BYDAY=20MO", "1997-05-19 09:00", GOES_ON, days("1997-05-19 1998-05-18 1999-05-17")),
    (
        "FREQ=YEARLY;BYWEEKNO=20;BYDAY=MO",
        "1997-05-12 09:00",
        GOES_ON,
        days("1997-05-12 1998-05-11 1999-05-17"),
    ),
    (
        "FREQ=YEARLY;BYMONTH=3;BYDAY=TH",
        "1997-03-13 09:00",
        GOES_ON,
        days("1997-03-13,20,27 1998-03-05,12,19,26 1999-03-04,11,18,25"),
    ),
    (
        "FREQ=YEARLY;BYDAY=TH;BYMONTH=6,7,8",
        "1997-06-05 09:00",
        GOES_ON,
        days(
            "1997-06-05,12,19,26 1997-07-03,10,17,24,31 1997-08-07,14,21,28 1998-06-04,11,18,25 1998-07-02,09,16,23,30 "
            "1998-08-06,13,20,27 1999-06-03"
        ),
    ),
    (
        "DTSTART;TZID=America/New_York:19970902T090000\nEXDATE;TZID=America/New_York:19970902T090000\n"
        "RRULE:FREQ=MONTHLY;BYDAY=FR;BYMONTHDAY=13",
        START,
        GOES_ON,
        days("1998-02-13 1998-03-13 1998-11-13 1999-08-13 2000-10-13"),
    ),
    (
        "FREQ=MONTHLY;BYDAY=SA;BYMONTHDAY=7,8,9,10,11,12,13",
        "1997-09-13 09:00",
        GOES_ON,
        days(
            "1997-09-13 1997-10-11 1997-11-08 1997-12-13 1998-01-10 1998-02-07 1998-03-07 1998-04-11 1998-05-09 1998-06-13"
        ),
    ),
    (
        "FREQ=YEARLY;INTERVAL=4;BYMONTH=11;BYDAY=TU;BYMONTHDAY=2,3,4,5,6,7,8",
        "1996-11-05 09:00",
        GOES_ON,
        days("1996-11-05 2000-11-07 2004-11-02"),
    ),
    (
        "FREQ=MONTHLY;COUNT=3;BYDAY=TU,WE,TH;BYSETPOS=3",
        "1997-09-04 09:00",
        ENDS,
        days("1997-09-04 1997-10-07 1997-11-06"),
    ),
    (
        "FREQ=MONTHLY;BYDAY=MO,TU,WE,TH,FR;BYSETPOS=-2",
        "1997-09-29 09:00",
        GOES_ON,
        days("1997-09-29 1997-10-30 1997-11-27 1997-12-30 1998-01-29 1998-02-26 1998-03-30"),
    ),
    ("FREQ=HOURLY;INTERVAL=3;UNTIL=19970902T170000", START, ENDS, times("1997-09-02", "09:00 12:00 15:00")),
    (
        "FREQ=MINUTELY;INTERVAL=15;COUNT=6",
        START,
        ENDS,
        times("1997-09-02", "09:00 09:15 09:30 09:45 10:00 10:15"),
    ),
    ("FREQ=MINUTELY;INTERVAL=90;COUNT=4", START, ENDS, times("1997-09-02", "09:00 10:30 12:00 13:30")),
    (
        "FREQ=DAILY;BYHOUR=9,10,11,12,13,14,15,16;BYMINUTE=0,20,40",
        START,
        GOES_ON,
        EVERY_20_MINUTES,
    ),
    ("FREQ=MINUTELY;INTERVAL=20;BYHOUR=9,10,11,12,13,14,15,16", START, GOES_ON, EVERY_20_MINUTES),
    (
        "FREQ=WEEKLY;INTERVAL=2;COUNT=4;BYDAY=TU,SU;WKST=MO",
        "1997-08-05 09:00",
        ENDS,
        days("1997-08-05,10,19,24"),
    ),
    (
        "FREQ=WEEKLY;INTERVAL=2;COUNT=4;BYDAY=TU,SU;WKST=SU",
        "1997-08-05 09:00",
        ENDS,
        days("1997-08-05,17,19,31"),
    ),
    (
        "FREQ=MONTHLY;BYMONTHDAY=15,30;COUNT=5",
        "2007-01-15 09:00",
        ENDS,
        days("2007-01-15,30 2007-02-15 2007-03-15,30"),
    ),
]


@pytest.mark.parametrize(("text", "start", "ends", "expected"), EXAMPLES, ids=[each[0] for each in EXAMPLES])
def test_the_standards_own_examples_have_the_dates_it_prints(text, start, ends, expected):
    rule = parse_rrule(text, dtstart=at(start)).rules[0]
    found, last = [], at(start) - timedelta(seconds=1)
    until = rule.until_utc
    while (following := rule.next(last)) is not None and len(found) < len(expected) + ends:
        # The standard's examples are in New York: at least 4 hours behind UTC.
        if until is not None and following + timedelta(hours=4) > until.replace(tzinfo=None):
            break
        found.append(following)
        last = following
    assert found == expected
    assert rule.count(at(start) - timedelta(seconds=1), expected[-1]) == len(expected)
    assert [rule.previous(each) for each in expected] == expected


@pytest.mark.parametrize("case", RULE_CASES, ids=[case["id"] for case in RULE_CASES])
def test_the_case_list_holds_on_the_wall_clock(case):
    start = datetime.fromisoformat(case["dtstart"])
    if case["category"] == "rrule-never":
        with pytest.raises(RRuleError, match="never fires"):
            parse_rrule(case["expr"], dtstart=start)
        return
    rule = parse_rrule(case["expr"], dtstart=start).rules[0]
    zone = ZoneInfo(case["tz"])
    expected = [wall_clock(each, zone) for each in case["expected_utc"]]
    if case["convention"] == "rfc5545-gap-shift":
        # What a zone moves out of a gap is not on the wall clock; what comes after it is.
        assert rule.names(expected[-1])
        return
    found, last = [], wall_clock(case["after"], zone)
    while len(found) <= len(expected) and (following := rule.next(last)) is not None:
        found.append(following)
        last = following
    assert found[: len(expected)] == expected
    assert case["complete"] == (len(found) == len(expected))


def wall_clock(instant: str, zone: ZoneInfo) -> datetime:
    return datetime.fromisoformat(instant).astimezone(zone).replace(tzinfo=None)
