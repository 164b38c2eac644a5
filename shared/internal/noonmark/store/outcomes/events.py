"""Lifecycle events and dead letters, written in the transaction of the state change.

A dead letter is a row, and an event with the history of the run.
"""

from __future__ import annotations

import zlib
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Final, NamedTuple
from uuid import UUID

import psycopg

from noonmark.core.fingerprints import fingerprint
from noonmark.core.states import Lane, Origin, RunState
from noonmark.core.transitions import VERDICTS
from noonmark.schemas.events.lifecycle import PastAttempt, dead_event
from noonmark.schemas.events.settled import SettledRun, settled_events
from noonmark.store.database.planned_once import planned_once
from noonmark.store.database.row_types import ChangedRun, row_of
from noonmark.store.database.statements import statement
from noonmark.store.workflows.facts import report_ended_tasks

_MOST_ATTEMPTS: Final = 100
"""The most attempts, newest first, in a dead letter event."""


@dataclass(frozen=True, slots=True)
class EventTopics:
    """The names of the topics on which state changes are announced."""

    lifecycle: str
    dead: str


@dataclass(frozen=True, slots=True)
class RawEvent:
    """An event for the outbox. `key` decides its partition, `slice` its order."""

    slice: int
    topic: str
    key: bytes
    value: bytes


def settled_of(run: ChangedRun) -> SettledRun:
    """Return what is announced about a changed run."""
    return SettledRun(
        run_id=run.id,
        job_id=run.job_id,
        namespace=run.namespace,
        scheduled_for=run.scheduled_for,
        origin=run.origin,
        state=run.state,
        reason=run.reason,
        attempt=run.attempt,
        fence=run.fence,
        lane=Lane(run.lane).label,
        pool=run.pool,
        started_at=run.started_at,
        finished_at=run.finished_at,
        error=run.error,
    )


def announce(
    connection: psycopg.Connection,
    topics: EventTopics,
    settled: Sequence[SettledRun],
    *,
    shards: int,
    report_tasks: bool = True,
) -> bool:
    """Add the events of a batch of state changes to the outbox, with everything that follows from each.

    Dead runs get dead letters; a dead task has none, because its workflow run will have one. Every end of a
    task's run is told to its workflow: all code that ends a run comes here.

    Args:
        connection: in the transaction of the state changes.
        topics: where they are announced.
        settled: the state changes.
        shards: the number of shards of the installation.
        report_tasks: False if the workflows know of these ends, because they decided them.

    Returns:
        Whether a workflow was told: after the commit, send the triggers a hint.
    """
    if not settled:
        return False
    events = []
    for namespace, members in _by_namespace(settled).items():
        key = namespace.encode()
        # One slice per namespace keeps its events in order.
        home = zlib.crc32(key) % shards
        events += [
            RawEvent(home, topics.lifecycle, key, value) for value in settled_events(namespace, members)
        ]
    dead_state, task = RunState.DEAD.value, Origin.TASK.value
    tasks = [one for one in settled if one.origin == task and one.state in VERDICTS] if report_tasks else []
    report_ended_tasks(connection, [(one.run_id, one.scheduled_for) for one in tasks])
    if dead := [one for one in settled if one.state == dead_state and one.origin != task]:
        for one, value in _record_dead_letters(connection, dead):
            home = zlib.crc32(one.namespace.encode()) % shards
            events.append(RawEvent(home, topics.dead, one.job_id.bytes, value))
    insert_events(connection, events)
    return bool(tasks)


def _by_namespace(settled: Sequence[SettledRun]) -> dict[str, Sequence[SettledRun]]:
    """Return the state changes of each namespace, in order. Nearly always there is one."""
    namespaces = {one.namespace for one in settled}
    if len(namespaces) == 1:
        return {namespaces.pop(): settled}
    found: dict[str, list[SettledRun]] = defaultdict(list)
    for one in settled:
        found[one.namespace].append(one)
    return dict(found)


