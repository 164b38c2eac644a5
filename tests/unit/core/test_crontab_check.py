"""The second evaluation of crontab lines: cron's own rule, also where clocks change."""

from datetime import UTC, datetime, timedelta
from itertools import islice
from zoneinfo import ZoneInfo

import pytest
from croniter import croniter

from noonmark.core.crontab.evaluation import FirstDifference, compare, cron_instants

NEW_YORK = ZoneInfo("America/New_York")
LORD_HOWE = ZoneInfo("Australia/Lord_Howe")


def offset_in(zone):
    return lambda at: at.astimezone(zone).utcoffset()


def utc(_at):
    return timedelta(0)


def first(schedule, zone, after, count):
    return list(islice(cron_instants(schedule, offset_in(zone), after), count))


def local(schedule, zone, day, count):
    """Local times and offsets in hours of the next instants from a UTC day on."""
    found = first(schedule, zone, datetime(*day, tzinfo=UTC), count)
    shown = [at.astimezone(zone) for at in found]
    return [(f"{at:%d %H:%M}", at.utcoffset() / timedelta(hours=1)) for at in shown]


@pytest.mark.parametrize(
    "schedule",
    [
        "* * * * *", "*/7 * * * *", "0 0 * * *", "30 4 1 * *", "0 12 * * 1-5", "15,45 2 * * sun", "0 0 1 1 *",
        "5 4 13 * fri", "0 0 1-7 * 1", "*/20 8-18 * feb,jul *", "59 23 31 12 *", "0 5 31 * *", "0 0 * * 7",
    ],
)  # fmt: skip
def test_without_clock_changes_it_is_what_croniter_says(schedule):
    after = datetime(2027, 3, 14, 1, 59, 30, tzinfo=UTC)
    other = croniter(schedule, after.replace(tzinfo=None), ret_type=datetime)
    expected = [other.get_next().replace(tzinfo=UTC) for _ in range(30)]
    assert list(islice(cron_instants(schedule, utc, after), 30)) == expected


def test_a_field_that_starts_with_a_star_ties_the_days_together():
    found = islice(cron_instants("0 0 */2 * mon", utc, datetime(2026, 6, 1, 12, tzinfo=UTC)), 4)
    assert [(at.day, at.isoweekday()) for at in found] == [(15, 1), (29, 1), (13, 1), (27, 1)]


def test_fixed_times_in_a_gap_run_once_right_after_it():
    # 2027-03-14 02:00 EST does not exist up to 03:00 EDT.
    assert local("15,45 2 * * *", NEW_YORK, (2027, 3, 13, 12), 3) == [
        ("14 03:00", -4.0),
        ("15 02:15", -4.0),
        ("15 02:45", -4.0),
    ]
    assert local("0 3 * * *", NEW_YORK, (2027, 3, 13, 12), 2) == [("14 03:00", -4.0), ("15 03:00", -4.0)]


def test_wild_times_in_a_gap_are_not_made_up():
    assert local("*/30 2 * * *", NEW_YORK, (2027, 3, 13, 12), 2) == [("15 02:00", -4.0), ("15 02:30", -4.0)]
    assert local("30 * * * *", NEW_YORK, (2027, 3, 14, 6), 3) == [
        ("14 01:30", -5.0),
        ("14 03:30", -4.0),
        ("14 04:30", -4.0),
    ]


def test_fixed_times_in_an_overlap_run_in_the_first_pass():
    # 2027-11-07 01:00 comes twice.
    assert local("30 1 * * *", NEW_YORK, (2027, 11, 6, 12), 2) == [("07 01:30", -4.0), ("08 01:30", -5.0)]


def test_wild_times_in_an_overlap_run_in_both_passes():
    assert local("30 * * * *", NEW_YORK, (2027, 11, 7, 5), 3) == [
        ("07 01:30", -4.0),
        ("07 01:30", -5.0),
        ("07 02:30", -5.0),
    ]


def test_a_change_of_half_an_hour_is_one():
    # Lord Howe goes from 02:00 to 02:30 on 2027-10-03, and from 02:00 back to 01:30 on 2027-04-04.
    assert local("10 2 * * *", LORD_HOWE, (2027, 10, 2, 12), 2) == [("03 02:30", 11.0), ("04 02:10", 11.0)]
    assert local("45 1 * * *", LORD_HOWE, (2027, 4, 3, 12), 2) == [("04 01:45", 11.0), ("05 01:45", 10.5)]


def test_a_day_that_was_left_out_is_not_made_up():
    # Samoa had no 2011-12-30.
    zone = ZoneInfo("Pacific/Apia")
    assert local("0 12 * * *", zone, (2011, 12, 29, 0), 3) == [
        ("29 12:00", -10.0),
        ("31 12:00", 14.0),
        ("01 12:00", 14.0),
    ]


def test_it_ends_at_the_end_of_the_calendar():
    assert list(cron_instants("0 0 30 2 *", utc, datetime(8999, 1, 1, tzinfo=UTC))) == []


def test_the_first_difference_is_named():
    after = datetime(2026, 1, 1, tzinfo=UTC)
    right = list(islice(cron_instants("0 6 * * *", utc, after), 5))
    assert compare(right, "0 6 * * *", utc, after, 5) is None
    moved = [*right[:2], right[2] + timedelta(minutes=1), *right[3:]]
    assert compare(moved, "0 6 * * *", utc, after, 5) == FirstDifference(3, moved[2], right[2])
    assert compare(right[:4], "0 6 * * *", utc, after, 5) == FirstDifference(5, None, right[4])
