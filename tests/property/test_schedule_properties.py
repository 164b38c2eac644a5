"""What holds for every schedule, whatever it says."""

from __future__ import annotations

import json
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from typing import Any

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.property.documents import CREATED_AT, Document, alone, crons, documents, moments, unions
from tests.support.time_oracle import counts

from noonmark.core.schedules.schedule import Schedule, document_of, load_schedule, parse_schedule

TICK = timedelta(microseconds=1)
SEED = "billing/nightly"


def examples(number: int) -> Callable[[Callable[..., None]], Callable[..., None]]:
    return settings(
        max_examples=number,
        derandomize=True,
        deadline=None,
        database=None,
        suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
    )


def parsed(document: Document | list[Document] | str) -> Schedule:
    return parse_schedule(document, created_at=CREATED_AT, seed=SEED)


def walked(schedule: Schedule, after: datetime, count: int) -> list[datetime]:
    fires: list[datetime] = []
    at = schedule.next(after)
    while at is not None and len(fires) < count:
        fires.append(at)
        at = schedule.next(at)
    return fires


def tried(**numbers: int) -> None:
    counts.add("properties", **numbers)


@examples(600)
@given(documents, moments())
def test_fires_come_in_order_after_the_instant_asked_for_and_none_twice(
    document: Any, after: datetime
) -> None:
    fires = walked(parsed(document), after, 40)
    assert all(at.tzinfo is UTC or at.utcoffset() == timedelta(0) for at in fires)
    assert all(earlier < later for earlier, later in pairwise([after, *fires]))
    tried(schedules=1, instants=len(fires))


@examples(400)
@given(documents, moments())
def test_previous_is_the_inverse_of_next(document: Any, after: datetime) -> None:
    schedule = parsed(document)
    fires = walked(schedule, after, 15)
    for at in fires:
        assert schedule.previous(at) == at
        assert schedule.next(at - TICK) == at
    for earlier, later in pairwise(fires):
        assert schedule.previous(later - TICK) == earlier
        assert schedule.previous(earlier + TICK) == earlier
        assert schedule.previous(earlier + (later - earlier) / 2) == earlier
    before = schedule.previous(after)
    if before is not None:
        assert before <= after
        assert schedule.next(before) == (fires[0] if fires else None)
    tried(schedules=1, instants=len(fires))


@examples(400)
@given(documents, moments(), st.integers(1, 40))
def test_between_is_next_repeated(document: Any, after: datetime, limit: int) -> None:
    schedule = parsed(document)
    fires = walked(schedule, after, 40)
    until = fires[-1] if fires else after + timedelta(days=1)
    assert schedule.between(after, until, 1000) == fires
    assert schedule.between(after, until, limit) == fires[:limit]
    assert schedule.between(after, until - TICK, 1000) == fires[:-1]
    assert schedule.between(after, after, 1000) == []
    tried(schedules=1, instants=len(fires))


