"""A large graph: how long, and with how many statements, a pass opens it and decides a layer of it.

There are no services: the benchmark does what they do, in a database of its own.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from datetime import timedelta
from typing import Any, Final, TypeVar

import psycopg

from benchmarks.figures import Spread
from benchmarks.load import database_now
from benchmarks.stack import BenchmarkError
from benchmarks.workflows.documents import create, layers, submit
from benchmarks.workflows.figures import Graph
from noonmark.core.ids import shard_of
from noonmark.core.states import Lane
from noonmark.kafka.topics import Topics
from noonmark.store.claims import claims
from noonmark.store.database.connect import connect
from noonmark.store.migrations.migrate import DEFAULT_SHARDS, migrate
from noonmark.store.outcomes.events import EventTopics
from noonmark.store.workflows.advance import WorkflowPass
from noonmark.store.workflows.advanced import Advanced
from noonmark.store.workflows.facts import WorkflowTimer, insert_workflow_timers, report_ended_tasks

_SHARDS: Final = list(range(DEFAULT_SHARDS))
_NAMESPACE: Final = "bench-graph"
_MOST_FACTS: Final = 5000
_Result = TypeVar("_Result")


class CountingCursor(psycopg.Cursor[Any]):
    """Counts the statements of all its kind; begin and commit are none."""

    executed = 0

    def execute(self, *arguments: Any, **options: Any) -> CountingCursor:
        """Execute a statement, and count it."""
        CountingCursor.executed += 1
        super().execute(*arguments, **options)
        return self


def measure_graph(url: str, *, count: int, width: int) -> Graph:
    """Open a workflow of `count` layers, let each layer end at once, and measure every pass.

    A second workflow is opened by the same process, which knows its version by then.
    """
    migrate(url)
    names = Topics()
    passes = WorkflowPass(EventTopics(names.lifecycle, names.dead), shards=DEFAULT_SHARDS)
    with connect(url, application="benchmark", autocommit=True) as connection:
        connection.cursor_factory = CountingCursor
        _queue(connection, count, width)
        opened, open_seconds, open_statements = _pass(connection, passes)
        if opened.queued != width:
            raise BenchmarkError(f"a graph whose first layer has {width} tasks started {opened.queued}")
        seconds, statements = _end_layers(connection, passes, count, width)
        _queue_again(connection)
        _, again_seconds, again_statements = _pass(connection, passes)
    return Graph(
        layers=count,
        width=width,
        open_ms=round(1000 * open_seconds, 2),
        open_statements=open_statements,
        layer_ms=Spread.of_seconds(seconds),
        layer_statements=max(statements),
        again_ms=round(1000 * again_seconds, 2),
        again_statements=again_statements,
    )


def _queue(connection: psycopg.Connection, count: int, width: int) -> None:
    """Submit a workflow that is due, claim it, and have the triggers open its run."""
    due = database_now(connection) - timedelta(seconds=1)
    submit(connection, iter([create(_NAMESPACE, layers(count, width), due)]), tasks_of_each=count * width)
    if claims.claim_once(connection, Lane.NORMAL, _SHARDS, 100).queued != 1:
        raise BenchmarkError("the workflow was not claimed")
    connection.execute("analyze")
    _have_opened(connection)


def _queue_again(connection: psycopg.Connection) -> None:
    """Queue one more run of the job, as `job run` does."""
    connection.execute(
        "insert into runs (id, scheduled_for, job_id, job_version, state, shard, lane, namespace, pool,"
        " origin, request_id, fence, zone_data, queued_at)"
        " select gen_random_uuid(), scheduled_for, job_id, job_version, 'queued', shard, lane, namespace,"
        " pool, 'manual', 'again', 1, zone_data, now() from runs where origin = 'schedule'"
    )
    _have_opened(connection)


def _have_opened(connection: psycopg.Connection) -> None:
    connection.execute("delete from outbox")
    rows = connection.execute(
        "select id, scheduled_for, job_id, job_version, lane, namespace, pool from runs"
        " where state = 'queued' and origin <> 'task'"
    ).fetchall()
    timers = [
        WorkflowTimer(run, at, job, version, shard_of(run, DEFAULT_SHARDS), lane, namespace, pool)
        for run, at, job, version, lane, namespace, pool in rows
    ]
    insert_workflow_timers(connection, timers)


def _end_layers(
    connection: psycopg.Connection, passes: WorkflowPass, count: int, width: int
) -> tuple[list[float], list[int]]:
    """Let the tasks of each layer succeed in one transaction; return seconds and statements of each pass."""
    seconds, statements = [], []
    for layer in range(count):
        with connection.transaction():
            rows = connection.execute(
                "update runs set state = 'succeeded', started_at = now(), finished_at = now(), attempt = 1"
                " where origin = 'task' and state = 'queued' returning id, scheduled_for"
            ).fetchall()
            report_ended_tasks(connection, rows)
        connection.execute("delete from outbox")
        done, took, executed = _pass(connection, passes)
        wanted = width if layer < count - 1 else 0
        if (done.facts, done.queued) != (width, wanted):
            raise BenchmarkError(f"layer {layer} started {done.queued} tasks, not {wanted}: {done.broken}")
        seconds.append(took)
        statements.append(executed)
    return seconds, statements


def _pass(connection: psycopg.Connection, passes: WorkflowPass) -> tuple[Advanced, float, int]:
    return _counted(lambda: passes.run(connection, Lane.NORMAL, _SHARDS, _MOST_FACTS, arrays=True))


def _counted(work: Callable[[], _Result]) -> tuple[_Result, float, int]:
    before, began = CountingCursor.executed, time.perf_counter()
    result = work()
    return result, time.perf_counter() - began, CountingCursor.executed - before
