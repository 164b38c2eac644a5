"""When an alert is due: arithmetic on what was observed."""

from datetime import UTC, datetime, timedelta
from itertools import pairwise
from uuid import UUID

from hypothesis import given
from hypothesis import strategies as st

from noonmark.core.monitoring.alerts import SEVERITIES, AlertKind, Streak, fingerprint_of, usual
from noonmark.core.monitoring.statistics import (
    BOUNDS,
    ONE_TIME,
    UNKNOWN_KIND,
    Counts,
    JobFacts,
    JobStats,
    Outcome,
    WindowKey,
    fold,
    percentile,
    window_of,
)

AT = datetime(2026, 6, 1, 9, 7, 30, tzinfo=UTC)
RECURRING, ONCE, GONE = UUID(int=1), UUID(int=2), UUID(int=3)
JOBS = {RECURRING: JobFacts("http", recurring=True), ONCE: JobFacts("python", recurring=False)}

seconds = st.floats(0, 1e6, allow_nan=False)


def outcome(state="succeeded", *, job=RECURRING, took=1.0, error=None, reason=None, at=AT, run=9) -> Outcome:
    return Outcome(UUID(int=run), job, "tests", state, reason, at - timedelta(seconds=took), at, error, at)


outcomes = st.lists(
    st.builds(
        outcome,
        st.sampled_from(["succeeded", "retrying", "dead", "skipped", "cancelled", "queued"]),
        job=st.sampled_from([RECURRING, ONCE, GONE]),
        took=st.floats(0, 5000, allow_nan=False),
        error=st.sampled_from([None, "ValueError: 1", "KeyError: x"]),
        at=st.integers(0, 86_400_000).map(lambda ms: AT + timedelta(milliseconds=ms)),
    ),
    max_size=30,
)


def test_every_kind_has_a_severity_and_fingerprints_tell_kinds_apart():
    assert set(SEVERITIES) == set(AlertKind)
    assert len({fingerprint_of(kind, "x") for kind in AlertKind}) == len(AlertKind)


def test_the_first_duration_is_the_usual_one_and_later_ones_move_it_a_fifth():
    assert usual(None, 10.0) == 10.0
    assert usual(10.0, 20.0) == 12.0


@given(st.lists(seconds, min_size=1, max_size=20))
def test_the_usual_duration_lies_between_the_shortest_and_the_longest(durations):
    found = None
    for duration in durations:
        found = usual(found, duration)

    assert found is not None
    assert min(durations) * 0.999999 <= found <= max(durations) * 1.000001


def test_equal_failures_make_a_streak_and_another_cause_begins_anew():
    streak = Streak().failed("a").failed("a").failed("a")

    assert (streak.length, streak.cause) == (3, "a")
    assert streak.failed("b") == Streak(1, "b")


def test_a_success_ends_a_streak_and_is_what_is_usual():
    stats = JobStats(RECURRING, "tests", "http")
    for state in ("retrying", "retrying", "dead"):
        stats.add(outcome(state, error="ValueError: order 17"))
    assert (stats.failures, stats.last_error) == (3, "ValueError: order 17")

    stats.add(outcome(took=4.0))

    assert (stats.failures, stats.failure_cause, stats.runs, stats.usual_seconds) == (0, None, 1, 4.0)
    assert stats.last_success_at == AT


def test_failures_of_one_cause_are_equal_whatever_number_they_name():
    stats = JobStats(RECURRING, "tests", "http")
    for number in (17, 18, 19):
        stats.add(outcome("retrying", error=f"ValueError: order {number}"))

    assert stats.failures == 3


def test_a_snooze_is_no_failure():
    stats = JobStats(RECURRING, "tests", "http")
    stats.add(outcome("retrying", error="ValueError"))
    stats.add(outcome("retrying"))

    assert stats.failures == 1


def test_outcomes_are_counted_by_window_job_and_kind():
    stats = {}
    counts = fold(
        [
            outcome(took=0.2),
            outcome("dead", error="x", job=ONCE),
            outcome("skipped", job=GONE),
            outcome("cancelled", at=AT + timedelta(minutes=5)),
        ],
        JOBS,
        stats,
    )

    nine_five = datetime(2026, 6, 1, 9, 5, tzinfo=UTC)
    assert counts[WindowKey(nine_five, RECURRING, "tests", "http")].succeeded == 1
    assert counts[WindowKey(nine_five, ONE_TIME, "tests", "python")] == Counts(failed=1, dead=1)
    assert counts[WindowKey(nine_five, ONE_TIME, "tests", UNKNOWN_KIND)] == Counts(skipped=1)
    assert counts[WindowKey(nine_five + timedelta(minutes=5), RECURRING, "tests", "http")].other == 1
    assert set(stats) == {RECURRING}


@given(outcomes, st.lists(st.integers(0, 30), max_size=4))
def test_it_does_not_matter_how_the_stream_is_cut(stream, cuts):
    whole: dict[UUID, JobStats] = {}
    at_once = fold(stream, JOBS, whole)

    pieces: dict[UUID, JobStats] = {}
    added: dict[WindowKey, Counts] = {}
    edges = [0, *sorted(min(cut, len(stream)) for cut in cuts), len(stream)]
    for begin, end in pairwise(edges):
        for key, counts in fold(stream[begin:end], JOBS, pieces).items():
            kept = added.setdefault(key, Counts())
            for name in ("succeeded", "failed", "dead", "skipped", "other"):
                setattr(kept, name, getattr(kept, name) + getattr(counts, name))
            kept.seconds_buckets = [
                was + more for was, more in zip(kept.seconds_buckets, counts.seconds_buckets, strict=True)
            ]

    assert pieces == whole
    assert added == at_once


@given(outcomes)
def test_each_outcome_is_counted_once(stream):
    counts = fold(stream, JOBS, {}).values()

    assert sum(c.succeeded + c.failed + c.skipped + c.other for c in counts) == len(stream)
    assert sum(sum(c.seconds_buckets) for c in counts) == sum(one.state == "succeeded" for one in stream)


def test_a_window_begins_at_a_full_five_minutes():
    assert window_of(datetime(2026, 6, 1, 9, 4, 59, 999999, tzinfo=UTC)) == datetime(
        2026, 6, 1, 9, 0, tzinfo=UTC
    )
    assert window_of(datetime(2026, 6, 1, 9, 5, tzinfo=UTC)) == datetime(2026, 6, 1, 9, 5, tzinfo=UTC)


def test_percentiles_are_bounds_of_buckets():
    buckets = [0] * (len(BOUNDS) + 1)
    buckets[0], buckets[6] = 98, 2

    assert percentile(buckets, 0.5) == 0.01
    assert percentile(buckets, 0.99) == 1.0
    assert percentile([0] * len(buckets), 0.5) is None
    assert percentile([0] * len(BOUNDS) + [5], 0.5) is None
