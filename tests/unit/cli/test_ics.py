"""Days out of iCalendar files, such as publishers of holidays write them."""

import random
from datetime import date, timedelta

import pytest

from noonmark.cli.schedules import ics
from noonmark.cli.schedules.ics import IcsError, read_ics

TODAY = date(2026, 11, 28)


def calendar_of(*events, more=""):
    """A file with these events, each given by its lines."""
    body = "".join(
        f"BEGIN:VEVENT\r\nUID:{n}\r\n" + "".join(f"{line}\r\n" for line in event) + "END:VEVENT\r\n"
        for n, event in enumerate(events)
    )
    return f"BEGIN:VCALENDAR\r\nVERSION:2.0\r\nPRODID:-//x//y\r\n{more}{body}END:VCALENDAR\r\n".encode()


def read(*events, years=2, today=TODAY):
    return read_ics(calendar_of(*events), today=today, years=years)


def body_of(*events, **more):
    return read(*events, **more).calendar.body()


@pytest.mark.parametrize(
    ("lines", "dates"),
    [
        (["DTSTART;VALUE=DATE:20261225"], ["2026-12-25"]),
        (["DTSTART;VALUE=DATE:20261225", "DTEND;VALUE=DATE:20261226"], ["2026-12-25"]),
        (["DTSTART;VALUE=DATE:20261225", "DTEND;VALUE=DATE:20261225"], ["2026-12-25"]),
        (["DTSTART;VALUE=DATE:20261225", "DTEND;VALUE=DATE:20261227"], ["2026-12-25", "2026-12-26"]),
        (["DTSTART;VALUE=DATE:20261225", "DURATION:P2D"], ["2026-12-25", "2026-12-26"]),
        (["DTSTART;VALUE=DATE:20261225", "TRANSP:TRANSPARENT", "STATUS:CONFIRMED"], ["2026-12-25"]),
        (["DTSTART:20261225T233000Z", "DTEND:20261226T003000Z"], ["2026-12-25", "2026-12-26"]),
        (["DTSTART:20261225T220000", "DTEND:20261226T000000"], ["2026-12-25"]),
        (["DTSTART;TZID=America/New_York:20261225T233000", "DURATION:PT1H"], ["2026-12-25", "2026-12-26"]),
        (["DTSTART;TZID=America/New_York:20261225T233000", "DTEND:20261226T043000Z"], ["2026-12-25"]),
        (["DTSTART;TZID=America/New_York:20261225T090000"], ["2026-12-25"]),
    ],
)
def test_an_event_counts_for_the_days_on_its_own_clock(lines, dates):
    assert body_of(lines) == {"dates": dates}


def test_days_on_end_become_a_range():
    assert body_of(
        ["DTSTART;VALUE=DATE:20261224", "DTEND;VALUE=DATE:20270102"],
        ["DTSTART;VALUE=DATE:20270102"],
        ["DTSTART;VALUE=DATE:20270501"],
    ) == {"dates": ["2027-05-01"], "ranges": [{"first": "2026-12-24", "last": "2027-01-02"}]}


@pytest.mark.parametrize(
    "rule",
    [
        "FREQ=YEARLY",
        "FREQ=YEARLY;INTERVAL=1;WKST=SU",
        "FREQ=YEARLY;BYMONTH=12",
        "FREQ=YEARLY;BYMONTH=12;BYMONTHDAY=25",
    ],
)
def test_the_same_day_of_every_year_is_kept_as_that(rule):
    found = read(["DTSTART;VALUE=DATE:19991225", f"RRULE:{rule}"])
    assert found.calendar.body() == {"yearly": ["12-25"]}
    assert found.written_out_to is None


def test_some_days_on_end_of_every_year_are_kept_as_each_of_them():
    event = ["DTSTART;VALUE=DATE:20201231", "DTEND;VALUE=DATE:20210103", "RRULE:FREQ=YEARLY"]
    assert body_of(event) == {"yearly": ["01-01", "01-02", "12-31"]}
    assert body_of(["DTSTART;VALUE=DATE:20200229", "RRULE:FREQ=YEARLY"]) == {"yearly": ["02-29"]}


