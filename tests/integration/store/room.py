"""Runs that need room, as tests put them in place, promote them and end them."""

from __future__ import annotations

from datetime import timedelta
from typing import Any
from uuid import UUID

import psycopg
from tests.integration.store.world import EVERY_SHARD, SHARDS, TOPICS, World, outcome

from noonmark.core.states import Lane, RunState, TimerKind
from noonmark.store.claims import claims
from noonmark.store.claims.planner import Planner
from noonmark.store.limits import promotion
from noonmark.store.limits.limits import Figures, set_limit
from noonmark.store.limits.promotion import Promoted

PLANNER = Planner(catch_up_cap=100, ledger_cap=1000)
SECOND = timedelta(seconds=1)


def limit(world: World, name: str, namespace: str = "tests", **figures: Any) -> None:
    set_limit(world.db, namespace, name, Figures(**figures))


def due_jobs(
    world: World,
    count: int,
    *limits: str | tuple[str, str],
    lane: Lane = Lane.NORMAL,
    namespace: str = "tests",
    ago: float = 1.0,
    **policy: Any,
) -> list[UUID]:
    """One-time jobs that are due, each a hair later than the one before, under limits of their namespace."""
    named = [list(one) if isinstance(one, tuple) else [one, None] for one in limits]
    if named:
        policy["limits"] = named
    at = world.now() - timedelta(seconds=ago)
    jobs = []
    for n in range(count):
        job_id = world.job(policy=policy or None, lane=lane, schedule={"run_at": at.isoformat()})
        world.timer(job_id, at + timedelta(milliseconds=n), kind=TimerKind.PLANNED, lane=lane)
        jobs.append(job_id)
    if namespace != "tests":
        for table, key in (("jobs", "id"), ("timers", "job_id")):
            world.db.execute(f"update {table} set namespace = %s where {key} = any (%s)", [namespace, jobs])
    return jobs


def claim(world: World, connection: psycopg.Connection | None = None) -> None:
    for lane in Lane:
        claims.claim_planned(
            connection or world.db,
            lane,
            EVERY_SHARD,
            8000,
            kind=TimerKind.PLANNED,
            plan=PLANNER,
            topics=TOPICS,
            install_shards=SHARDS,
        )


def promote(world: World, connection: psycopg.Connection | None = None) -> Promoted:
    """One pass."""
    return promotion.promote(connection or world.db, TOPICS, install_shards=SHARDS)


def settle(world: World) -> int:
    """Passes until nothing more can be queued now; return how many runs were."""
    queued = 0
    for _ in range(100):
        done = promote(world)
        queued += done.queued.total()
        if not done.more:
            return queued
    raise AssertionError("promotion does not come to rest")


def finish(world: World, run_ids: list[UUID], state: RunState = RunState.SUCCEEDED, **more: Any) -> bool:
    """Let a worker start and end queued runs; return whether it must tell that others wait."""
    worker = world.worker()
    runs = world.start(worker, run_ids)
    fences = {run_id: world.run(run_id)["fence"] for run_id in run_ids}
    return world.record(worker, [outcome(run, state, fence=fences[run.id], **more) for run in runs]).freed


def queued(world: World) -> list[UUID]:
    """Runs that are queued, in the order of their messages, high lane first."""
    return world.column(
        "select outbox.run_id from outbox join runs on runs.id = outbox.run_id and runs.fence = outbox.fence"
        " where state = 'queued' order by outbox.lane, seq"
    )


def states(world: World, job_id: UUID) -> list[tuple[str, str | None]]:
    return [(run["state"], run["reason"]) for run in world.runs_of(job_id)]


def states_of(world: World, jobs: list[UUID]) -> list[tuple[str, str | None]]:
    return [state for job_id in jobs for state in states(world, job_id)]


def retry_due(world: World) -> None:
    """Retries come due, and are claimed."""
    world.db.execute("update timers set fire_at = noonmark_now() where kind = 2")
    for lane in Lane:
        claims.claim_retries(world.db, lane, EVERY_SHARD, 100)
