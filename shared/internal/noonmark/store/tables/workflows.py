"""Workflows: the tasks of their versions, and the state of open workflow runs."""

from __future__ import annotations

from typing import Final

from sqlalchemy import JSON, Integer, LargeBinary, SmallInteger, Table, Text, Uuid

from noonmark.store.tables.parts import INSTANT, may, metadata, must

workflow_tasks: Final = Table(
    "workflow_tasks",
    metadata,
    must("job_id", Uuid(), key=True),
    must("version", Integer(), key=True),
    must("task_no", Integer(), key=True),
    must("key", Text()),
    must("kind", Text()),
    may("handler", Text()),
    must("lane", SmallInteger()),
    must("pool", Text()),
    must("work", JSON()),
    must("graph", JSON()),
    must("document", JSON()),
)

workflows: Final = Table(
    "workflows",
    metadata,
    must("run_id", Uuid(), key=True),
    must("scheduled_for", INSTANT),
    must("job_id", Uuid()),
    must("job_version", Integer()),
    must("shard", SmallInteger()),
    must("generation", SmallInteger()),
    must("progress", LargeBinary()),
    must("choices", LargeBinary()),
    must("opened_at", INSTANT),
    may("held_at", INSTANT),
    may("stopping", Text()),
)
