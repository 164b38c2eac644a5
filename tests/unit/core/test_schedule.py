"""Schedules: what users may write, the three kinds, and the properties that all of them keep."""

import json
import time
from datetime import UTC, datetime, timedelta, timezone

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from noonmark.core.instants import format_instant
from noonmark.core.schedules.schedule import (
    MAX_EVERY,
    AnyOf,
    Cron,
    Interval,
    Once,
    RRule,
    Schedule,
    ScheduleError,
    load_schedule,
    next_memo,
    parse_schedule,
)
from noonmark.core.zones.zones import load_zone

T0 = datetime(2026, 3, 4, 5, 6, 7, 890_123, tzinfo=UTC)
MICROSECOND = timedelta(microseconds=1)
FAR = datetime.max.replace(tzinfo=UTC)

offsets = st.integers(-10 * 86_400 * 1_000_000, 400 * 86_400 * 1_000_000)
moments = offsets.map(lambda micros: T0 + timedelta(microseconds=micros))
bounds = st.tuples(st.none() | moments, st.none() | moments).map(
    lambda pair: tuple(sorted(pair)) if None not in pair else pair
)
cron_texts = st.sampled_from(
    [
        "* * * * *",
        "*/7 * * * *",
        "0 9 * * 1",
        "30 4 1,15 * 5",
        "0 0 29 2 *",
        "15 22-2 */2 * MON-FRI",
        "@monthly",
    ]
)
schedules: st.SearchStrategy[Schedule] = st.one_of(
    moments.map(Once),
    st.builds(
        lambda every, anchor, limits: Interval(every, anchor, start=limits[0], end=limits[1]),
        st.timedeltas(timedelta(seconds=1), timedelta(days=40)),
        moments,
        bounds,
    ),
    st.builds(
        lambda text, zone, limits: Cron(text, start=limits[0], end=limits[1], timezone=load_zone(zone)),
        cron_texts,
        st.sampled_from(["UTC", "America/New_York", "Australia/Lord_Howe"]),
        bounds,
    ),
    st.builds(
        lambda first, every, limits: AnyOf(
            (Cron(first), Interval(timedelta(seconds=every), T0)), start=limits[0], end=limits[1]
        ),
        cron_texts,
        st.integers(86_400, 864_000),
        bounds,
    ),
    st.builds(
        lambda text, limits: RRule(
            text,
            datetime.fromisoformat("2026-03-01T09:00:00"),
            timezone=load_zone("Europe/Berlin"),
            start=limits[0],
            end=limits[1],
        ),
        st.sampled_from(
            [
                "FREQ=DAILY",
                "FREQ=WEEKLY;BYDAY=MO,FR;COUNT=20",
                "FREQ=MONTHLY;BYDAY=-1FR\nEXDATE:20260529T090000\nRDATE:20260530T120000",
                "FREQ=DAILY;UNTIL=20260401T070000Z\nFREQ=MONTHLY",
            ]
        ),
        bounds,
    ),
)


@given(schedules, moments)
@settings(max_examples=200, deadline=None)
def test_next_is_strictly_later_within_the_bounds_and_nothing_lies_between(schedule, after):
    found = schedule.next(after)
    assert next_memo(schedule, after) == found
    if found is None:
        assert schedule.count(after, FAR - timedelta(days=1)) == 0
        return
    assert found > after
    assert found.tzinfo is UTC
    assert schedule.count(after, found) == 1
    assert schedule.previous(found) == found
    before = schedule.previous(found - MICROSECOND)
    assert before is None or before <= after
    for bound, inside in (("start", found.__ge__), ("end", found.__le__)):
        limit = getattr(schedule, bound, None)
        assert limit is None or inside(limit)


@given(schedules, moments, moments, st.integers(0, 30))
@settings(max_examples=200, deadline=None)
def test_between_is_repeated_next_and_count_is_its_length(schedule, after, until, limit):
    expected = []
    at = schedule.next(after)
    while at is not None and at <= until and len(expected) < limit:
        expected.append(at)
        at = schedule.next(at)
    assert schedule.between(after, until, limit) == expected
    if len(expected) < limit:
        assert schedule.count(after, until) == len(expected)


