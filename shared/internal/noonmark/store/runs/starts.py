"""Starting runs: queued runs become running and owned by a worker, or are skipped as too late."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from contextlib import nullcontext
from datetime import datetime
from itertools import starmap
from typing import Final, Protocol, TypeAlias
from uuid import UUID

import msgspec
import psycopg
from msgspec.structs import replace

from noonmark.core.attempt_key import attempt_key
from noonmark.core.states import Origin
from noonmark.store.database.columns import fenced_span, span
from noonmark.store.database.planned_once import planned_once
from noonmark.store.database.row_types import ChangedRun, StartedRun, row_of
from noonmark.store.database.statements import statement
from noonmark.store.limits.slots import release_slots
from noonmark.store.outcomes.events import EventTopics, announce, settled_of
from noonmark.store.runs.worker_lease import Identity

START_GRACE_SECONDS = 60.0
"""A run is taken from its worker this long after its timeout, even if the worker sends heartbeats."""


_UNREADABLE: Final = (psycopg.DataError, psycopg.errors.StatementTooComplex)
"""What Postgres says of a JSON document with an escape, number or depth that it stores but cannot read."""

_TASK: Final = Origin.TASK.value
_TASK_NO_DIGITS: Final = 8

_Started: TypeAlias = dict[int, list[StartedRun]]
"""Started runs by the fence that they were started under."""


class StartPointer(Protocol):
    """What says which run to start: a `StartRequest`, or the run of a message itself."""

    @property
    def run_id(self) -> UUID:
        """The run."""

    @property
    def scheduled_for(self) -> datetime:
        """Its instant."""

    @property
    def fence(self) -> int:
        """The fence that it was queued under."""


class StartRequest(msgspec.Struct, frozen=True, gc=False):
    """A run message that asks for a start: decoded and verified, not yet checked against the ledger."""

    run_id: UUID
    scheduled_for: datetime
    fence: int


def start(
    connection: psycopg.Connection, identity: Identity, pool: str, requests: Sequence[StartPointer]
) -> tuple[list[StartedRun], list[StartPointer]]:
    """Move queued runs to running, in one transaction unless Postgres cannot read the work of one of them.

    Returns:
        The runs that this worker owns now, and the refused requests: duplicates, fenced, cancelled,
        past their start deadline, or all of them if the lease has lapsed.
    """
    by_fence = _start_readable(connection, identity, pool, requests)
    started = [run for runs in by_fence.values() for run in runs]
    refused = [] if len(started) == len(requests) else _refused(requests, by_fence)
    if any(run.kind is None for run in started):
        started = _with_pinned_work(connection, started)
    if any(run.origin == _TASK for run in started):
        started = _with_task_work(connection, started)
    return started, refused


def _refused(requests: Sequence[StartPointer], started: _Started) -> list[StartPointer]:
    """Return the requests that started no run: there may be a copy of an older message of a started run."""
    keys = {attempt_key(run.id, fence) for fence, runs in started.items() for run in runs}
    return [request for request in requests if attempt_key(request.run_id, request.fence) not in keys]


def _start_readable(
    connection: psycopg.Connection, identity: Identity, pool: str, requests: Sequence[StartPointer]
) -> _Started:
    """Start the runs of a batch. If Postgres cannot read the work of one job, the others start all the same.

    Halves are tried until that run is alone. It starts without its timeout being read: its worker rejects it.
    """
    try:
        return _start_together(connection, identity, pool, requests, timeouts=True)
    except _UNREADABLE:
        if len(requests) == 1:
            return _start_together(connection, identity, pool, requests, timeouts=False)
    half = len(requests) // 2
    started: _Started = defaultdict(list)
    for some in (requests[:half], requests[half:]):
        for fence, runs in _start_readable(connection, identity, pool, some).items():
            started[fence] += runs
    return started


def _start_together(
    connection: psycopg.Connection,
    identity: Identity,
    pool: str,
    requests: Sequence[StartPointer],
    *,
    timeouts: bool,
) -> _Started:
    """Start runs in one transaction, which a single statement is by itself; return them by fence."""
    by_fence: dict[int, list[StartPointer]] = defaultdict(list)
    for request in requests:
        by_fence[request.fence].append(request)
    started: _Started = {}
    together = connection.transaction() if len(by_fence) > 1 else nullcontext()
    with together, connection.cursor() as cursor:
        for fence, group in by_fence.items():
            cursor.execute(
                planned_once("start_runs"),
                {
                    **identity._asdict(),
                    **span([(t.run_id, t.scheduled_for) for t in group]),
                    "fence": fence,
                    "pool": pool,
                    "grace_seconds": START_GRACE_SECONDS,
                    "timeouts": timeouts,
                },
                binary=True,
            )
            started[fence] = list(starmap(StartedRun, cursor.fetchall()))
    return started


def _with_pinned_work(connection: psycopg.Connection, started: list[StartedRun]) -> list[StartedRun]:
    """Add the work of runs whose job was edited later: a run keeps the version it was planned with."""
    edited = [run for run in started if run.kind is None]
    rows = connection.execute(
        statement("read_version_work"),
        {"job_ids": [run.job_id for run in edited], "versions": [run.job_version for run in edited]},
    ).fetchall()
    work = {(row[0], row[1]): row[2:] for row in rows}
    filled = []
    for run in started:
        if run.kind is None and (pinned := work.get((run.job_id, run.job_version))):
            filled.append(replace(run, kind=pinned[0], handler=pinned[1], work=pinned[2]))
        else:
            filled.append(run)
    return filled


def _with_task_work(connection: psycopg.Connection, started: list[StartedRun]) -> list[StartedRun]:
    """Replace the work of workflows by that of the tasks whose runs these are."""
    numbers = {run.id: _task_no(run.request_id) for run in started if run.origin == _TASK}
    tasks = {(run.job_id, run.job_version, numbers[run.id]) for run in started if run.id in numbers}
    rows = connection.execute(
        planned_once("read_task_work"),
        {
            "job_ids": [job_id for job_id, _, _ in tasks],
            "versions": [version for _, version, _ in tasks],
            "task_nos": [task_no for _, _, task_no in tasks],
        },
    ).fetchall()
    work = {row[:3]: row[3:] for row in rows}
    filled = []
    for run in started:
        if (task_no := numbers.get(run.id)) is None:
            filled.append(run)
            continue
        kind, handler, text = work.get((run.job_id, run.job_version, task_no), (None, None, None))
        filled.append(replace(run, kind=kind, handler=handler, work=text))
    return filled


def _task_no(key: str) -> int:
    """Return the number of a task from the key of its run; -1, which no task has, if that is no such key."""
    _, _, rest = key.partition("/")
    number, _, _ = rest.partition("/")
    return int(number) if number.isdecimal() and len(number) <= _TASK_NO_DIGITS else -1


def extend_batches(connection: psycopg.Connection, identity: Identity, seconds: Mapping[int, float]) -> None:
    """Let start batches of this worker become overdue later: some of their runs have waited for it.

    Args:
        connection: in autocommit mode.
        identity: the lease of the worker.
        seconds: by batch, how long after its start its last run is past its timeout at the latest.
    """
    connection.execute(
        statement("extend_batches"),
        {
            **identity._asdict(),
            "ids": list(seconds),
            "seconds": [each + START_GRACE_SECONDS for each in seconds.values()],
        },
    )


def expire(
    connection: psycopg.Connection, topics: EventTopics, requests: Sequence[StartPointer], *, shards: int
) -> Mapping[int, int]:
    """Skip refused runs whose start deadline has passed (reason `start_deadline`); count them by lane."""
    if not requests:
        return {}
    with connection.transaction(), connection.cursor(row_factory=row_of(ChangedRun)) as cursor:
        which = [(request.run_id, request.scheduled_for, request.fence) for request in requests]
        cursor.execute(statement("expire_starts"), fenced_span(which))
        ended = cursor.fetchall()
        release_slots(connection, [(run.id, run.job_id) for run in ended if run.holds_slot])
        announce(connection, topics, [settled_of(run) for run in ended], shards=shards)
    return Counter(run.lane for run in ended)
