"""Rules under calendars, against a walk through all times that knows nothing of jumps."""

# ruff: noqa: DTZ001
from bisect import bisect_left, bisect_right
from dataclasses import dataclass
from datetime import date, datetime, time, timedelta
from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from noonmark.core.calendar_rule import CalendarRule
from noonmark.core.calendars import Calendar, OnHoliday, OpenDays
from noonmark.core.cron import parse_cron

SKIP, NEXT, PREVIOUS = OnHoliday.SKIP, OnHoliday.NEXT_BUSINESS_DAY, OnHoliday.PREVIOUS_BUSINESS_DAY
FIRST, LAST = date(2026, 10, 1), date(2027, 3, 31)
ALL_WEEK = ["MON", "TUE", "WED", "THU", "FRI", "SAT", "SUN"]


@dataclass(frozen=True)
class Listed:
    """The plainest rule: its times are written out."""

    times: tuple[datetime, ...]

    def next(self, after):
        place = bisect_right(self.times, after)
        return self.times[place] if place < len(self.times) else None

    def previous(self, at):
        place = bisect_right(self.times, at)
        return self.times[place - 1] if place else None

    def count(self, after, until):
        return max(0, bisect_right(self.times, until) - bisect_right(self.times, after))


def days_of(exclude=None, include=None):
    return OpenDays(
        (("holidays", Calendar.parse(exclude)),) if exclude else (),
        (("business", Calendar.parse(include)),) if include else (),
    )


def expected(times, days, mode):
    """Every fire with its earliest origin, found by walking; and the times that are taken away."""
    fires: dict[datetime, datetime] = {}
    gone = []
    for at in times:
        day, step = at.date(), -1 if mode is PREVIOUS else 1
        for _ in range(367):
            if days.is_open(day) or mode is SKIP:
                break
            day += timedelta(days=step)
        if not days.is_open(day):
            gone.append(at)
            continue
        moved = datetime.combine(day, at.time())
        if moved not in fires or at == moved:
            fires[moved] = at
    return dict(sorted(fires.items())), gone


def check(rule, times, days, mode, probes):
    under = CalendarRule(rule, days, mode)
    fires, gone = expected(times, days, mode)
    instants = list(fires)
    for at in probes:
        place = bisect_right(instants, at)
        assert under.next(at) == (instants[place] if place < len(instants) else None), at
        assert under.previous(at) == (instants[place - 1] if place else None), at
    for begin, end in zip(probes, probes[::-1], strict=True):
        count = max(0, bisect_right(instants, end) - bisect_right(instants, begin))
        assert under.count(begin, end) == count, (begin, end)
    for at in probes:
        origin = fires.get(at, at)
        assert under.note_of(at) == (f"moved: {origin.date()} is a holiday" if origin != at else None), at
    if times:
        told = under.skipped(times[0] - timedelta(seconds=1), times[-1], 100_000)
        assert [at for at, _ in told] == gone
        assert all(note.startswith(f"skipped: {at.date()} is ") for at, note in told)


def moments():
    span = int((LAST - FIRST).total_seconds())
    return st.integers(0, span).map(lambda s: datetime.combine(FIRST, time()) + timedelta(seconds=s))


DAYS = st.integers(0, (LAST - FIRST).days).map(lambda n: FIRST + timedelta(days=n))


@st.composite
def closings(draw):
    exclude = {"dates": draw(st.lists(DAYS, max_size=12))}
    if draw(st.booleans()):
        exclude["weekdays"] = draw(st.lists(st.sampled_from(ALL_WEEK), max_size=5))
    if draw(st.booleans()):
        first = draw(DAYS)
        exclude["ranges"] = [{"first": first, "last": first + timedelta(days=draw(st.integers(0, 60)))}]
    include = {"weekdays": ["MON", "THU"], "dates": [draw(DAYS)]} if draw(st.booleans()) else None
    return days_of(exclude, include)


@settings(max_examples=100, deadline=None)
@given(
    times=st.sets(moments(), max_size=60),
    hours=st.lists(st.sampled_from([time(0), time(9), time(9, 30), time(23, 59, 59)]), unique=True),
    first=DAYS,
    days=closings(),
    mode=st.sampled_from(OnHoliday),
)
def test_any_times_under_any_calendars_equal_a_walk_through_them(times, hours, first, days, mode):
    daily = {datetime.combine(first + timedelta(days=n), at) for at in hours for n in range(40)}
    listed = tuple(sorted(times | daily))
    fires, _ = expected(listed, days, mode)
    near = [at + timedelta(seconds=by) for at in list(fires)[:40] for by in (-1, 0, 1)]
    check(Listed(listed), listed, days, mode, [*near, *listed[:20], datetime.combine(LAST, time())])


