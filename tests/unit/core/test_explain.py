"""Schedules in plain English: the sentence, what the clocks will do, and what is probably not meant."""

from datetime import UTC, datetime, timedelta

import pytest

from noonmark.core.calendars.calendar import Calendar
from noonmark.core.explanations.english import arc, ordinal, span
from noonmark.core.explanations.schedule import explain
from noonmark.core.schedules.documents import Context, read_document
from noonmark.core.zones.zones import load_zone

AFTER = datetime(2026, 6, 1, tzinfo=UTC)
NEW_YORK = "America/New_York"


def told(document, zone="UTC", after=AFTER, calendars=None):
    schedule = read_document(document, Context(after, zone, "billing", calendars))
    return explain(schedule, after, zone=schedule.zone or load_zone(zone))


@pytest.mark.parametrize(
    ("document", "zone", "sentence"),
    [
        ("30 2 * * *", NEW_YORK, "Every day at 02:30, New York time."),
        ("30 2 * * *", "UTC", "Every day at 02:30, UTC."),
        ("0 9 * * 1", "America/Argentina/Buenos_Aires", "Every Monday at 09:00, Buenos Aires time."),
        ("0 9 * * 1", "Etc/GMT+5", "Every Monday at 09:00, Etc/GMT+5 time."),
        ({"every": 5400, "start": "2026-06-01T09:00:00Z"}, "UTC", "Every 90 minutes of elapsed time, counted from 1 June 2026 at 09:00, UTC."),
        ({"every": "PT1H"}, NEW_YORK, "Every hour of elapsed time, counted from 31 May 2026 at 20:00, New York time."),
        ({"every": 1.5, "start": "2026-06-01T09:00:00.25Z"}, "UTC", "Every 1.5 seconds of elapsed time, counted from 1 June 2026 at 09:00:00, UTC."),
        ({"at": "2027-03-08T07:00:00Z"}, NEW_YORK, "Once, on 8 March 2027 at 02:00, New York time."),
        ({"rrule": "FREQ=MONTHLY;BYDAY=-1FR", "dtstart": "2026-01-30T17:00:00"}, "Europe/Berlin", "The last Friday of each month at 17:00, Berlin time."),
        (["30 2 * * *", {"every": "P1D", "start": "2026-06-01T09:00:00Z"}], "UTC", "Any of: every day at 02:30; every day of elapsed time, counted from 1 June 2026 at 09:00; UTC."),
        (["30 2 * * *"], "UTC", "Every day at 02:30, UTC."),
    ],
    ids=lambda value: str(value)[:40],
)  # fmt: skip
def test_a_schedule_is_one_sentence(document, zone, sentence):
    assert told(document, zone).sentence == sentence


@pytest.mark.parametrize(
    ("document", "zone", "details"),
    [
        ("30 2 * * *", NEW_YORK, ["On 14 March 2027 02:30 does not exist: runs at 03:00."]),
        ({"cron": "30 2 * * *", "dst_gap": "skip"}, NEW_YORK, ["On 14 March 2027 02:30 does not exist: no run."]),
        ({"cron": "30 2 * * *", "dst_gap": "shift"}, NEW_YORK, ["On 14 March 2027 02:30 does not exist: runs at 03:30."]),
        ("15,45 2 * * *", NEW_YORK, ["On 14 March 2027 02:15 and 02:45 do not exist: one run at 03:00 instead."]),
        ({"cron": "15,45 2 * * *", "dst_gap": "shift"}, NEW_YORK, ["On 14 March 2027 02:15 and 02:45 do not exist: run at 03:15 and 03:45."]),
        ("*/10 2 * * *", NEW_YORK, ["On 14 March 2027 02:00, 02:10, 02:20 and 3 more do not exist: no run."]),
        ("30 1 * * *", NEW_YORK, ["On 1 November 2026 01:30 occurs twice: runs the first time only."]),
        ({"cron": "30 1 * * *", "dst_overlap": "last"}, NEW_YORK, ["On 1 November 2026 01:30 occurs twice: runs the second time only."]),
        ({"cron": "30 1 * * *", "dst_overlap": "both"}, NEW_YORK, ["On 1 November 2026 01:30 occurs twice: runs both times."]),
        ("0,30 1 * * *", NEW_YORK, ["On 1 November 2026 01:00 and 01:30 occur twice: run the first time only."]),
        ("*/15 * * * *", NEW_YORK, [
            "On 1 November 2026 the clocks go back from 02:00 to 01:00: the rhythm continues through both passes.",
            "On 14 March 2027 the clocks go forward from 02:00 to 03:00: the time between is skipped, and the rhythm continues.",
        ]),
        ("0 0 * * *", "America/Santiago", ["On 6 September 2026 00:00 does not exist: runs at 01:00."]),
        ("15 2 * * *", "Australia/Lord_Howe", ["On 4 October 2026 02:15 does not exist: runs at 02:30."]),
        ("0 5 * * *", NEW_YORK, []),
        ("30 2 * * *", "America/Phoenix", []),
        ({"rrule": "FREQ=DAILY", "dtstart": "2026-01-01T02:30:00"}, NEW_YORK, ["On 14 March 2027 02:30 does not exist: runs at 03:30."]),
        ({"cron": "30 2 * * *", "end": "2027-01-01T00:00:00Z"}, NEW_YORK, []),
        ({"cron": "30 1 * * *", "start": "2026-12-01T00:00:00Z"}, NEW_YORK, []),
    ],
    ids=lambda value: str(value)[:40],
)  # fmt: skip
def test_each_change_of_the_clocks_that_matters_is_told(document, zone, details):
    assert [line for line in told(document, zone).details if line.startswith("On ")] == details