@given(schedules)
@settings(max_examples=200, deadline=None)
def test_the_stored_form_is_json_and_reads_back_to_an_equal_schedule(schedule):
    again = load_schedule(json.loads(json.dumps(schedule.spec())))
    assert again == schedule
    assert hash(again) == hash(schedule)


@given(schedules, moments)
@settings(deadline=None)
def test_an_instant_given_in_another_zone_is_the_same_instant(schedule, after):
    elsewhere = after.astimezone(timezone(timedelta(hours=5, minutes=45)))
    assert schedule.next(elsewhere) == schedule.next(after)
    assert schedule.previous(elsewhere) == schedule.previous(after)


def test_interval_instants_are_exact_after_a_million_periods_and_never_stepped():
    interval = Interval(timedelta(seconds=1, microseconds=100_001), T0)
    at = T0 + 1_000_000 * interval.every
    assert interval.next(at - MICROSECOND) == at
    assert interval.next(at) == at + interval.every
    began = time.thread_time()
    for years in range(1000, 5000):
        interval.next(T0 + timedelta(days=365 * years // 2))
    assert time.thread_time() - began < 0.5


def test_an_interval_has_no_instant_before_its_anchor_and_none_after_the_calendar_ends():
    interval = Interval(timedelta(days=30_000), T0)
    assert interval.next(T0 - timedelta(days=100_000)) == T0
    assert interval.previous(T0 - MICROSECOND) is None
    assert interval.next(FAR) is None
    assert interval.count(T0 - timedelta(days=1), T0) == 1


def test_bounds_are_inclusive_and_do_not_move_the_rhythm():
    hourly = Cron(
        "0 * * * *", start=T0.replace(hour=8, minute=0, second=0, microsecond=0), end=T0.replace(hour=11)
    )
    assert [at.hour for at in hourly.between(T0, FAR, 9)] == [8, 9, 10, 11]
    assert hourly.previous(FAR).hour == 11
    assert hourly.previous(T0) is None
    interval = Interval(timedelta(hours=1), T0, start=T0 + timedelta(hours=2), end=T0 + timedelta(hours=3))
    assert interval.between(T0, FAR, 9) == [T0 + timedelta(hours=2), T0 + timedelta(hours=3)]
    assert interval.count(T0, FAR) == 2


def test_a_period_is_the_distance_of_the_instants_about_the_moment():
    friday_noon = datetime(2026, 5, 1, 12, tzinfo=UTC)
    assert Cron("0 9 * * MON-FRI").period_seconds(friday_noon) == 3 * 86_400
    assert Cron("*/5 * * * *", end=T0).period_seconds(friday_noon) == 300
    assert Interval(timedelta(seconds=90), T0).period_seconds(friday_noon) == 90
    assert Once(T0).period_seconds(friday_noon) == 0


def test_a_thousand_jobs_with_one_expression_share_one_evaluation_per_minute():
    minute = T0.replace(second=0, microsecond=0)
    answers = {next_memo(Cron("*/5 * * * *"), minute + timedelta(seconds=second)) for second in range(60)}
    assert answers == {T0.replace(minute=10, second=0, microsecond=0)}
    assert next_memo(Cron("*/5 * * * *", end=T0), T0) is None


def test_one_evaluation_takes_microseconds():
    cron = Cron("30 4 1,15 * 5")
    began = time.thread_time()
    for hours in range(2000):
        cron.next(T0 + timedelta(hours=hours))
    assert (time.thread_time() - began) / 2000 < 50e-6


def test_nothing_recurring_is_due_before_its_job_exists_but_a_late_one_time_instant_is():
    month_ago = T0 - timedelta(days=30)
    assert Cron("* * * * *", start=month_ago).first(T0) == T0.replace(minute=7, second=0, microsecond=0)
    assert Interval(timedelta(hours=24), T0).first(T0) == T0 + timedelta(hours=24)
    assert Interval(timedelta(hours=24), month_ago, start=month_ago).first(T0) == T0 + timedelta(hours=24)
    later = T0 + timedelta(hours=1)
    assert Interval(timedelta(hours=24), later, start=later).first(T0) == later
    assert Once(month_ago).first(T0) == month_ago


def test_a_naive_datetime_is_refused_because_it_names_no_instant():
    naive = datetime(2026, 1, 1)  # noqa: DTZ001
    for call in (Once, Cron("* * * * *").next, Interval(timedelta(1), T0).next, Once(T0).previous):
        with pytest.raises(ValueError, match="has no offset"):
            call(naive)


@pytest.mark.parametrize(
    ("stored", "same"),
    [
        ({"cron": "0 0 */31 * *"}, "0 0 1 * *"),
        ({"cron": "0 0 5 */12 *"}, "0 0 5 1 *"),
        ({"cron": "0 0 0 ? * */7", "dialect": "quartz"}, "0 0 * * 0"),
        ({"cron": "0 0 0 */31 * ?", "dialect": "quartz"}, "0 0 1 * *"),
    ],
)
def test_a_stored_step_that_only_earlier_releases_accepted_fires_as_before(stored, same):
    with pytest.raises(ScheduleError, match="a longer step would leave only the first value"):
        parse_schedule(stored, created_at=T0)
    for spec in ({**stored, "timezone": "UTC"}, {"any": [{**stored, "timezone": "UTC"}]}):
        loaded = load_schedule(spec)
        assert loaded.spec() == spec
        expected = parse_schedule(same, created_at=T0).between(T0, T0 + timedelta(days=900), 50)
        assert loaded.between(T0, T0 + timedelta(days=900), 50) == expected


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ("0 9 * * 1", Cron("0 9 * * 1")),
        ({"cron": "@daily", "timezone": "UTC"}, Cron("@daily")),
        ({"every": 900}, Interval(timedelta(minutes=15), T0)),
        ({"every": 1}, Interval(timedelta(seconds=1), T0)),
        ({"every": 1.5}, Interval(timedelta(seconds=1.5), T0)),
        ({"every": "PT15M"}, Interval(timedelta(minutes=15), T0)),
        ({"every": "P1D"}, Interval(timedelta(days=1), T0)),
        ({"every": "P1W"}, Interval(timedelta(days=7), T0)),
        ({"every": "P1DT2H3M4.5S"}, Interval(timedelta(days=1, hours=2, minutes=3, seconds=4.5), T0)),
        (
            {"every": 60, "start": "2026-06-01T09:00:00+02:00", "end": "2026-06-02t00:00:00.5z"},
            Interval(
                timedelta(seconds=60),
                datetime(2026, 6, 1, 7, tzinfo=UTC),
                start=datetime(2026, 6, 1, 7, tzinfo=UTC),
                end=datetime(2026, 6, 2, 0, 0, 0, 500_000, tzinfo=UTC),
            ),
        ),
    ],
)
def test_what_users_write_is_read(value, expected):
    assert parse_schedule(value, created_at=T0) == expected


