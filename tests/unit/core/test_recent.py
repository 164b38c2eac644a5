"""The outcomes of a job's last hour: their compact form, and what of them counts."""

from collections import Counter
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from noonmark.core.monitoring.recent import (
    BOUNDS,
    DEAD,
    FAILED,
    OTHER,
    SKIPPED,
    SUCCEEDED,
    WINDOW_SECONDS,
    WINDOWS,
    Rates,
    decode,
    encode,
    key_of,
    last_hour,
    percentile,
    rates_of,
    success_in,
)

AT = datetime(2026, 6, 1, 9, 7, 30, tzinfo=UTC)
MOST = success_in(1e9)
"""The highest number that stands for an end of an attempt."""

moments = st.integers(0, 4 * 3_600_000).map(lambda ms: AT + timedelta(milliseconds=ms))
happened = st.tuples(moments, st.integers(OTHER, MOST))
anything = st.dictionaries(st.integers(0, 2**40), st.integers(1, 2**40), max_size=50)
EVERYTHING = range(2**41)


def window_of(at: datetime) -> datetime:
    """The start of a window, by arithmetic on dates."""
    return at - timedelta(minutes=at.minute % 5, seconds=at.second, microseconds=at.microsecond)


@given(anything)
def test_what_is_stored_is_read_again(counts):
    assert decode(encode(counts), EVERYTHING) == counts


@given(anything)
def test_equal_counts_have_one_form(counts):
    assert encode(dict(reversed(counts.items()))) == encode(counts)


def test_no_counts_are_null():
    assert encode({}) is None
    assert decode(None, EVERYTHING) == {}


@given(st.lists(happened, max_size=60), st.lists(moments, max_size=5), moments)
def test_stored_and_read_at_any_moments_the_last_hour_has_the_counts_of_its_windows(events, stores, read_at):
    """As if each window were a row of its own, which is never changed or dropped."""
    rows: Counter[tuple[datetime, int]] = Counter()
    stored = None
    clock = AT
    pending = sorted(events)
    for moment in [*sorted(stores), max([read_at, *stores, *(at for at, _ in events)])]:
        clock = moment
        counts = decode(stored, last_hour(clock))
        while pending and pending[0][0] <= clock:
            at, what = pending.pop(0)
            rows[window_of(at), what] += 1
            if (key := key_of(at, what)) in last_hour(clock):
                counts[key] = counts.get(key, 0) + 1
        stored = encode(counts)

    wanted = Counter()
    for (window, what), count in rows.items():
        if window > clock - timedelta(hours=1):
            wanted[what] += count
    rates = rates_of(decode(stored, last_hour(clock)))
    assert rates == Rates(
        succeeded=sum(wanted[what] for what in range(SUCCEEDED, MOST + 1)),
        failed=wanted[FAILED] + wanted[DEAD],
        dead=wanted[DEAD],
        skipped=wanted[SKIPPED],
        other=wanted[OTHER],
        seconds_buckets=[wanted[what] for what in range(SUCCEEDED + 1, MOST + 1)],
    )


@given(st.lists(happened, max_size=300), moments)
def test_no_more_than_thirteen_windows_are_kept(events, now):
    hour = last_hour(now)
    kept = {window_of(at) for at, what in events if key_of(at, what) in hour}

    assert len(kept) <= WINDOWS + 1
    assert all(window > now - timedelta(hours=1) for window in kept)
    assert all(at >= now - timedelta(hours=1) for at in kept)


def test_the_last_hour_begins_with_a_window_and_ends_with_the_next_one():
    hour = last_hour(AT)
    first, last = (
        datetime(2026, 6, 1, 8, 10, tzinfo=UTC),
        datetime(2026, 6, 1, 9, 14, 59, 999_999, tzinfo=UTC),
    )

    assert [key_of(at, OTHER) in hour for at in (first - timedelta(microseconds=1), first)] == [False, True]
    assert [key_of(at, MOST) in hour for at in (last, last + timedelta(microseconds=1))] == [True, False]
    assert last_hour(AT.replace(minute=5, second=0)) == hour != last_hour(AT.replace(minute=10, second=0))


def test_an_impossible_instant_does_not_count():
    for at in (datetime.min.replace(tzinfo=UTC), datetime.max.replace(tzinfo=UTC)):
        assert key_of(at, OTHER) not in last_hour(AT)


def test_a_job_that_runs_every_five_minutes_needs_few_bytes():
    counts = {key_of(AT + timedelta(seconds=n * WINDOW_SECONDS), success_in(0.3)): 1 for n in range(12)}

    assert len(encode(counts) or b"") == 27


def test_even_every_outcome_in_every_window_is_bounded():
    counts = dict.fromkeys((key for key in last_hour(AT) if key % 32 <= MOST), 1_000_000)

    assert len(counts) == (WINDOWS + 1) * (MOST + 1)
    assert len(encode(counts) or b"") < 1200


@pytest.mark.parametrize("stored", [b"\x80", b"\x05", b"\x05\x01\x85", b"\x05\x01\x07"])
def test_what_was_never_stored_is_refused(stored):
    with pytest.raises(ValueError, match="set it to null"):
        decode(stored, EVERYTHING)


def test_what_a_later_release_counts_is_other_here():
    assert rates_of({key_of(AT, MOST + 1): 2}).other == 2


def test_a_duration_counts_in_the_first_bucket_that_holds_it():
    assert [success_in(seconds) - success_in(0) for seconds in (0.01, 0.011, 3600.0, 3600.1)] == [
        0, 1, len(BOUNDS) - 1, len(BOUNDS),
    ]  # fmt: skip


def test_percentiles_are_bounds_of_buckets():
    buckets = [0] * (len(BOUNDS) + 1)
    buckets[0], buckets[6] = 98, 2

    assert percentile(buckets, 0.5) == 0.01
    assert percentile(buckets, 0.99) == 1.0
    assert percentile([0] * len(buckets), 0.5) is None
    assert percentile([0] * len(BOUNDS) + [5], 0.5) is None
