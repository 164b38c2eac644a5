"""The runs of a workflow's tasks in the ledger."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import NamedTuple
from uuid import UUID

import psycopg

from noonmark.core.workflows.ids import TaskKey
from noonmark.store.database.statements import statement
from noonmark.store.workflows.results import Instance


class TaskRun(NamedTuple):
    """A run of a task, of any generation."""

    id: UUID
    key: TaskKey
    state: str
    reason: str | None


def list_task_runs(
    connection: psycopg.Connection, instances: Sequence[Instance]
) -> Mapping[UUID, Sequence[TaskRun]]:
    """Return the runs of the tasks of workflow runs, by id of the workflow run."""
    rows = connection.execute(
        statement("list_task_runs"),
        {
            "ids": [one.run_id for one in instances],
            "scheduled_for": [one.scheduled_for for one in instances],
            "job_ids": [one.job_id for one in instances],
        },
    ).fetchall()
    found: dict[UUID, list[TaskRun]] = defaultdict(list)
    for workflow_id, run_id, text, state, reason in rows:
        if (key := task_key(text)) is not None:
            found[workflow_id].append(TaskRun(run_id, key, state, reason))
    return found


def task_key(text: str) -> TaskKey | None:
    """Read the key of a task run; None if it is none: somebody inserted that run."""
    try:
        key = TaskKey.parse(text)
    except ValueError:
        return None
    return key if key.map_index == 0 and key.task_no >= 0 and key.generation >= 1 else None
