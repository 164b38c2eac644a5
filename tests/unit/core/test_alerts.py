"""When an alert is due: arithmetic on what was observed."""

from datetime import UTC, datetime, timedelta
from itertools import pairwise
from uuid import UUID

from hypothesis import given
from hypothesis import strategies as st

from noonmark.core.monitoring.alerts import SEVERITIES, AlertKind, Streak, fingerprint_of, usual
from noonmark.core.monitoring.recent import (
    DEAD,
    FAILED,
    OTHER,
    SKIPPED,
    key_of,
    last_hour,
    rates_of,
    success_in,
)
from noonmark.core.monitoring.statistics import JobStats, Outcome, fold

AT = datetime(2026, 6, 1, 9, 7, 30, tzinfo=UTC)
HOUR = last_hour(AT)
RECURRING, OTHERS, ONCE = UUID(int=1), UUID(int=2), UUID(int=3)
KINDS = {RECURRING.int: "http", OTHERS.int: "python"}

seconds = st.floats(0, 1e6, allow_nan=False)


def outcome(state="succeeded", *, job=RECURRING, took=1.0, error=None, reason=None, at=AT, run=9) -> Outcome:
    return Outcome(UUID(int=run), job, "tests", state, reason, at - timedelta(seconds=took), at, error, at)


outcomes = st.lists(
    st.builds(
        outcome,
        st.sampled_from(["succeeded", "retrying", "dead", "skipped", "cancelled", "queued"]),
        job=st.sampled_from([RECURRING, OTHERS, ONCE]),
        took=st.floats(0, 5000, allow_nan=False),
        error=st.sampled_from([None, "ValueError: 1", "KeyError: x"]),
        at=st.integers(-86_400_000, 86_400_000).map(lambda ms: AT + timedelta(milliseconds=ms)),
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
        stats.add(outcome(state, error="ValueError: order 17"), HOUR)
    assert (stats.failures, stats.last_error) == (3, "ValueError: order 17")

    stats.add(outcome(took=4.0), HOUR)

    assert (stats.failures, stats.failure_cause, stats.runs, stats.usual_seconds) == (0, None, 1, 4.0)
    assert stats.last_success_at == AT


def test_failures_of_one_cause_are_equal_whatever_number_they_name():
    stats = JobStats(RECURRING, "tests", "http")
    for number in (17, 18, 19):
        stats.add(outcome("retrying", error=f"ValueError: order {number}"), HOUR)

    assert stats.failures == 3


def test_a_snooze_is_no_failure():
    stats = JobStats(RECURRING, "tests", "http")
    stats.add(outcome("retrying", error="ValueError"), HOUR)
    stats.add(outcome("retrying"), HOUR)

    assert stats.failures == 1


def test_outcomes_are_counted_by_job_window_and_what_became_of_them():
    stats: dict[int, JobStats] = {}
    later = AT + timedelta(minutes=5)
    fold(
        [
            outcome(took=0.2),
            outcome(took=0.2),
            outcome("dead", error="x", job=ONCE),
            outcome("dead", error="x", job=OTHERS),
            outcome("retrying", error="x", job=OTHERS),
            outcome("retrying", job=OTHERS),
            outcome("skipped", job=OTHERS),
            outcome("cancelled", at=later),
            outcome()._replace(started_at=None, job_id=OTHERS),
        ],
        KINDS,
        stats,
        HOUR,
    )

    assert {one.job_id: one.recent for one in stats.values()} == {
        RECURRING: {key_of(AT, success_in(0.2)): 2, key_of(later, OTHER): 1},
        OTHERS: {key_of(AT, what): 1 for what in (DEAD, FAILED, OTHER, SKIPPED, success_in(None))},
    }
    assert {one.kind for one in stats.values()} == {"http", "python"}


def test_an_outcome_of_another_hour_changes_the_figures_and_is_not_counted():
    stats: dict[int, JobStats] = {}
    for away in (timedelta(hours=-1), timedelta(minutes=10)):
        assert fold([outcome(at=AT + away)], KINDS, stats, HOUR) == [stats[RECURRING.int]]
        assert fold([outcome("skipped", at=AT + away)], KINDS, stats, HOUR) == []

    assert (stats[RECURRING.int].runs, stats[RECURRING.int].recent) == (2, {})


@given(outcomes, st.lists(st.integers(0, 30), max_size=4))
def test_it_does_not_matter_how_the_stream_is_cut(stream, cuts):
    whole: dict[int, JobStats] = {}
    changed = {one.job_id for one in fold(stream, KINDS, whole, HOUR)}

    pieces: dict[int, JobStats] = {}
    edges = [0, *sorted(min(cut, len(stream)) for cut in cuts), len(stream)]
    again = {
        one.job_id for begin, end in pairwise(edges) for one in fold(stream[begin:end], KINDS, pieces, HOUR)
    }

    assert pieces == whole
    assert again == changed


@given(outcomes)
def test_each_outcome_of_a_recurring_job_in_the_last_hour_is_counted_once(stream):
    stats: dict[int, JobStats] = {}
    fold(stream, KINDS, stats, HOUR)

    counted = [one for one in stream if one.job_id != ONCE and key_of(one.at, OTHER) in HOUR]
    rates = [rates_of(one.recent) for one in stats.values()]
    assert sum(one.succeeded + one.failed + one.skipped + one.other for one in rates) == len(counted)
    assert sum(sum(one.seconds_buckets) for one in rates) == sum(one.state == "succeeded" for one in counted)
    assert sum(one.dead for one in rates) == sum(one.state == "dead" for one in counted)