NAN, INF = float("nan"), float("inf")


@pytest.mark.parametrize(
    ("value", "pointer", "said"),
    [
        (None, "", "schedule is null; expected a cron string, an object"),
        (True, "", "schedule is a boolean"),
        (5, "", "schedule is a number"),
        ([], "", "is not a list of 1 to 20 schedules"),
        ([5], "/0", "is a number; expected a cron string or an object"),
        (["* * * * *", "* * 32 * *"], "/1", "day-of-month field"),
        ([{"cron": "@daily", "timezone": "UTC"}], "/0/timezone", "for a list, put it next to 'any'"),
        ({"any": [{"every": 5, "cron": "@daily"}]}, "/any/0", "'cron' and 'every'; give exactly one"),
        ({"any": ["@daily"], "cron": "@daily"}, "/cron", "unknown field"),
        ({}, "", "none of 'cron', 'rrule', 'every'"),
        ({"start": "2026-06-01T00:00:00Z"}, "", "none of 'cron', 'rrule', 'every'"),
        ({"cron": "* * * * *", "every": 5}, "", "'cron' and 'every'"),
        ("*/60 * * * *", "", "minute field: step '60' at character 3"),
        ({"cron": "*/60 * * * *"}, "/cron", "minute field: step '60' at character 3"),
        ({"cron": 5}, "/cron", "cron is a number; expected a string"),
        ({"cron": None}, "/cron", "cron is null"),
        (
            {"every": True},
            "/every",
            "every is a boolean; expected a duration such as 15m, 1h30m or PT15M, or a number of seconds",
        ),
        ({"every": None}, "/every", "every is null"),
        ({"every": []}, "/every", "every is an array"),
        ({"every": 0}, "/every", "out of range"),
        ({"every": -5}, "/every", "out of range"),
        ({"every": 0.999}, "/every", "out of range"),
        ({"every": NAN}, "/every", "out of range"),
        ({"every": INF}, "/every", "out of range"),
        ({"every": 1e300}, "/every", "out of range"),
        ({"every": 10**400}, "/every", "out of range"),
        ({"every": "9 00"}, "/every", "every '9 00' is not a duration; expected"),
        ({"every": "5M"}, "/every", "every '5M' is not a duration; expected a duration such as 15m"),
        ({"every": ""}, "/every", "not a duration"),
        ({"every": "P"}, "/every", "not a duration"),
        ({"every": "PT"}, "/every", "not a duration"),
        ({"every": "P1DT"}, "/every", "not a duration"),
        ({"every": "-PT5M"}, "/every", "not a duration"),
        ({"every": "pt5m"}, "/every", "not a duration"),
        ({"every": "PT5M\n"}, "/every", "not a duration"),
        ({"every": "PT\u0665M"}, "/every", "not a duration"),
        ({"every": "PT0S"}, "/every", "out of range"),
        ({"every": "PT0.5S"}, "/every", "out of range"),
        ({"every": "P999999999D"}, "/every", "out of range"),
        ({"every": "P999999999W"}, "/every", "out of range"),
        ({"every": "P1M"}, "/every", "a month has no fixed length"),
        ({"every": "P1Y"}, "/every", "a month has no fixed length"),
        ({"every": "P1Y2M3DT4H"}, "/every", "a month has no fixed length"),
        ({"cron": "@daily", "timezone": "Europe/Berln"}, "/timezone", "Europe/Berlin"),
        ({"cron": "@daily", "timezone": 5}, "/timezone", "timezone is a number"),
        ({"cron": "@daily", "rrule": "FREQ=DAILY"}, "", "'cron' and 'rrule'; give exactly one"),
        ({"rrule": "FREQ=DAILY"}, "/rrule", "DTSTART"),
        ({"rrule": "FREQ=DALY", "dtstart": "2026-03-04T09:00:00"}, "/rrule", "FREQ"),
        ({"rrule": 5, "dtstart": "2026-03-04T09:00:00"}, "/rrule", "rrule is a number"),
        (
            {"rrule": "FREQ=DAILY", "dtstart": "tomorrow"},
            "/dtstart",
            "dtstart 'tomorrow' is not a local time",
        ),
        ({"rrule": "FREQ=DAILY", "dtstart": "2026-03-04T09:00:00Z"}, "/dtstart", "without offset"),
        ({"cron": "@daily", "dtstart": "2026-03-04T09:00:00"}, "/dtstart", "for rrule schedules only"),
        ({"every": 5, "dialect": "quartz"}, "/dialect", "for cron schedules only"),
        ({"cron": "@daily", "dialect": "spring"}, "/dialect", "dialect is 'spring'; expected unix, quartz"),
        ({"cron": "H * * * *"}, "/cron", "name"),
        ({"cron": "@daily", "jitter_seconds": -1}, "/jitter_seconds", "expected a number of seconds from 0"),
        ({"cron": "@hourly", "jitter_seconds": 3600}, "/jitter_seconds", "less than the shortest time"),
        ({"cron": "@daily", "dst_gap": "sometimes"}, "/dst_gap", "expected auto, run_after, skip, shift"),
        ({"cron": "@daily", "dst_overlap": 1}, "/dst_overlap", "expected auto, first, last, both"),
        (
            {"cron": "@daily", "max_runs": 0},
            "/max_runs",
            "max_runs is 0; expected a whole number, at least 1",
        ),
        ({"cron": "@daily", "max_runs": 1.5}, "/max_runs", "max_runs is 1.5"),
        ({"cron": "@daily", "calendars": {"exclude": ["x"]}}, "/calendars/exclude", "'x' is not known"),
        ({"cron": "@daily", "calendars": {}}, "/calendars", "has no names"),
        ({"cron": "@daily", "calendars": 5}, "/calendars", "calendars is a number"),
        (
            {"cron": "@daily", "evry": 3},
            "/evry",
            "unknown field 'evry'; expected any, cron, rrule, every",
        ),
        ({"cron": "@daily", "a/b~c": 3}, "/a~1b~0c", "unknown field"),
        ({"cron": "@daily", "anchor": "2026-06-01T00:00:00Z"}, "/anchor", "unknown field"),
        (
            {"cron": "@daily", "start": "2026-06-01"},
            "/start",
            "start '2026-06-01' is not an instant; expected",
        ),
        ({"cron": "@daily", "start": "2026-06-01T09:00:00"}, "/start", "with its offset"),
        ({"cron": "@daily", "start": "2026-02-30T09:00:00Z"}, "/start", "not a valid instant"),
        ({"cron": "@daily", "start": "2026-02-20T09:00:60Z"}, "/start", "not a valid instant"),
        ({"cron": "@daily", "start": "0001-01-01T00:00:00+10:00"}, "/start", "not a valid instant"),
        ({"cron": "@daily", "start": "1969-12-31T23:59:59Z"}, "/start", "too early"),
        ({"cron": "@daily", "start": 1_780_000_000}, "/start", "start is a number"),
        ({"cron": "@daily", "end": "2026-03-04T05:06:07Z"}, "/end", "is in the past"),
        (
            {"cron": "@daily", "start": "2026-06-02T00:00:00Z", "end": "2026-06-01T00:00:00Z"},
            "/end",
            "end 2026-06-01T00:00:00Z is before start 2026-06-02T00:00:00Z",
        ),
        ({"cron": "0 9 * * *", "end": "2026-03-04T08:59:59Z"}, "/end", "no instant after the job's creation"),
        ({"cron": "@daily", "start": "9999-12-31T12:00:00Z"}, "", "no instant after the job's creation"),
    ],
    ids=str,
)
def test_a_bad_schedule_is_refused_with_pointer_and_what_is_allowed(value, pointer, said):
    with pytest.raises(ScheduleError) as refused:
        parse_schedule(value, created_at=T0)
    assert refused.value.pointer == pointer
    assert said in refused.value.message
    assert len(refused.value.message) < 400


