"""Slots without a row: before a timer is planned by itself, the run that has the slot gets its row."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta
from typing import Final

import psycopg

from noonmark.store.claims.planned_runs import TimerPlan
from noonmark.store.database.planned_once import planned_once
from noonmark.store.database.row_types import DueTimer
from noonmark.store.limits.slots import keep_own_slots

_HOLDER_RETRY: Final = timedelta(seconds=0.1)
"""How soon a timer is planned again whose job's run another session has locked."""


def keep_slots(
    connection: psycopg.Connection, plans: Sequence[tuple[DueTimer, TimerPlan]]
) -> Sequence[tuple[DueTimer, TimerPlan]]:
    """Write the slots of unfinished runs that these timers name; return the plans that can be carried out.

    Args:
        connection: in the transaction that locked the timers.
        plans: each timer with its plan.
    """
    keep_own_slots(connection)
    named = [(timer.job_id, timer.after_at) for timer, _ in plans if timer.after_at is not None]
    if not named:
        return plans
    rows = connection.execute(
        planned_once("keep_slots"),
        {"job_ids": [job_id for job_id, _ in named], "instants": [instant for _, instant in named]},
    ).fetchall()
    locked = {job_id for (job_id,) in rows}
    if not locked:
        return plans
    return [(timer, _later(timer) if timer.job_id in locked else plan) for timer, plan in plans]


def _later(timer: DueTimer) -> TimerPlan:
    return TimerPlan(
        next_at=timer.scheduled_for,
        fire_at=timer.now + _HOLDER_RETRY,
        after_at=timer.after_at,
        after_offset=timer.after_offset,
        runs_left=timer.runs_left,
    )