@pytest.mark.parametrize("mode", OnHoliday)
@pytest.mark.parametrize(
    "expression", ["0 9 * * *", "*/30 9-10 * * MON", "0 0 1,15 * *", "59 23 * * SAT", "0 0 29 2 *"]
)
@pytest.mark.parametrize(
    "days",
    [
        days_of({"weekdays": ["SAT", "SUN"], "dates": ["2026-12-25"], "yearly": ["01-01"]}),
        days_of({"weekdays": ["MON"], "ranges": [{"first": "2026-12-20", "last": "2027-01-10"}]}),
        days_of(None, {"yearly": ["12-31", "06-30"]}),
    ],
)
def test_cron_under_calendars_equals_a_walk_through_its_times(expression, days, mode):
    rule = parse_cron(expression)
    begin, end = datetime(2020, 1, 1), datetime(2034, 1, 1)
    times = [begin] if rule.previous(begin) == begin else []
    while (at := rule.next(times[-1] if times else begin)) is not None and at < end:
        times.append(at)
    under = CalendarRule(rule, days, mode)
    fires, _ = expected(times, days, mode)
    # Near the ends a fire may come from beyond what was walked.
    instants = [at for at in fires if datetime(2022, 1, 1) <= at < datetime(2032, 1, 1)]
    for one, following in pairwise(instants[:300]):
        assert under.next(one) == following
        assert under.previous(following - timedelta(seconds=1)) == one
    low, high = datetime(2022, 1, 1), datetime(2032, 1, 1)
    assert under.count(low - timedelta(seconds=1), high - timedelta(seconds=1)) == len(instants)
    middle = datetime(2026, 11, 27, 9, 15)
    assert under.count(middle, high - timedelta(seconds=1)) == len(instants) - bisect_left(
        instants, middle + timedelta(seconds=1)
    )


def test_a_holiday_is_skipped_or_moved_at_the_same_time_of_day():
    rule, days = parse_cron("30 9 * * *"), days_of({"weekdays": ["SAT", "SUN"], "dates": ["2026-12-25"]})
    thursday, monday = datetime(2026, 12, 24, 9, 30), datetime(2026, 12, 28, 9, 30)
    fires = {mode: CalendarRule(rule, days, mode).next(thursday) for mode in OnHoliday}
    assert fires == {SKIP: monday, NEXT: monday, PREVIOUS: monday}
    rule = parse_cron("30 9 25 12 *")
    fires = {mode: CalendarRule(rule, days, mode).next(datetime(2026, 1, 1)) for mode in OnHoliday}
    assert fires == {SKIP: datetime(2028, 12, 25, 9, 30), NEXT: monday, PREVIOUS: thursday}


def test_a_moved_fire_names_the_first_day_it_comes_from_and_an_own_one_names_none():
    days = days_of({"ranges": [{"first": "2026-12-24", "last": "2026-12-27"}]})
    weekly = CalendarRule(parse_cron("0 9 * * THU-SUN"), days, NEXT)
    assert weekly.note_of(datetime(2026, 12, 28, 9)) == "moved: 2026-12-24 is a holiday"
    assert weekly.note_of(datetime(2026, 12, 28, 10)) is None
    daily = CalendarRule(parse_cron("0 9 * * *"), days, NEXT)
    assert daily.note_of(datetime(2026, 12, 28, 9)) is None
    assert CalendarRule(parse_cron("0 9 * * *"), days, SKIP).note_of(datetime(2026, 12, 28, 9)) is None


def test_what_calendars_took_away_is_told_with_the_reason_up_to_the_limit():
    rule = CalendarRule(parse_cron("0 9,17 * * *"), days_of({"dates": ["2026-12-25", "2026-12-31"]}))
    told = rule.skipped(datetime(2026, 12, 1), datetime(2027, 1, 31), 3)
    assert told == [
        (datetime(2026, 12, 25, 9), "skipped: 2026-12-25 is in calendar holidays"),
        (datetime(2026, 12, 25, 17), "skipped: 2026-12-25 is in calendar holidays"),
        (datetime(2026, 12, 31, 9), "skipped: 2026-12-31 is in calendar holidays"),
    ]


