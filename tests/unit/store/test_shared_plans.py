"""Timers that differ in nothing but their job share a plan, and no others do."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from uuid import UUID

from hypothesis import given
from hypothesis import strategies as st

from noonmark.store.claims.planner import Planner
from noonmark.store.database.row_types import DueTimer

NOW = datetime(2026, 6, 1, 9, tzinfo=UTC)
SCHEDULES = (
    '{"every":"PT1M","anchor":"2026-06-01T00:00:00Z"}',
    '{"every":"PT7M","anchor":"2026-06-01T00:00:00Z"}',
    '{"every":"PT1M","anchor":"2026-06-01T00:00:00Z","jitter_seconds":30}',
    '{"cron":"*/5 * * * *","timezone":"Europe/Berlin"}',
)
POLICIES = ("{}", '{"overlap":"allow"}', '{"misfire":"fire_all"}', '{"start_deadline_seconds":60}', None)


def planner() -> Planner:
    return Planner(catch_up_cap=5, ledger_cap=20)


def timer(job: int, **changes: object) -> DueTimer:
    values = {
        "place": f"(0,{job})",
        "scheduled_for": NOW - timedelta(minutes=1),
        "after_at": None,
        "job_id": UUID(int=job),
        "job_version": 1,
        "runs_left": None,
        "after_offset": None,
        "shard": 0,
        "namespace": "default",
        "pool": "default",
        "state": "active",
        "schedule": SCHEDULES[0],
        "policy": "{}",
        "created_at": NOW - timedelta(days=1),
        "updated_at": NOW - timedelta(days=1),
        "resumed_at": None,
        "resume_choice": None,
        "now": NOW,
        "floor": NOW - timedelta(days=30),
    }
    return DueTimer(**{**values, **changes})  # type: ignore[arg-type]


changed = st.fixed_dictionaries(
    {},
    optional={
        "scheduled_for": st.sampled_from([NOW - timedelta(minutes=n) for n in (0, 1, 5, 35)]),
        "runs_left": st.sampled_from([None, 1, 3]),
        "state": st.sampled_from(["active", "paused", "cancelled", None]),
        "schedule": st.sampled_from(SCHEDULES),
        "policy": st.sampled_from(POLICIES),
        "resumed_at": st.sampled_from([None, NOW - timedelta(seconds=1)]),
        "resume_choice": st.sampled_from([None, "latest", "all"]),
        "now": st.sampled_from([NOW, NOW + timedelta(minutes=2)]),
    },
)


@given(st.lists(changed, min_size=2, max_size=30))
def test_a_plan_is_the_same_whatever_was_planned_before(changes):
    shared = planner()
    for number, one in enumerate(changes):
        due = timer(number, **one)
        assert shared(due) == planner()(due)


def test_jobs_with_one_expression_share_a_plan():
    shared = planner()
    assert shared(timer(1)) is shared(timer(2))
    assert shared(timer(1)) is not shared(timer(1, schedule=SCHEDULES[1]))


def test_jitter_is_that_of_each_job():
    shared = planner()
    fires = {shared(timer(number, schedule=SCHEDULES[2])).fire_at for number in range(20)}
    assert len(fires) > 10


def test_nothing_is_kept_beyond_a_claim():
    shared = planner()
    before = shared(timer(1))
    shared.prepare(None, [])  # type: ignore[arg-type]
    assert shared(timer(2)) is not before
