"""Recurring jobs whose timers share a plan: planned once for all of them, and claimed in Postgres alone.

At a full hour, thousands of jobs are due that have one schedule, and nothing happens to them but the usual:
one run, and the next instant. Planned one by one, they would cost more in this process than in Postgres.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final, NamedTuple

import psycopg

from noonmark.core.faults import hit
from noonmark.core.states import Lane, Overlap, RunState, TimerKind
from noonmark.store.claims.planned_runs import ClaimResult, Planning, TimerPlan
from noonmark.store.database.planned_once import planned_once
from noonmark.store.database.row_types import DueTimer, row_of
from noonmark.store.limits.slots import keep_own_slots
from noonmark.store.schedules.time_facts import share_time_facts

_GROUPS: Final = 16
"""The groups that one claim compares each timer with."""

_SAMPLE: Final = 8
"""One in so many timers of a claim is read to find the groups."""

_USUAL_OVERLAPS: Final = (Overlap.ALLOW, Overlap.SKIP)
"""Under the other rules, runs may wait already for the slot that is free now, and a row in `slots` must name
the run that holds it."""


class AlikeClaim(NamedTuple):
    """What `claim_alike` did; `others`: due timers are left that have to be planned one by one."""

    result: ClaimResult
    others: bool


def claim_alike(
    connection: psycopg.Connection,
    lane: Lane,
    shards: Sequence[int],
    limit: int,
    *,
    kind: TimerKind,
    plan: Planning,
    named: bool,
    arrays: bool,
) -> AlikeClaim:
    """Claim due timers of large groups in one statement and one commit; see `claims.claim_planned`."""
    where = {"shards": list(shards), "lane": int(lane), "kind": int(kind)}
    share = max(1, limit // len(shards))
    try:
        with connection.transaction():
            if kind is TimerKind.ZONED and not share_time_facts(connection):
                return AlikeClaim(ClaimResult(), others=True)
            groups = _plain_groups(connection, where, share, plan)
            if not groups:
                return AlikeClaim(ClaimResult(), others=True)
            keep_own_slots(connection)
            row = connection.execute(
                planned_once("claim_alike"),
                {
                    **where,
                    **_columns(groups),
                    "zone_data": plan.zone_data,
                    "limit": share,
                    "named": named,
                    "arrays": arrays,
                },
            ).fetchone()
            hit("trigger.before_commit")
    except psycopg.errors.UniqueViolation:
        return AlikeClaim(ClaimResult(), others=True)  # one of the instants is in the ledger already
    hit("trigger.after_commit")
    assert row is not None
    found, claimed, made = row
    created = [(run_id, job_id) for run_id, job_id in made or ()]
    return AlikeClaim(ClaimResult(claimed=claimed, queued=claimed, made=created), others=found > claimed)


def _plain_groups(
    connection: psycopg.Connection, where: Mapping[str, object], share: int, plan: Planning
) -> list[tuple[DueTimer, TimerPlan]]:
    """Return the groups for which there is nothing to do but to start one run, each with its plan."""
    sampled = {**where, "limit": max(1, share // _SAMPLE), "groups": _GROUPS}
    with connection.cursor(row_factory=row_of(DueTimer)) as cursor:
        samples = cursor.execute(planned_once("list_due_plans"), sampled).fetchall()
    plan.prepare(connection, samples)
    planned = [(timer, plan(timer)) for timer in samples]
    return [(timer, one) for timer, one in planned if _is_plain(timer, one)]


def _is_plain(timer: DueTimer, planned: TimerPlan) -> bool:
    if planned.next_at is None or planned.fire_at is not None or planned.runs_left is not None:
        return False
    if len(planned.runs) != 1:
        return False
    (run,) = planned.runs
    return (
        run.state is RunState.QUEUED
        and run.scheduled_for == timer.scheduled_for
        and run.start_by is None
        and not run.limits
        and (not run.wants_slot or run.overlap in _USUAL_OVERLAPS)
        and planned.after_at in {None, run.scheduled_for}
    )


def _columns(groups: Sequence[tuple[DueTimer, TimerPlan]]) -> dict[str, object]:
    return {
        "at": [timer.scheduled_for for timer, _ in groups],
        "after_at": [timer.after_at for timer, _ in groups],
        "after_offset": [timer.after_offset for timer, _ in groups],
        "schedules": [timer.schedule for timer, _ in groups],
        "policies": [timer.policy for timer, _ in groups],
        "takes_slot": [planned.runs[0].wants_slot for _, planned in groups],
        "next_at": [planned.next_at for _, planned in groups],
        # Also where nothing else needs it: it says which run holds the slot.
        "next_after_at": [timer.scheduled_for for timer, _ in groups],
        "next_after_offset": [planned.after_offset for _, planned in groups],
    }
