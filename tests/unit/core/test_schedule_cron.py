"""Cron schedules in UTC: instants strictly after, and agreement with a day-by-day oracle."""

from datetime import UTC, datetime, timedelta

from hypothesis import assume, given, settings
from hypothesis import strategies as st

from noonmark.core.schedules.schedule import Cron, ScheduleError

moments = st.integers(0, 180 * 365 * 86_400 * 1_000_000).map(
    lambda micros: datetime(1971, 1, 1, tzinfo=UTC) + timedelta(microseconds=micros)
)


def test_the_next_instant_lies_strictly_after_also_by_a_microsecond():
    noon = datetime(2026, 5, 4, 12, tzinfo=UTC)
    cron = Cron("0 12 * * *")
    assert cron.next(noon - timedelta(microseconds=1)) == noon
    assert cron.next(noon) == noon + timedelta(days=1)
    assert cron.next(noon + timedelta(microseconds=1)) == noon + timedelta(days=1)
    assert cron.previous(noon) == noon
    assert cron.previous(noon - timedelta(microseconds=1)) == noon - timedelta(days=1)


def test_the_end_of_the_calendar_is_never_and_no_error():
    cron = Cron("0 0 29 2 *")
    assert cron.next(datetime(9997, 1, 1, tzinfo=UTC)) is None
    assert cron.previous(datetime(2, 1, 1, tzinfo=UTC)) is None
    assert Cron("* * * * *").next(datetime.max.replace(tzinfo=UTC)) is None


field_sets = st.tuples(
    st.sets(st.integers(0, 59), min_size=1, max_size=4),
    st.sets(st.integers(0, 23), min_size=1, max_size=4),
    st.none() | st.sets(st.integers(1, 31), min_size=1, max_size=4),
    st.none() | st.sets(st.integers(1, 12), min_size=1, max_size=4),
    st.none() | st.sets(st.integers(0, 6), min_size=1, max_size=4),
)


def text_of(sets) -> str:
    return " ".join("*" if values is None else ",".join(map(str, sorted(values))) for values in sets)


def days_between(sets, first: datetime, count: int) -> list[datetime]:
    """The oracle: every instant of `count` days, found by looking at each day."""
    minutes, hours, days, months, weekdays = sets
    found = []
    for offset in range(count):
        day = first.replace(hour=0, minute=0, second=0, microsecond=0) + timedelta(days=offset)
        by_date = days is None or day.day in days
        by_weekday = weekdays is None or day.isoweekday() % 7 in weekdays
        matches = (
            by_date or by_weekday if days is not None and weekdays is not None else by_date and by_weekday
        )
        if matches and (months is None or day.month in months):
            found += [day.replace(hour=h, minute=m) for h in sorted(hours) for m in sorted(minutes)]
    return found


@given(field_sets, moments)
@settings(max_examples=60, deadline=None)
def test_instants_and_counts_agree_with_a_look_at_each_day(sets, after):
    try:
        cron = Cron(text_of(sets))
    except ScheduleError:
        assume(False)
    days = 430
    expected = [at for at in days_between(sets, after, days) if at > after]
    stop = after.replace(hour=0, minute=0, second=0, microsecond=0) + timedelta(days=days, microseconds=-1)
    assert cron.between(after, stop, 40) == expected[:40]
    assert cron.count(after, stop) == len(expected)
    if expected:
        assert cron.previous(stop) == expected[-1]
