"""Parts of a union remember what they answered: dense ones never make a sparse one search again and again."""

from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from noonmark.core.calendars.calendar import Calendar
from noonmark.core.planning.gaps import WALK_CAP, gap_of
from noonmark.core.schedules.cache import CachedPart, united
from noonmark.core.schedules.schedule import Interval, RRule, ScheduleError, parse_schedule

T0 = datetime(2026, 5, 4, tzinfo=UTC)
MINUTE = timedelta(minutes=1)


class Counted:
    """A part that counts how often it is asked."""

    def __init__(self, part):
        self.part = part
        self.asked = 0

    def next(self, after):
        self.asked += 1
        return self.part.next(after)

    def previous(self, at):
        self.asked += 1
        return self.part.previous(at)


def test_a_part_is_asked_once_per_instant_of_its_own_not_of_all():
    yearly = Counted(Interval(timedelta(days=365), T0))
    dense = Counted(Interval(MINUTE, T0))
    found = list(united([yearly, dense], T0, T0 + timedelta(days=1)))
    assert len(found) == 1440
    assert yearly.asked == 1
    assert dense.asked == 1441


def test_a_part_without_any_instant_is_asked_once_a_year():
    over = Counted(Interval(MINUTE, T0, end=T0 + MINUTE))
    part = CachedPart(over)
    for days in range(1, 366):
        assert part.next(T0 + timedelta(days=days)) is None
    assert over.asked == 1


@given(st.lists(st.integers(0, 20_000), min_size=1, max_size=30), st.integers(1, 4000))
@settings(max_examples=200, deadline=None)
def test_what_is_remembered_is_what_would_be_answered(questions, minutes):
    interval = Interval(minutes * MINUTE, T0, end=T0 + timedelta(days=9))
    part = CachedPart(interval)
    for minute in questions:
        at = T0 + minute * MINUTE
        assert part.next(at) == interval.next(at)
        assert part.previous(at) == interval.previous(at)


def test_a_rule_that_its_calendars_never_let_fire_does_not_slow_the_others():
    weekends = Calendar.parse({"weekdays": ["SAT", "SUN"]})
    document = {
        "rrule": ["FREQ=MINUTELY", "FREQ=WEEKLY;BYDAY=SA;BYHOUR=9;BYMINUTE=0"],
        "dtstart": "2026-01-01T00:00:00",
        "calendars": {"exclude": ["weekends"]},
    }
    schedule = parse_schedule(document, created_at=T0, calendars={"weekends": weekends})
    assert isinstance(schedule, RRule)
    saturdays = Counted(schedule._parts[1][0].part)
    schedule._parts[1][0].part = saturdays
    gap = gap_of(schedule, T0, T0 + timedelta(hours=8))
    assert gap.count(T0, gap.stop) == 481
    assert saturdays.asked <= 2


def test_a_member_that_its_calendars_never_let_fire_is_refused():
    weekends = Calendar.parse({"weekdays": ["SAT", "SUN"]})
    document = {"any": ["0 9 * * *", "0 9 * * SAT"], "calendars": {"exclude": ["weekends"]}}
    with pytest.raises(ScheduleError, match="never fires") as refused:
        parse_schedule(document, created_at=T0, calendars={"weekends": weekends})
    assert refused.value.pointer == "/any/1"


def test_a_step_of_a_walked_schedule_is_bounded_and_knows_the_last_instant_of_all():
    union = parse_schedule(["* * * * *", {"every": 3600}], created_at=T0)
    gap = gap_of(union, T0, T0 + timedelta(days=30))
    assert gap.count(T0, gap.stop) == WALK_CAP
    assert gap.latest == T0 + timedelta(days=30)
