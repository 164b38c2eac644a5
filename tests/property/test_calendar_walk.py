"""Rules under calendars, against a walk through all times that knows nothing of jumps."""

# ruff: noqa: DTZ001 - local times are naive

from bisect import bisect_left, bisect_right
from datetime import date, datetime, time, timedelta
from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.support.local_times import Times

from noonmark.core.calendars.calendar import Calendar, OnHoliday, OpenDays
from noonmark.core.calendars.rule import CalendarRule
from noonmark.core.cron.expression import parse_cron

SKIP, PREVIOUS = OnHoliday.SKIP, OnHoliday.PREVIOUS_BUSINESS_DAY
FIRST, LAST = date(2026, 10, 1), date(2027, 3, 31)
ALL_WEEK = ["MON", "TUE", "WED", "THU", "FRI", "SAT", "SUN"]


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
        note = under.note_of(at)
        assert (note is None) == (origin == at), at
        assert note is None or note.startswith(f"moved: {origin.date()} is "), at
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
    check(Times(listed), listed, days, mode, [*near, *listed[:20], datetime.combine(LAST, time())])


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