def test_a_run_that_moves_into_the_next_day_says_so():
    words = told("0 9 * * *", "Pacific/Apia", datetime(2011, 12, 1, tzinfo=UTC))
    assert "On 30 December 2011 09:00 does not exist: no run." in words.details
    moved = told(
        {"cron": "0 9 * * *", "dst_gap": "run_after"}, "Pacific/Apia", datetime(2011, 12, 1, tzinfo=UTC)
    )
    assert "On 30 December 2011 09:00 does not exist: runs at 00:00 on 31 December 2011." in moved.details


@pytest.mark.parametrize(
    ("document", "rules"),
    [
        ("30 2 * * *", "go forward, a time that does not exist runs right after the gap if that is no longer than 3 hours (auto)."),
        ("30 1 * * *", "go back, a time that occurs twice runs the first time (auto)."),
        ("*/5 * * * *", "change, times that do not exist are skipped, and a time that occurs twice runs both times (auto)."),
        ({"rrule": "FREQ=DAILY;BYHOUR=1,2", "dtstart": "2026-01-01T02:30:00"}, "change, a time that does not exist runs later by the length of the gap, and a time that occurs twice runs the first time (auto)."),
        ({"cron": "30 1,2 * * *", "dst_gap": "skip", "dst_overlap": "last"}, "change, times that do not exist are skipped, and a time that occurs twice runs the second time."),
    ],
    ids=["gap", "overlap", "rhythm", "rrule", "chosen"],
)  # fmt: skip
def test_the_rules_for_changes_of_the_clocks_are_stated(document, rules):
    assert told(document, NEW_YORK).details[-1] == f"When the clocks {rules}"


@pytest.mark.parametrize(
    ("document", "zone"),
    [
        ("0 9 * * *", NEW_YORK),
        ("30 2 * * *", "Asia/Kolkata"),
        ("30 2 * * MON", NEW_YORK),
        ({"cron": "30 2 * * *", "end": "2026-12-01T00:00:00Z"}, NEW_YORK),
        ({"rrule": "FREQ=DAILY", "dtstart": "2026-01-01T09:00:00"}, "Europe/Berlin"),
    ],
    ids=["other-hour", "no-change", "other-weekday", "ends-before", "rrule"],
)
def test_a_schedule_that_no_change_of_the_clocks_touches_says_nothing_about_them(document, zone):
    assert [line for line in told(document, zone).details if "clock" in line or line.startswith("On ")] == []


def test_a_schedule_in_utc_or_of_elapsed_time_speaks_of_no_rules():
    assert told("30 2 * * *").details == []
    assert told({"every": "PT1H"}).details == []
    assert told({"every": "PT1H"}, NEW_YORK).details == [
        "Elapsed time ignores the clock: when the clocks change, its time of day moves."
    ]


def test_bounds_jitter_and_the_number_of_runs_are_told_in_the_zones_time():
    words = told(
        {
            "cron": "0 9 * * *",
            "start": "2026-06-01T00:00:00Z",
            "end": "2026-07-01T00:00:00Z",
            "max_runs": 5,
            "jitter_seconds": 90,
        },
        "Asia/Kolkata",
    )
    assert words.details == [
        "Not before 1 June 2026 at 05:30.",
        "Not after 1 July 2026 at 05:30.",
        "Complete after 5 runs.",
        "Each run starts up to 90 seconds after its instant (jitter), always by the same amount.",
    ]


