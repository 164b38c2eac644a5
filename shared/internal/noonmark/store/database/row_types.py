"""Rows as the hot paths read them: light tuples, one field per column of their statement."""

from __future__ import annotations

from datetime import datetime
from functools import partial
from typing import Any, NamedTuple, TypeVar, cast
from uuid import UUID

import msgspec
from psycopg.rows import BaseRowFactory

T = TypeVar("T", bound=tuple[Any, ...])


def row_of(kind: type[T]) -> BaseRowFactory[T]:
    """Return a row factory that builds a NamedTuple by position, without a Python call per row."""
    make = partial(tuple.__new__, kind)
    return cast("BaseRowFactory[T]", lambda _cursor: make)


class OutboxRow(NamedTuple):
    """A row of `read_outbox`: a run if `run_id` is set, several if `run_ids` is, else an event."""

    place: str
    seq: int
    slice: int
    lane: int
    run_id: UUID | None
    job_id: UUID | None
    scheduled_for: datetime | None
    fence: int | None
    job_version: int | None
    namespace: str | None
    pool: str | None
    topic: str | None
    key: bytes | None
    value: bytes | None
    headers: bytes | None
    run_ids: list[UUID] | None = None
    job_ids: list[UUID] | None = None
    instants: list[datetime] | None = None
    job_versions: list[int] | None = None


class StartedRun(msgspec.Struct, frozen=True, gc=False):
    """A run that `start_runs` returned to this worker. `work` is JSON text: payload, timeout, retry.

    Not a tuple: dozens of reads of its fields follow for each run, and each costs less than a tuple's.
    `due_at` is set for the run of a task; other runs are due at `scheduled_for`.
    """

    id: UUID
    scheduled_for: datetime
    job_id: UUID
    job_version: int
    origin: str
    request_id: str
    namespace: str
    lane: int
    attempt: int
    losses: int
    holds_slot: bool
    started_at: datetime
    shard: int
    kind: str | None
    handler: str | None
    work: str | None
    batch_id: int
    due_at: datetime | None = None


class ChangedRun(NamedTuple):
    """A run whose state was changed by another process than its worker: ended, lost, or asked to stop."""

    id: UUID
    scheduled_for: datetime
    job_id: UUID
    job_version: int
    origin: str
    namespace: str
    lane: int
    pool: str
    shard: int
    attempt: int
    fence: int
    state: str
    reason: str | None
    started_at: datetime | None
    finished_at: datetime | None
    error: str | None
    holds_slot: bool


class DueTimer(NamedTuple):
    """A locked timer and its job, for planning.

    `schedule` and `policy` are JSON text. `state` is None if the job was deleted. `capped`: the namespace
    has a cap.
    """

    place: str
    scheduled_for: datetime
    after_at: datetime | None
    job_id: UUID
    job_version: int
    runs_left: int | None
    after_offset: int | None
    shard: int
    namespace: str
    pool: str
    state: str | None
    schedule: str | None
    policy: str | None
    created_at: datetime | None
    updated_at: datetime | None
    resumed_at: datetime | None
    resume_choice: str | None
    now: datetime
    floor: datetime
    capped: bool = False
