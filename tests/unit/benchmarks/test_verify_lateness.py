"""Periods with and without checks are compared pair by pair."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from benchmarks.figures import Spread
from benchmarks.verify_lateness import _periods, figures


def spread(p99: float) -> Spread:
    found = Spread.of_seconds([p99 / 1000])
    assert found is not None
    return found


def test_the_order_changes_from_pair_to_pair():
    begin = datetime(2026, 6, 1, tzinfo=UTC)
    periods = _periods(begin, 3, timedelta(minutes=1))

    assert [checked for _, checked in periods] == [False, True, True, False, False, True]
    assert [(at - begin).total_seconds() for at, _ in periods] == [0, 60, 120, 180, 240, 300]


def test_what_checks_add_is_the_median_of_the_differences_within_a_pair():
    """A drift over the whole time is in both periods of a pair."""
    off, on = [spread(10), spread(100), spread(50)], [spread(13), spread(104), spread(90)]

    found = figures(off, on)

    assert (found["p99_ms_off"], found["p99_ms_on"], found["added_p99_ms"]) == (50, 90, 4)