def insert_events(connection: psycopg.Connection, events: Iterable[RawEvent]) -> None:
    """Add raw events to the outbox."""
    rows = list(events)
    if rows:
        connection.execute(
            planned_once("insert_events"),
            {
                "slices": [e.slice for e in rows],
                "topics": [e.topic for e in rows],
                "keys": [e.key for e in rows],
                "values": [e.value for e in rows],
            },
        )


class _JobFacts(NamedTuple):
    """What a dead letter contains about its job."""

    id: UUID
    kind: str | None
    name: str | None


class _Attempt(NamedTuple):
    """A row of `attempts`, and the number of attempts of the run."""

    run_id: UUID
    number: int
    fence: int
    outcome: str
    error: str | None
    worker: int | None
    started_at: datetime | None
    finished_at: datetime
    total: int


def _record_dead_letters(
    connection: psycopg.Connection, dead: Sequence[SettledRun]
) -> list[tuple[SettledRun, bytes]]:
    """Write the dead letters of runs that have just died; return the event for each.

    Call this in the transaction that sets the runs to `dead`, after their last attempts were written.
    """
    jobs = _jobs_of(connection, dead)
    attempts = _attempts_of(connection, dead)
    prints = [fingerprint(jobs[one.job_id].kind, one.error, one.reason or "") for one in dead]
    connection.execute(
        statement("insert_dead_letters"),
        {
            "run_ids": [one.run_id for one in dead],
            "scheduled_for": [one.scheduled_for for one in dead],
            "job_ids": [one.job_id for one in dead],
            "namespaces": [one.namespace for one in dead],
            "attempts": [one.attempt for one in dead],
            "reasons": [one.reason or "attempts_used_up" for one in dead],
            "errors": [one.error for one in dead],
            "kinds": [jobs[one.job_id].kind for one in dead],
            "names": [jobs[one.job_id].name for one in dead],
            "fingerprints": prints,
        },
    )
    return [
        (one, _dead_letter_event(one, jobs[one.job_id], print_, attempts.get(one.run_id, [])))
        for one, print_ in zip(dead, prints, strict=True)
    ]


def _jobs_of(connection: psycopg.Connection, dead: Sequence[SettledRun]) -> dict[UUID, _JobFacts]:
    ids = list({one.job_id for one in dead})
    with connection.cursor(row_factory=row_of(_JobFacts)) as cursor:
        found = cursor.execute(statement("read_dead_letter_jobs"), {"ids": ids}).fetchall()
    return {job_id: _JobFacts(job_id, None, None) for job_id in ids} | {job.id: job for job in found}


def _attempts_of(connection: psycopg.Connection, dead: Sequence[SettledRun]) -> dict[UUID, list[_Attempt]]:
    """Return the newest attempts of each run, in ascending order."""
    with connection.cursor(row_factory=row_of(_Attempt)) as cursor:
        rows = cursor.execute(
            statement("read_dead_attempts"), {"ids": [one.run_id for one in dead], "limit": _MOST_ATTEMPTS}
        ).fetchall()
    found: dict[UUID, list[_Attempt]] = {}
    for row in sorted(rows, key=lambda row: row.fence):
        found.setdefault(row.run_id, []).append(row)
    return found


def _dead_letter_event(dead: SettledRun, job: _JobFacts, print_: str, attempts: Sequence[_Attempt]) -> bytes:
    return dead_event(
        run_id=dead.run_id,
        job_id=dead.job_id,
        namespace=dead.namespace,
        scheduled_for=dead.scheduled_for,
        origin=dead.origin,
        reason=dead.reason,
        attempts=dead.attempt,
        fence=dead.fence,
        lane=dead.lane,
        pool=dead.pool,
        finished_at=dead.finished_at,
        error=dead.error,
        kind=job.kind,
        job_name=job.name,
        fingerprint=print_,
        history=[PastAttempt(*row[1:-1]) for row in attempts],
        history_omitted=attempts[0].total - len(attempts) if attempts else 0,
    )
