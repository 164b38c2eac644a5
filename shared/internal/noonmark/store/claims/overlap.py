"""The overlap rule: what happens to a new run while another run of its job is unfinished.

Claims, manual triggers and backfills of one job exclude each other by the locks on its timers and its row.
The slot itself has a unique key, so exactly one run holds it in any case.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime
from enum import Enum, auto
from typing import NamedTuple
from uuid import UUID

import psycopg

from noonmark.core.planning.promotion import QUEUEING_OVERLAPS
from noonmark.core.states import Overlap, RunState, SkipReason
from noonmark.store.database.columns import span
from noonmark.store.database.row_types import ChangedRun, row_of
from noonmark.store.database.statements import statement
from noonmark.store.limits.slots import acquire_slots, release_slots
from noonmark.store.outcomes.events import EventTopics, announce, settled_of

_MAX_QUEUED = 1
"""The number of runs that may wait for the slot of their job while another run holds it."""


class SlotRequest(NamedTuple):
    """A new run that needs the slot of its job; `patient`: it is postponed rather than skipped."""

    run_id: UUID
    job_id: UUID
    overlap: Overlap
    patient: bool = False


class SlotDecision(Enum):
    """What is decided about a slot request."""

    HAS_SLOT = auto()
    QUEUED_FOR_SLOT = auto()
    SKIPPED = auto()
    POSTPONED = auto()


@dataclass(slots=True)
class _SlotQueue:
    """The run that holds the slot of a job, and the runs that wait without it, newest first."""

    holder: UUID | None = None
    waiting: list[tuple[UUID, datetime]] = field(default_factory=list)
    joined: int = 0


def decide_slots(
    connection: psycopg.Connection,
    requests: Sequence[SlotRequest],
    *,
    topics: EventTopics,
    install_shards: int,
) -> dict[UUID, SlotDecision]:
    """Decide about each run, and cancel or skip the older runs that newer ones replace.

    Args:
        connection: in the transaction that creates the runs and has locked the timers of their jobs.
        requests: in the order of their instants.
        topics: where the verdicts of cancelled and replaced runs are announced.
        install_shards: the number of shards of the installation.
    """
    queues = _read_queues(
        connection, [request.job_id for request in requests if request.overlap in QUEUEING_OVERLAPS]
    )
    # Runs that wait already go first: a slot that is free now is for them.
    ready = [
        w for w in requests if w.job_id not in queues or not queues[w.job_id].waiting or w.overlap is _NEWEST
    ]
    granted = acquire_slots(connection, [(request.run_id, request.job_id) for request in ready])
    # Read again: a promotion that this waited for may have given the slot to a waiting run.
    queues |= _read_queues(connection, [request.job_id for request in requests if request.overlap is _NEWEST])
    decisions: dict[UUID, SlotDecision] = {}
    newest: dict[UUID, UUID] = {}
    for request in requests:
        if request.run_id in granted:
            decisions[request.run_id] = SlotDecision.HAS_SLOT
            if request.job_id in queues:
                queues[request.job_id].holder = request.run_id
        elif request.patient:
            decisions[request.run_id] = SlotDecision.POSTPONED
        elif request.overlap is Overlap.QUEUE_ONE:
            decisions[request.run_id] = _enqueue(queues[request.job_id])
        elif request.overlap is Overlap.CANCEL_RUNNING:
            if request.job_id in newest:
                decisions[newest[request.job_id]] = SlotDecision.SKIPPED
            newest[request.job_id] = request.run_id
            decisions[request.run_id] = SlotDecision.QUEUED_FOR_SLOT
        else:
            decisions[request.run_id] = SlotDecision.SKIPPED
    replaced = [
        one for request in requests if request.overlap is _NEWEST for one in queues[request.job_id].waiting
    ]
    _skip(connection, replaced, topics, install_shards)
    holders = [queues[job_id].holder for job_id in newest]
    _cancel(
        connection, [one for one in holders if one is not None and one not in granted], topics, install_shards
    )
    return decisions


_NEWEST = Overlap.CANCEL_RUNNING


def _read_queues(connection: psycopg.Connection, jobs: Sequence[UUID]) -> dict[UUID, _SlotQueue]:
    if not jobs:
        return {}
    queues: dict[UUID, _SlotQueue] = defaultdict(_SlotQueue)
    rows = connection.execute(statement("read_slot_queues"), {"ids": list(dict.fromkeys(jobs))})
    for job_id, holder, run_id, scheduled_for in rows:
        queues[job_id].holder = holder
        if run_id is not None:
            queues[job_id].waiting.append((run_id, scheduled_for))
    return dict(queues)


def _enqueue(queue: _SlotQueue) -> SlotDecision:
    """Queue for the slot; skip if the queue is full. If the slot is free, the first run is about to leave."""
    capacity = _MAX_QUEUED + (queue.holder is None)
    if len(queue.waiting) + queue.joined >= capacity:
        return SlotDecision.SKIPPED
    queue.joined += 1
    return SlotDecision.QUEUED_FOR_SLOT


def _skip(
    connection: psycopg.Connection,
    waiting: Sequence[tuple[UUID, datetime]],
    topics: EventTopics,
    install_shards: int,
) -> None:
    """Skip runs that waited for the slot, because a newer run of their job replaces them."""
    if not waiting:
        return
    # Locked first: a running promotion may be replacing their rows in `waits`, and the statement that ends
    # them must see the new rows.
    locked = connection.execute(
        statement("lock_runs_in_states"), {**span(waiting), "states": [RunState.WAITING.value]}
    ).fetchall()
    if not locked:
        return
    with connection.cursor(row_factory=row_of(ChangedRun)) as cursor:
        ended = cursor.execute(
            statement("skip_waits"),
            {**span([(row[0], row[1]) for row in locked]), "verdict": SkipReason.OVERLAP.value},
        ).fetchall()
    release_slots(connection, [(run.id, run.job_id) for run in ended if run.holds_slot])
    announce(connection, topics, [settled_of(run) for run in ended], shards=install_shards)


def _cancel(
    connection: psycopg.Connection, holders: Sequence[UUID], topics: EventTopics, install_shards: int
) -> None:
    """Cancel the runs that hold slots; runs without a worker end at once and release their slots."""
    if not holders:
        return
    found = connection.execute(statement("lock_slot_holders"), {"ids": list(holders)}).fetchall()
    if not found:
        return
    with connection.cursor(row_factory=row_of(ChangedRun)) as cursor:
        stopped = cursor.execute(
            statement("cancel_runs"),
            {
                "ids": [row[0] for row in found],
                "first": min(row[1] for row in found),
                "last": max(row[1] for row in found),
                "shards": sorted({row[2] for row in found}),
                "reason": SkipReason.OVERLAP.value,
            },
        ).fetchall()
    ended = [run for run in stopped if run.state == RunState.CANCELLED]
    connection.execute(
        statement("delete_cancelled_run_timers"),
        {"job_ids": sorted({run.job_id for run in ended}), "ids": [run.id for run in ended]},
    )
    release_slots(connection, [(run.id, run.job_id) for run in ended if run.holds_slot])
    announce(connection, topics, [settled_of(run) for run in ended], shards=install_shards)
