"""The pure part of a backfill: ranges, counts, which instants run."""

from datetime import UTC, datetime, timedelta

import pytest

from noonmark.core.planning.backfill import BackfillError, BackfillRange, courtesy, to_run
from noonmark.core.schedules.schedule import parse_schedule
from noonmark.core.states import BackfillMode

DAY = datetime(2026, 3, 1, tzinfo=UTC)
HOURLY = parse_schedule({"every": 3600, "start": "2026-03-01T00:00:00Z"}, created_at=DAY)


def hours(*numbers: int) -> list[datetime]:
    return [DAY + timedelta(hours=n) for n in numbers]


def test_a_range_holds_its_beginning_and_not_its_end():
    asked = BackfillRange(*hours(2, 5))

    assert asked.instants(HOURLY, asked.from_at, 10) == hours(2, 3, 4)
    assert asked.count(HOURLY) == 3
    assert asked.instants(HOURLY, hours(3)[0], 1) == hours(3)
    assert asked.instants(HOURLY, hours(5)[0], 9) == []


def test_ranges_in_succession_share_no_instant_and_miss_none():
    parts = [BackfillRange(*hours(n, n + 3)).instants(HOURLY, DAY, 10) for n in (0, 3, 6)]

    assert [at for part in parts for at in part] == hours(*range(9))


@pytest.mark.parametrize("end", [0, -1])
def test_a_range_that_ends_where_it_begins_or_before_is_refused(end):
    with pytest.raises(BackfillError, match="not after its beginning 2026-03-01T00:00:00Z"):
        BackfillRange(*hours(0, end))


def test_a_range_with_offsets_is_read_in_utc_and_one_without_names_no_instant():
    asked = BackfillRange(datetime.fromisoformat("2026-03-01T01:00:00+01:00"), DAY + timedelta(days=1))

    assert asked.from_at == DAY
    assert asked.from_at.tzinfo is UTC
    with pytest.raises(ValueError, match="no offset"):
        BackfillRange(DAY.replace(tzinfo=None), DAY)


@pytest.mark.parametrize(
    ("now", "floor", "told"),
    [
        (4, 0, r"ends at .*05:00:00Z, in the future.*now"),
        (9, 3, r"begins at .*02:00:00Z.*before .*03:00:00Z"),
    ],
)
def test_a_range_outside_what_the_ledger_knows_is_refused(now, floor, told):
    with pytest.raises(BackfillError, match=told):
        BackfillRange(*hours(2, 5)).check(now=hours(now)[0], floor=hours(floor)[0])


def test_a_range_from_the_floor_until_now_is_the_widest():
    BackfillRange(*hours(2, 5)).check(now=hours(5)[0], floor=hours(2)[0])


def test_too_many_instants_are_counted_where_that_is_arithmetic_and_never_walked_to_the_end():
    walked = parse_schedule([{"every": 1, "start": "2026-03-01T00:00:00Z"}, {"every": 60}], created_at=DAY)
    asked = BackfillRange(DAY, DAY + timedelta(days=20))

    with pytest.raises(BackfillError, match="holds 480 instants; one backfill takes at most 100"):
        asked.count(HOURLY, 100)
    with pytest.raises(BackfillError, match="holds more than 1,000 instants"):
        asked.count(walked, 1000)
    assert asked.count(HOURLY, 480) == 480


STATES = ["waiting", "queued", "running", "retrying", "cancelling", "succeeded", "discarded"]
FAILED = ["dead", "unknown", "cancelled"]


@pytest.mark.parametrize(
    ("mode", "expected"),
    [("missing", {None}), ("missing_and_failed", {None, *FAILED}), ("all", {None, *FAILED, *STATES})],
)
def test_the_mode_decides_by_the_state_of_an_instants_newest_run(mode, expected):
    states = [None, *STATES, *FAILED]
    instants = hours(*range(len(states)))
    newest = {at: state for at, state in zip(instants, states, strict=True) if state is not None}

    chosen = to_run(BackfillMode(mode), instants, newest)

    assert {states[instants.index(at)] for at in chosen} == expected
    assert chosen == sorted(chosen)


@pytest.mark.parametrize(("period", "left"), [(0, 0), (1, 0.1), (60, 5), (86_400, 5)])
def test_the_slot_is_left_to_the_schedule_for_a_tenth_of_its_period_and_five_seconds_at_most(period, left):
    assert courtesy(period) == timedelta(seconds=left)