def test_what_lasts_over_the_end_of_february_is_written_out_year_by_year():
    event = ["DTSTART;VALUE=DATE:20250228", "DTEND;VALUE=DATE:20250302", "RRULE:FREQ=YEARLY"]
    dates = [f"{year}-{day}" for year in (2025, 2026, 2027) for day in ("02-28", "03-01")]
    assert body_of(event, years=1) == {"dates": dates}
    assert body_of(event)["dates"][-2:] == ["2028-02-28", "2028-02-29"]


@pytest.mark.parametrize(
    ("lines", "dates"),
    [
        # Thanksgiving
        (
            ["DTSTART;VALUE=DATE:20201126", "RRULE:FREQ=YEARLY;BYMONTH=11;BYDAY=4TH"],
            ["2020-11-26", "2025-11-27", "2026-11-26", "2027-11-25", "2028-11-23"],
        ),
        (["DTSTART;VALUE=DATE:20280619", "RRULE:FREQ=YEARLY"], ["2028-06-19"]),
        (["DTSTART;VALUE=DATE:20261225", "RRULE:FREQ=YEARLY;COUNT=2"], ["2026-12-25", "2027-12-25"]),
        (["DTSTART;VALUE=DATE:20261225", "RRULE:FREQ=YEARLY;UNTIL=20271231"], ["2026-12-25", "2027-12-25"]),
        (["DTSTART;VALUE=DATE:20261225", "RRULE:FREQ=YEARLY;INTERVAL=2"], ["2026-12-25", "2028-12-25"]),
        (
            ["DTSTART;VALUE=DATE:20261225", "RRULE:FREQ=YEARLY", "EXDATE;VALUE=DATE:20271225"],
            ["2026-12-25", "2028-12-25"],
        ),
        (
            ["DTSTART;VALUE=DATE:20261225", "RRULE:FREQ=YEARLY", "EXDATE:20261225T000000,20271225T000000"],
            ["2028-12-25"],
        ),
        (
            [
                "DTSTART;VALUE=DATE:20261225",
                "RDATE;VALUE=DATE:20270417,20270101",
                "EXDATE;VALUE=DATE:20270417",
            ],
            ["2026-12-25", "2027-01-01"],
        ),
        (
            [
                "DTSTART;TZID=Europe/Berlin:20261201T003000",
                "RRULE:FREQ=WEEKLY;UNTIL=20261214T233000Z",
                "EXDATE:20261207T233000Z",
            ],
            ["2026-12-01", "2026-12-15"],
        ),
        (
            ["DTSTART;TZID=Europe/Berlin:20261201T003000", "RRULE:FREQ=WEEKLY;UNTIL=20261214T232959Z"],
            ["2026-12-01", "2026-12-08"],
        ),
        (
            ["DTSTART:20261201T000000Z", "RRULE:FREQ=HOURLY;COUNT=30", "EXDATE:20261201T050000Z"],
            ["2026-12-01", "2026-12-02"],
        ),
        (
            ["DTSTART:20261201T220000Z", "RDATE;VALUE=PERIOD:20261205T090000Z/PT1H"],
            ["2026-12-01", "2026-12-05"],
        ),
    ],
)
def test_other_recurring_events_are_written_out_from_last_year_to_the_years_ahead(lines, dates):
    assert body_of(lines) == {"dates": dates}


def test_the_end_of_what_was_written_out_is_told():
    endless = ["DTSTART;VALUE=DATE:20201126", "RRULE:FREQ=YEARLY;BYMONTH=11;BYDAY=4TH"]
    ending = ["DTSTART;VALUE=DATE:20261126", "RRULE:FREQ=YEARLY;COUNT=2"]
    assert read(endless, years=10).written_out_to == date(2036, 12, 31)
    assert read(ending).written_out_to is None


