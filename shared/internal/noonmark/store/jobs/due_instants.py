"""Settles the instants of a job that came due before a request changes it, by the job's old definition."""

from __future__ import annotations

from typing import Final

from noonmark.core.planning.plan import CATCH_UP_CAP, LEDGER_CAP
from noonmark.core.states import Lane
from noonmark.store.claims.planned_runs import carry_out
from noonmark.store.claims.planner import Planner
from noonmark.store.database.row_types import DueTimer, row_of
from noonmark.store.database.statements import statement
from noonmark.store.documents.columns import NEVER
from noonmark.store.jobs.locks import LockedJob
from noonmark.store.jobs.requests import Batch

_MOST_STEPS: Final = 20
"""Planning steps for one job within a request; each is as large as a step of the trigger."""


def settle_due(batch: Batch, job: LockedJob, *, of_last_pause: bool = False) -> bool:
    """Settle the due instants as a claim would; return False if some are left to the trigger.

    Some are left if too many came due for one request, or if only a process with the active zone data can
    plan them. An instant that waits for its jitter runs at once. The job may be completed or broken then.

    Args:
        batch: the transaction that locked the job.
        job: the locked job.
        of_last_pause: whether to settle only instants of the last pause, for which its resume made a choice.
    """
    planner = Planner(catch_up_cap=CATCH_UP_CAP, ledger_cap=LEDGER_CAP)
    for _ in range(_MOST_STEPS):
        with batch.connection.cursor(row_factory=row_of(DueTimer)) as cursor:
            timers = cursor.execute(
                statement("lock_due_timers_of_job"), {"job_id": job.id, "never": NEVER}
            ).fetchall()
        if of_last_pause:
            timers = [
                timer for timer in timers if timer.resumed_at and timer.scheduled_for < timer.resumed_at
            ]
        if not timers:
            return True
        if not batch.zone_data_is_active:
            return False
        planner.prepare(batch.connection, timers)
        plans = [(timer, planner(timer, at_once=True)) for timer in timers]
        result = carry_out(
            batch.connection, Lane(job.lane), plans, topics=batch.topics, install_shards=batch.shards
        )
        batch.queued |= result.queued > 0
        if result.broken:
            return True
        if result.postponed:
            return False
    return False