def test_a_fire_without_an_open_day_within_a_year_is_told_as_skipped():
    days = days_of({"ranges": [{"first": "2026-01-01", "last": "2028-12-31"}]})
    rule = CalendarRule(parse_cron("0 9 1 6 *"), days, NEXT)
    assert rule.skipped(datetime(2026, 1, 1), datetime(2029, 12, 31), 10) == [
        (
            datetime(year, 6, 1, 9),
            f"skipped: {year}-06-01 is in calendar holidays, and no day in the 366 after it is open",
        )
        for year in (2026, 2027)
    ]
    assert rule.next(datetime(2026, 1, 1)) == datetime(2029, 1, 1, 9)
    back = CalendarRule(parse_cron("0 9 1 6 *"), days, PREVIOUS)
    assert back.next(datetime(2025, 7, 1)) == datetime(2025, 12, 31, 9)
    assert back.next(datetime(2026, 1, 1)) == datetime(2029, 6, 1, 9)


@pytest.mark.parametrize("mode", OnHoliday)
@pytest.mark.parametrize("expression", ["* * * * *", "0 9 * * *", "0 0 29 2 MON", "0 9 * * SAT"])
def test_a_rule_whose_days_are_all_closed_has_no_fire_and_its_search_ends(expression, mode):
    rule = CalendarRule(parse_cron(expression), days_of({"weekdays": ALL_WEEK}), mode)
    at = datetime(2026, 11, 28, 12)
    assert (rule.next(at), rule.previous(at), rule.count(at, at + timedelta(days=3650))) == (None, None, 0)


def test_only_closed_days_of_a_rule_end_its_search():
    weekly = CalendarRule(parse_cron("0 9 * * SAT"), days_of({"weekdays": ["SAT"]}))
    assert weekly.next(datetime(2026, 11, 28)) is None
    assert weekly.previous(datetime(2026, 11, 28)) is None


@pytest.mark.parametrize("mode", OnHoliday)
def test_an_open_day_years_away_is_found(mode):
    days = days_of(None, {"dates": ["2040-06-01"]})
    rule = CalendarRule(parse_cron("0 9 * * *"), days, mode)
    assert rule.next(datetime(2026, 1, 1)) == datetime(2040, 6, 1, 9)
    assert rule.next(datetime(2040, 6, 1, 9)) is None
    assert rule.previous(datetime(2060, 1, 1)) == datetime(2040, 6, 1, 9)


@pytest.mark.parametrize("mode", OnHoliday)
def test_the_ends_of_time_are_no_obstacle(mode):
    rule = CalendarRule(parse_cron("0 9 * * *"), days_of({"weekdays": ["SAT", "SUN"]}), mode)
    assert rule.next(datetime(9999, 12, 31, 12)) is None
    assert rule.previous(datetime(1, 1, 1, 1)) is None
    assert rule.previous(datetime(9999, 12, 31, 12)) == datetime(9999, 12, 31, 9)


class Counting:
    """A rule that notes how often it is asked."""

    def __init__(self, rule):
        self.rule, self.asked = rule, 0

    def __getattr__(self, name):
        self.asked += 1
        return getattr(self.rule, name)


def test_ten_years_of_minutes_are_counted_by_stretches_of_open_days():
    days = days_of({"weekdays": ["SAT", "SUN"], "yearly": ["12-25", "01-01"]})
    begin, end = datetime(2025, 12, 31, 23, 59), datetime(2035, 12, 31, 23, 59)
    open_days = sum(days.is_open(date(2026, 1, 1) + timedelta(days=n)) for n in range(3652))
    minutes = parse_cron("* * * * *")
    rule = Counting(minutes)
    assert CalendarRule(rule, days, SKIP).count(begin, end) == 1440 * open_days
    assert rule.asked < 600
    # What is moved comes to minutes that fire anyway.
    assert CalendarRule(minutes, days, NEXT).count(begin, end) == 1440 * open_days
    assert CalendarRule(minutes, days, PREVIOUS).count(begin, end) == 1440 * open_days


def test_equal_rules_are_equal_keys():
    days = [days_of({"dates": ["2026-12-25"]}) for _ in range(2)]
    assert len({CalendarRule(parse_cron("0 9 * * *"), one, NEXT) for one in days}) == 1