def test_a_time_of_a_series_that_was_moved_or_cancelled_is_honoured():
    master = ["UID:x", "DTSTART;VALUE=DATE:20261201", "RRULE:FREQ=DAILY;COUNT=4"]
    moved = ["UID:x", "RECURRENCE-ID;VALUE=DATE:20261202", "DTSTART;VALUE=DATE:20261220"]
    called_off = [
        "UID:x",
        "RECURRENCE-ID;VALUE=DATE:20261203",
        "DTSTART;VALUE=DATE:20261203",
        "STATUS:CANCELLED",
    ]
    data = calendar_of(moved, master, called_off).replace(b"UID:0\r\n", b"").replace(b"UID:1\r\n", b"")
    found = read_ics(data.replace(b"UID:2\r\n", b""), today=TODAY, years=1)
    assert found.calendar.body() == {"dates": ["2026-12-01", "2026-12-04", "2026-12-20"]}
    assert (found.events, found.cancelled) == (3, 1)


def test_cancelled_events_are_left_out_and_counted():
    found = read(["DTSTART;VALUE=DATE:20261225"], ["DTSTART;VALUE=DATE:20261226", "STATUS:CANCELLED"])
    assert (found.calendar.body(), found.events, found.cancelled) == ({"dates": ["2026-12-25"]}, 2, 1)


def test_folded_lines_a_byte_order_mark_bare_line_ends_and_a_second_calendar_are_read():
    data = calendar_of(["SUMMARY:a long\r\n  name", "DTSTART;VALUE=DATE:2026\r\n 1225"])
    again = calendar_of(["DTSTART;VALUE=DATE:20270417"])
    data = b"\xef\xbb\xbf" + (data + again).replace(b"\r\n", b"\n")
    assert read_ics(data, today=TODAY, years=1).calendar.body() == {"dates": ["2026-12-25", "2027-04-17"]}


GOOD = ["DTSTART;VALUE=DATE:20261225"]


@pytest.mark.parametrize(
    ("lines", "message"),
    [
        (["SUMMARY:Day"], "event 2 (line 8, 'Day') has no DTSTART; add one, or remove the event"),
        (["DTSTART;VALUE=DATE:20261340"], "event 2 (line 8) has an invalid DTSTART (Wrong date"),
        (["DTSTART:PT1H"], "event 2 (line 8) has a DTSTART of the wrong kind (1:00:00); correct it"),
        ([*GOOD, *GOOD], "has DTSTART more than once; keep one"),
        ([*GOOD, "DTEND;VALUE=DATE:20261224"], "ends on 2026-12-24, before it begins on 2026-12-25; correct"),
        (
            ["DTSTART:20261225T100000Z", "DTEND:20261225T090000Z"],
            "ends at 2026-12-25 09:00:00, before it begins",
        ),
        ([*GOOD, "DTEND;VALUE=DATE:20461225"], "lasts 7,305 days, more than 3,660"),
        ([*GOOD, "RRULE:FREQ=SOMETIMES"], "has an invalid RRULE"),
        ([*GOOD, "RRULE:FREQ=YEARLY;FOO=3"], "has an invalid RRULE"),
        ([*GOOD, "RRULE:FREQ=YEARLY;BYMONTH=2;BYMONTHDAY=30"], "has an invalid RRULE"),
        ([*GOOD, "EXRULE:FREQ=YEARLY"], "has an EXRULE, which is no longer part of iCalendar"),
        (
            [*GOOD, "RECURRENCE-ID;RANGE=THISANDFUTURE;VALUE=DATE:20261225"],
            "changes its series from one time on (RANGE=THISANDFUTURE), which is not supported",
        ),
    ],
)
def test_an_event_that_cannot_be_understood_is_named_with_its_line(lines, message):
    with pytest.raises(IcsError) as caught:
        read(GOOD, lines)
    assert message in str(caught.value)
    assert str(caught.value).startswith("event 2 (line 8")


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"", "is not an iCalendar file (no line BEGIN:VCALENDAR)"),
        (b"<html>not found</html>", "is not an iCalendar file"),
        (b"BEGIN:VCALENDAR\xff", "is not UTF-8 at byte 15; save it as UTF-8"),
        (calendar_of(), "has no day from 1970-01-01 to 2199-12-31; check that it is the right file"),
        (
            calendar_of([*GOOD, "STATUS:CANCELLED"]),
            "has no day from 1970-01-01 to 2199-12-31 (1 are cancelled)",
        ),
        (calendar_of(["DTSTART;VALUE=DATE:19500101"]), "has no day from 1970-01-01"),
        (calendar_of(GOOD)[:-40], "part of it is missing"),
        (
            b"BEGIN:VCALENDAR\r\nnonsense\r\nEND:VCALENDAR\r\n",
            "cannot be read: Content line could not be parsed",
        ),
        (b"BEGIN:VCALENDAR\n" + b"x" * ics.MAX_BYTES, "has 5,000,016 bytes, more than 5,000,000"),
        (b"BEGIN:VCALENDAR\n" + b"BEGIN:VEVENT\n" * 10_001, "contains 10,001 events, more than 10,000"),
    ],
    ids=range(10),
)
def test_a_file_that_is_none_is_refused_with_what_to_do(data, message):
    with pytest.raises(IcsError) as caught:
        read_ics(data, today=TODAY, years=10)
    assert message in str(caught.value)