def test_a_refused_cron_field_carries_the_character():
    with pytest.raises(ScheduleError) as refused:
        parse_schedule({"cron": "0 25 * * *"}, created_at=T0)
    assert (refused.value.pointer, refused.value.position) == ("/cron", 3)


json_leaves = st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8)
every_texts = st.text("PTDHMSWY-0123456789.", max_size=12)
cron_like = st.text("*/-, 0123456789LWH#?@abc", max_size=20) | st.lists(
    st.text("*/-,01239LH", min_size=1, max_size=5), min_size=5, max_size=5
).map(" ".join)


@given(
    json_leaves
    | cron_like
    | st.fixed_dictionaries(
        {},
        optional={
            "every": json_leaves | every_texts,
            "cron": json_leaves | cron_like,
            "end": json_leaves | moments.map(format_instant),
            "start": json_leaves | moments.map(format_instant),
            "timezone": json_leaves,
        },
    )
)
@settings(max_examples=200, deadline=None)
def test_any_json_value_is_a_schedule_or_a_schedule_error(value):
    try:
        schedule = parse_schedule(value, created_at=T0)
    except ScheduleError:
        return
    first = schedule.first(T0)
    assert first is not None
    assert first > T0


@pytest.mark.parametrize(
    "spec", [{}, {"every": 5}, {"every": 5, "anchor": "x"}, {"cron": "x"}, {"cron": None}, {"run_at": None}]
)
def test_a_damaged_stored_schedule_is_an_error_of_its_own_kind(spec):
    with pytest.raises(ScheduleError):
        load_schedule(spec)


def test_an_interval_outside_its_limits_cannot_be_made():
    for every in (
        timedelta(microseconds=999_999),
        timedelta(0),
        timedelta(seconds=-1),
        MAX_EVERY + MICROSECOND,
    ):
        with pytest.raises(ScheduleError, match="expected 1 s to"):
            Interval(every, T0)