def test_calendars_are_told_with_what_becomes_of_closed_days():
    calendars = {
        "holidays": Calendar.parse({"yearly": ["12-25"]}),
        "office": Calendar.parse({"weekdays": ["MON"]}),
    }
    rule = {"exclude": ["holidays"], "include": ["office"], "on_holiday": "next_business_day"}
    words = told({"cron": "0 9 * * *", "calendars": rule}, calendars=calendars)
    (line,) = words.details
    assert line == (
        "Only on days of calendar office and not on days of calendar holidays; what falls on another day moves"
        " to the next open day."
    )


@pytest.mark.parametrize(
    ("rule", "line"),
    [
        ({"exclude": ["holidays"]}, "Not on days of calendar holidays; what falls on such a day is skipped."),
        ({"include": ["holidays"]}, "Only on days of calendar holidays; what falls on another day is skipped."),
        ({"exclude": ["holidays"], "on_holiday": "previous_business_day"}, "Not on days of calendar holidays; what falls on such a day moves to the previous open day."),
    ],
    ids=["exclude", "include", "moved"],
)  # fmt: skip
def test_the_day_that_a_calendar_closes_is_named_rightly(rule, line):
    calendars = {"holidays": Calendar.parse({"yearly": ["12-25"]})}
    assert told({"cron": "0 9 * * *", "calendars": rule}, calendars=calendars).details == [line]


def test_the_rules_of_a_union_are_numbered():
    words = told([{"cron": "30 2 * * *"}, {"cron": "*/25 * * * *"}], NEW_YORK)
    assert "Rule 1: On 14 March 2027 02:30 does not exist: runs at 03:00." in words.details
    assert any(line.startswith("Rule 2: 25 does not divide 60") for line in words.details)


@pytest.mark.parametrize(
    ("document", "warning"),
    [
        ("0 0 29 2 *", "The next fire is more than a year away: 29 February 2028 at 00:00."),
        ({"cron": "0 0 1 1 *", "end": "2026-05-01T00:00:00Z"}, "No more fires."),
        ("*/20 * * * * *", "Fires more often than once a minute: every 20 seconds at its fastest."),
        ({"every": 5}, "Fires more often than once a minute: every 5 seconds at its fastest."),
        ({"rrule": "FREQ=WEEKLY;BYDAY=MO", "dtstart": "2026-01-07T09:00:00"}, "DTSTART 2026-01-07T09:00:00 is not one of the rule's times"),
    ],
    ids=lambda value: str(value)[:40],
)  # fmt: skip
def test_what_is_probably_not_meant_is_a_warning(document, warning):
    (line,) = told(document).warnings
    assert line.startswith(warning)


def test_an_ordinary_schedule_has_no_warning():
    for document in ("30 2 * * *", "* * * * *", {"every": 60}, {"at": "2026-07-01T00:00:00Z"}):
        assert told(document).warnings == []


@pytest.mark.parametrize(
    ("values", "size", "found"),
    [
        ([0, 15, 30, 45], 60, (0, 45, 15, True)),
        ([5, 25, 45], 60, (5, 45, 20, True)),
        ([0, 25, 50], 60, None),
        ([9, 10, 11], 24, (9, 11, 1, False)),
        ([0, 1, 22, 23], 24, (22, 1, 1, False)),
        ([1, 2, 4], 24, None),
    ],
)
def test_an_arc_is_what_steps_evenly_round_a_cycle(values, size, found):
    assert arc(values, size) == found


def test_numbers_and_lengths_are_english():
    assert [ordinal(n) for n in (1, 2, 3, 4, 11, 12, 13, 21, 22, 23, 31)] == [
        "1st", "2nd", "3rd", "4th", "11th", "12th", "13th", "21st", "22nd", "23rd", "31st",
    ]  # fmt: skip
    lengths = {
        1: "1 second", 90: "90 seconds", 5400: "90 minutes", 3600: "1 hour", 86_400: "1 day", 604_800: "1 week",
        172_800: "2 days", 0.25: "0.25 seconds", 3601: "3601 seconds", 61.5: "1 minute and 1.5 seconds",
    }  # fmt: skip
    assert {seconds: span(timedelta(seconds=seconds)) for seconds in lengths} == lengths
