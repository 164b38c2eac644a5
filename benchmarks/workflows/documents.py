"""Workflows that the benchmark submits: their documents, and how they are written to the database."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any, Final
from uuid import UUID

import psycopg

from benchmarks.load import database_now
from benchmarks.stack import BenchmarkError
from noonmark.core.schedules.time_facts import TimeFacts
from noonmark.kafka.topics import Topics
from noonmark.schemas.events.submissions import CreateJob
from noonmark.schemas.jobs.job import parse_job
from noonmark.store.jobs.requests import FactCache, Request, Status
from noonmark.store.jobs.submit import accept
from noonmark.store.outcomes.events import EventTopics

NOOP: Final = "bench.noop"
STAMP: Final = "bench.stamp"
_TASKS_PER_BATCH: Final = 5000
_MOST_PER_BATCH: Final = 500
_LEAD_SECONDS: Final = 2.0
_TASKS_PER_S: Final = 8000
_JOBS_PER_S: Final = 1500
_SPARE_SECONDS: Final = 0.3
_FLOOR: Final = datetime(2020, 1, 1, tzinfo=UTC)

Tasks = dict[str, dict[str, Any]]


def fan(tasks: int, handler: str = NOOP, *, pool: str | None = None) -> Tasks:
    """Return a first task, one that waits for all others, and between them tasks that run side by side."""
    middle = [f"middle-{no}" for no in range(tasks - 2)]
    return {
        "first": _task(handler, [], pool),
        **{key: _task(handler, ["first"], pool) for key in middle},
        "last": _task(handler, middle, pool),
    }


def chain(tasks: int, handler: str = STAMP) -> Tasks:
    """Return tasks each of which waits for the one before."""
    return {f"task-{no}": _task(handler, [f"task-{no - 1}"] if no else []) for no in range(tasks)}


def layers(count: int, width: int, handler: str = NOOP) -> Tasks:
    """Return layers in which every task waits for every task of the layer before."""
    return {
        f"task-{layer}-{no}": _task(handler, [f"task-{layer - 1}-{n}" for n in range(width)] if layer else [])
        for layer in range(count)
        for no in range(width)
    }


def submit_due(
    connection: psycopg.Connection, namespace: str, tasks: Tasks, offsets: Sequence[float]
) -> datetime:
    """Submit one-time workflows so that the first is due a little after all are written.

    Args:
        connection: in autocommit.
        namespace: of the workflows; it distinguishes their runs from others.
        tasks: of each.
        offsets: seconds from the first due instant to that of each, rising.

    Returns:
        The first due instant, by the database's clock.

    Raises:
        BenchmarkError: the database took longer than expected.
    """
    count = len(offsets)
    lead_seconds = _LEAD_SECONDS + count * len(tasks) / _TASKS_PER_S + count / _JOBS_PER_S
    due = database_now(connection) + timedelta(seconds=lead_seconds)
    submit(connection, _documents(namespace, tasks, due, offsets), tasks_of_each=len(tasks))
    connection.execute("analyze jobs, timers, workflow_tasks")
    if (due - database_now(connection)).total_seconds() < _SPARE_SECONDS:
        raise BenchmarkError(f"{count} workflows could not be written within {lead_seconds:.0f} s")
    return due


def submit(
    connection: psycopg.Connection, documents: Iterator[CreateJob], *, tasks_of_each: int
) -> list[UUID]:
    """Submit workflows as intake does, in batches; return their jobs."""
    size = max(1, min(_MOST_PER_BATCH, _TASKS_PER_BATCH // tasks_of_each))
    jobs: list[UUID] = []
    known = FactCache()
    names = Topics()
    topics = EventTopics(lifecycle=names.lifecycle, dead=names.dead)
    row = connection.execute("select shards from install").fetchone()
    assert row is not None
    batch: list[Request] = []
    for one in documents:
        batch.append(Request(one, None))
        if len(batch) == size:
            jobs += _accept(connection, batch, topics, known, row[0])
            batch = []
    if batch:
        jobs += _accept(connection, batch, topics, known, row[0])
    return jobs


def create(namespace: str, tasks: Tasks, run_at: datetime) -> CreateJob:
    """Return the submission of a one-time workflow."""
    document = {
        "name": "workflow",
        "namespace": namespace,
        "type": "workflow",
        "tasks": tasks,
        "run_at": run_at.isoformat(),
    }
    return CreateJob(parse_job(document, now=run_at - timedelta(seconds=1), ledger_floor=_FLOOR))


def _documents(namespace: str, tasks: Tasks, due: datetime, offsets: Sequence[float]) -> Iterator[CreateJob]:
    made, made_for = None, -1.0
    for offset in offsets:
        if made is None or offset != made_for:
            made, made_for = create(namespace, tasks, due + timedelta(seconds=offset)), offset
        yield made


def _accept(
    connection: psycopg.Connection, batch: list[Request], topics: EventTopics, known: FactCache, shards: int
) -> list[UUID]:
    with connection.transaction():
        taken = accept(connection, batch, topics=topics, known=known, shards=shards, facts=TimeFacts())
    refused = [one for one in taken.results if one.status is not Status.ACCEPTED or one.job_id is None]
    if refused:
        raise BenchmarkError(f"a workflow was not accepted: {refused[0]}")
    return [one.job_id for one in taken.results if one.job_id is not None]


def _task(handler: str, parents: list[str], pool: str | None = None) -> dict[str, Any]:
    task: dict[str, Any] = {"type": "python", "handler": handler}
    if parents:
        task["depends_on"] = parents
    if pool is not None:
        task["pool"] = pool
    return task
