"""Telling the triggers that a workflow can go on: timers due now, in the transaction of the cause."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import NamedTuple
from uuid import UUID

import psycopg

from noonmark.store.database.columns import span
from noonmark.store.database.planned_once import planned_once
from noonmark.store.database.statements import statement


class WorkflowTimer(NamedTuple):
    """A timer of a workflow run: it is looked at then, or now if `fire_at` is None."""

    run_id: UUID
    scheduled_for: datetime
    job_id: UUID
    job_version: int
    shard: int
    lane: int
    namespace: str
    pool: str
    fire_at: datetime | None = None


def report_ended_tasks(connection: psycopg.Connection, runs: Sequence[tuple[UUID, datetime]]) -> None:
    """Tell that runs of tasks have ended, in the transaction that ended them.

    Args:
        connection: in that transaction.
        runs: id and instant of each.
    """
    if runs:
        connection.execute(planned_once("insert_facts"), span(runs))


def insert_workflow_timers(connection: psycopg.Connection, timers: Sequence[WorkflowTimer]) -> None:
    """Have triggers look at workflow runs themselves: to open one, or because it is to stop."""
    if timers:
        connection.execute(
            statement("insert_workflow_timers"),
            {
                "fire_at": [timer.fire_at for timer in timers],
                "scheduled_for": [timer.scheduled_for for timer in timers],
                "job_ids": [timer.job_id for timer in timers],
                "run_ids": [timer.run_id for timer in timers],
                "job_versions": [timer.job_version for timer in timers],
                "shards": [timer.shard for timer in timers],
                "lanes": [timer.lane for timer in timers],
                "namespaces": [timer.namespace for timer in timers],
                "pools": [timer.pool for timer in timers],
            },
        )