@examples(400)
@given(documents, moments())
def test_count_is_the_number_of_fires_between(document: Any, after: datetime) -> None:
    schedule = parsed(document)
    fires = walked(schedule, after, 60)
    for index in (0, len(fires) // 2, len(fires) - 1):
        if 0 <= index < len(fires):
            assert schedule.count(after, fires[index]) == index + 1
            assert schedule.count(after, fires[index] - TICK) == index
            assert schedule.count(fires[index], fires[-1]) == len(fires) - index - 1
    tried(schedules=1, instants=len(fires))


@examples(240)
@given(documents, st.lists(moments(), min_size=3, max_size=3))
def test_counts_of_neighbouring_windows_add_up(document: Any, borders: list[datetime]) -> None:
    schedule = parsed(document)
    first, middle, last = sorted(borders)
    # Some kinds count by walking: years of a rule for each second would only be slow.
    first, last = max(first, middle - timedelta(days=4)), min(last, middle + timedelta(days=4))
    assert schedule.count(first, last) == schedule.count(first, middle) + schedule.count(middle, last)
    assert schedule.count(last, first) == 0 or first == last
    tried(schedules=1)


@examples(480)
@given(documents, moments())
def test_what_is_stored_loads_as_the_same_schedule(document: Any, after: datetime) -> None:
    schedule = parsed(document)
    spec = json.loads(json.dumps(schedule.spec()))
    loaded = load_schedule(spec)
    assert loaded == schedule
    assert hash(loaded) == hash(schedule)
    assert loaded.spec() == schedule.spec()
    assert walked(loaded, after, 10) == walked(schedule, after, 10)
    tried(schedules=1)


@examples(200)
@given(documents, st.sampled_from((1, 7, 1000)), st.sampled_from((1, 30, 59)))
def test_the_document_in_effect_says_all_that_the_schedule_does(
    document: Any, runs: int, jitter: int
) -> None:
    shaped = {**document, "max_runs": runs}
    if _period_is_long(parsed(document)):
        shaped["jitter_seconds"] = jitter
    schedule = parsed(shaped)
    again = parsed(json.loads(json.dumps(document_of(schedule))))
    assert again == schedule
    assert document_of(again) == document_of(schedule)
    assert load_schedule(json.loads(json.dumps(schedule.spec()))) == schedule
    tried(schedules=1)


def _period_is_long(schedule: Schedule) -> bool:
    # Jitter must be shorter than the time between two fires.
    fires = walked(schedule, CREATED_AT, 60)
    return all(later - earlier >= timedelta(minutes=1) for earlier, later in pairwise(fires))


@examples(200)
@given(documents)
def test_the_ends_of_the_calendar_are_only_ends(document: Any) -> None:
    schedule = parsed(document)
    first, last = datetime.min.replace(tzinfo=UTC), datetime.max.replace(tzinfo=UTC)
    assert schedule.next(last) is None
    earliest = schedule.next(first)
    before = schedule.previous(first)
    assert before is None or before == first
    latest = schedule.previous(last)
    assert earliest is None or latest is None or earliest <= latest
    assert schedule.between(last - timedelta(seconds=1), last, 10) in ([], [latest])
    tried(schedules=1)


@examples(240)
@given(unions(), moments())
def test_a_union_fires_when_any_of_its_schedules_does(union: Document, after: datetime) -> None:
    fires = walked(parsed(union), after, 25)
    until = fires[-1] if fires else after + timedelta(days=400)
    single = [parsed(alone(union, member)) for member in union["any"]]
    of_members = {at for schedule in single for at in schedule.between(after, until, 100)}
    assert fires == sorted(of_members)
    tried(schedules=1, instants=len(fires))


@examples(240)
@given(crons(), moments())
def test_the_rules_for_gaps_and_overlaps_agree_with_each_other(document: Document, after: datetime) -> None:
    def ruled(gap: str, overlap: str) -> Schedule:
        return parsed({**document, "dst_gap": gap, "dst_overlap": overlap})

    few = ruled("skip", "both").between(after, after + timedelta(days=3), 200)
    until = few[-1] if len(few) == 200 else after + timedelta(days=3)

    def fires(gap: str, overlap: str) -> set[datetime]:
        return set(ruled(gap, overlap).between(after, until, 10_000))

    assert fires("skip", "both") == fires("skip", "first") | fires("skip", "last")
    assert fires("skip", "first") <= fires("shift", "first")
    assert fires("skip", "last") <= fires("run_after", "last")
    assert fires("skip", "both") <= fires("run_after", "both")
    # No zone changes its clocks twice in three days.
    assert len(fires("run_after", "first") - fires("skip", "first")) <= 1
    chosen = fires("auto", "auto")
    assert fires("skip", "first") <= chosen <= fires("run_after", "both")
    tried(schedules=1)


@examples(240)
@given(documents, moments())
def test_every_fire_can_be_explained(document: Any, after: datetime) -> None:
    schedule = parsed(document)
    fires = walked(schedule, after, 12)
    for at in fires:
        note = schedule.note(at)
        assert note is None or note.strip() == note != ""
    for local, note in schedule.removed(after, after + timedelta(days=30), 20):
        assert local.tzinfo is None
        assert note
    tried(schedules=1)