def test_more_days_than_a_calendar_holds_are_refused():
    every_other = ["DTSTART;VALUE=DATE:20260101", "RRULE:FREQ=DAILY;INTERVAL=2"]
    with pytest.raises(IcsError, match=r"has 10,.* single days and 0 ranges; a calendar can have 10,000"):
        read(every_other, years=56)


def test_recurring_events_are_not_written_out_without_a_bound(monkeypatch):
    monkeypatch.setattr(ics, "MAX_OCCURRENCES", 100)
    with pytest.raises(IcsError, match="on more than 100 days in total; use fewer --years"):
        read(["DTSTART:20260101T000000Z", "RRULE:FREQ=SECONDLY"])


def test_damaged_files_end_in_a_sentence():
    """Whatever bytes are lost or turned: an error of ours, or days."""
    seed = random.Random(4)
    whole = calendar_of(
        [
            "DTSTART;TZID=Europe/Berlin:20261201T003000",
            "RRULE:FREQ=WEEKLY;UNTIL=20261214T233000Z",
            "DURATION:P1D",
        ],
        ["DTSTART;VALUE=DATE:20261225", "DTEND;VALUE=DATE:20261227", "RRULE:FREQ=YEARLY;BYDAY=1MO;BYMONTH=3"],
        ["RECURRENCE-ID;VALUE=DATE:20271225", "DTSTART;VALUE=DATE:20261220", "EXDATE:20261207T233000Z"],
    )
    outcomes = set()
    for _ in range(400):
        data = bytearray(whole)
        for _ in range(seed.randint(1, 4)):
            at = seed.randrange(len(data))
            data[at : at + seed.randint(0, 3)] = bytes(
                seed.choices(b"0129TZ:;=,\r\nPDX-\xff", k=seed.randint(0, 3))
            )
        try:
            outcomes.add(read_ics(bytes(data), today=TODAY, years=2).calendar.digest())
        except IcsError as error:
            outcomes.add(str(error))
    assert len(outcomes) > 50


def test_a_large_file_of_holidays_is_read():
    days = [date(2026, 1, 1) + timedelta(days=2 * n) for n in range(300)]
    assert len(read(*([f"DTSTART;VALUE=DATE:{day:%Y%m%d}"] for day in days)).calendar.dates) == 300
