"""What a new run does while another run of its job is unfinished: the overlap rule, whoever makes the run.

Claims, manual triggers and backfills of one job exclude each other by the locks on its timers and its row;
the slot itself has a unique key, so exactly one run holds it whatever happens.
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

from noonmark.core.granting import LINES_UP
from noonmark.core.words import Overlap, RunState, SkipReason
from noonmark.store.events import EventTopics, announce, settled_of
from noonmark.store.rows import ChangedRun, row_of
from noonmark.store.slots import free_slots, take_slots
from noonmark.store.statements import statement
from noonmark.store.work import span

_MOST_IN_LINE = 1
"""Runs that wait for the slot of their job while another holds it."""


class Wish(NamedTuple):
    """A run to be made that needs the slot of its job; `patient`: it rather comes later than be skipped."""

    run_id: UUID
    job_id: UUID
    overlap: Overlap
    patient: bool = False


class Fate(Enum):
    """What becomes of a wish."""

    HAS_SLOT = auto()
    IN_LINE = auto()
    SKIPPED = auto()
    LATER = auto()


@dataclass(slots=True)
class _Line:
    """Who holds the slot of a job, and the runs that wait without it, the newest first."""

    holder: UUID | None = None
    waiting: list[tuple[UUID, datetime]] = field(default_factory=list)
    joined: int = 0


def judge(
    connection: psycopg.Connection, wishes: Sequence[Wish], *, topics: EventTopics, install_shards: int
) -> dict[UUID, Fate]:
    """Tell what becomes of each run, and clear the way for those that cancel the run before them.

    Args:
        connection: in the transaction that makes the runs and has locked their jobs' timers.
        wishes: in the order of their instants.
        topics: where the verdicts of cancelled and replaced runs are announced.
        install_shards: shards of the installation.
    """
    lines = _lines(connection, [wish.job_id for wish in wishes if wish.overlap in LINES_UP])
    # Who waits already goes first: a slot that is free this moment is his.
    ready = [
        w for w in wishes if w.job_id not in lines or not lines[w.job_id].waiting or w.overlap is _NEWEST
    ]
    granted = take_slots(connection, [(wish.run_id, wish.job_id) for wish in ready])
    # Read again: a promotion that this waited for may have given the slot to one of those that waited.
    lines |= _lines(connection, [wish.job_id for wish in wishes if wish.overlap is _NEWEST])
    fates: dict[UUID, Fate] = {}
    newest: dict[UUID, UUID] = {}
    for wish in wishes:
        if wish.run_id in granted:
            fates[wish.run_id] = Fate.HAS_SLOT
            if wish.job_id in lines:
                lines[wish.job_id].holder = wish.run_id
        elif wish.patient:
            fates[wish.run_id] = Fate.LATER
        elif wish.overlap is Overlap.QUEUE_ONE:
            fates[wish.run_id] = _join(lines[wish.job_id])
        elif wish.overlap is Overlap.CANCEL_RUNNING:
            if wish.job_id in newest:
                fates[newest[wish.job_id]] = Fate.SKIPPED
            newest[wish.job_id] = wish.run_id
            fates[wish.run_id] = Fate.IN_LINE
        else:
            fates[wish.run_id] = Fate.SKIPPED
    replaced = [one for wish in wishes if wish.overlap is _NEWEST for one in lines[wish.job_id].waiting]
    _skip(connection, replaced, topics, install_shards)
    holders = [lines[job_id].holder for job_id in newest]
    _cancel(
        connection, [one for one in holders if one is not None and one not in granted], topics, install_shards
    )
    return fates


_NEWEST = Overlap.CANCEL_RUNNING


def _lines(connection: psycopg.Connection, jobs: Sequence[UUID]) -> dict[UUID, _Line]:
    if not jobs:
        return {}
    lines: dict[UUID, _Line] = defaultdict(_Line)
    rows = connection.execute(statement("overlap_lines"), {"ids": list(dict.fromkeys(jobs))})
    for job_id, holder, run_id, scheduled_for in rows:
        lines[job_id].holder = holder
        if run_id is not None:
            lines[job_id].waiting.append((run_id, scheduled_for))
    return dict(lines)


def _join(line: _Line) -> Fate:
    """Join the line, or be skipped where it is full. While the slot is free its first run is about to go."""
    room = _MOST_IN_LINE + (line.holder is None)
    if len(line.waiting) + line.joined >= room:
        return Fate.SKIPPED
    line.joined += 1
    return Fate.IN_LINE


def _skip(
    connection: psycopg.Connection,
    waiting: Sequence[tuple[UUID, datetime]],
    topics: EventTopics,
    install_shards: int,
) -> None:
    """Give runs that waited for the slot their verdict: a newer one of their job is there."""
    if not waiting:
        return
    # Locked first: a promotion under way may be replacing their rows in `waits`, and the statement that ends
    # them must see those that come of it.
    locked = connection.execute(
        statement("cancel_lock_runs"), {**span(waiting), "states": [RunState.WAITING.value]}
    ).fetchall()
    if not locked:
        return
    with connection.cursor(row_factory=row_of(ChangedRun)) as cursor:
        ended = cursor.execute(
            statement("skip_waits"),
            {**span([(row[0], row[1]) for row in locked]), "verdict": SkipReason.OVERLAP.value},
        ).fetchall()
    free_slots(connection, [(run.id, run.job_id) for run in ended if run.holds_slot])
    announce(connection, topics, [settled_of(run) for run in ended], shards=install_shards)


def _cancel(
    connection: psycopg.Connection, holders: Sequence[UUID], topics: EventTopics, install_shards: int
) -> None:
    """Ask the runs that hold slots to stop; those that no worker has end at once, and free theirs."""
    if not holders:
        return
    found = connection.execute(statement("overlap_holders"), {"ids": list(holders)}).fetchall()
    if not found:
        return
    with connection.cursor(row_factory=row_of(ChangedRun)) as cursor:
        stopped = cursor.execute(
            statement("job_cancel_runs"),
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
        statement("cancel_drop_timers"),
        {"job_ids": sorted({run.job_id for run in ended}), "ids": [run.id for run in ended]},
    )
    free_slots(connection, [(run.id, run.job_id) for run in ended if run.holds_slot])
    announce(connection, topics, [settled_of(run) for run in ended], shards=install_shards)
