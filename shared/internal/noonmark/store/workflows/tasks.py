"""The tasks of workflow jobs: written with each version, read for people."""

from __future__ import annotations

from collections.abc import Sequence
from uuid import UUID

import psycopg

from noonmark.schemas.jobs.job import JobSpec
from noonmark.store.database.statements import statement


def insert_tasks(connection: psycopg.Connection, jobs: Sequence[tuple[UUID, int, JobSpec]]) -> None:
    """Write the compiled tasks of new versions of workflows; other jobs have none.

    Args:
        connection: in the transaction that writes the versions.
        jobs: id, version and document of each job.
    """
    rows = [
        (job_id, version, no, task)
        for job_id, version, spec in jobs
        if spec.workflow is not None
        for no, task in enumerate(spec.workflow.tasks)
    ]
    if not rows:
        return
    connection.execute(
        statement("insert_workflow_tasks"),
        {
            "job_ids": [row[0] for row in rows],
            "versions": [row[1] for row in rows],
            "task_nos": [row[2] for row in rows],
            "keys": [row[3].key for row in rows],
            "kinds": [row[3].kind for row in rows],
            "handlers": [row[3].handler for row in rows],
            "lanes": [int(row[3].lane) for row in rows],
            "pools": [row[3].pool for row in rows],
            "works": [row[3].work_json for row in rows],
            "graphs": [row[3].graph_json for row in rows],
            "documents": [row[3].document_json for row in rows],
        },
    )
