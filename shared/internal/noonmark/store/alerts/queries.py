"""The observer's queries of runs, timers and dead letters. Each one is bounded."""

from __future__ import annotations

from collections.abc import Collection
from datetime import datetime
from typing import Any, Final, NamedTuple
from uuid import UUID

import psycopg

from noonmark.store.database.row_types import row_of
from noonmark.store.database.statements import statement

MOST_OF_A_KIND: Final = 500
"""Maximum number of alerts of one kind found at a time, the worst first."""

MOST_LETTERS: Final = 10_000
"""Up to how many dead letters of a cause are counted; with many causes, each gets a share of `_LETTERS`."""

_LETTERS: Final = 500_000
_FEWEST_LETTERS: Final = 100

_RULES_PAGE: Final = 1000
_WALK: Final = 50_000
"""Runs of the ledger that one statement reads; a check runs up to `_WALKS` statements to keep up."""

_WALKS: Final = 10
_SILENCE_SLACK: Final = 50_000
"""Maximum number of late runs that are tracked; further ones are checked when some have started."""

_TIMERS: Final = 50
_BATCHES: Final = 500
_SLOW_BATCHES: Final = 5000
_DEATHS: Final = 50_000
_OVERLAP_SECONDS: Final = 10.0
"""How far back dead letters are read again, because a transaction that began earlier may commit later."""


class LateTimer(NamedTuple):
    """An instant that was not planned in time."""

    job_id: UUID
    namespace: str
    pool: str
    since: datetime
    recurring: bool
    name: str | None


class LateByRule(NamedTuple):
    """A job with its own rule; `since` is None if it is not late, `namespace` if it no longer exists."""

    job_id: UUID
    namespace: str | None
    pool: str | None
    since: datetime | None
    recurring: bool | None
    name: str | None
    run_id: UUID | None


class LateGroup(NamedTuple):
    """Late runs of one job, or of the one-time jobs of a namespace."""

    job_id: UUID | None
    namespace: str
    pools: list[str]
    runs: int
    since: datetime
    run_id: UUID
    name: str | None


class LongRun(NamedTuple):
    """A run that has taken much longer than is usual."""

    job_id: UUID
    namespace: str
    run_id: UUID
    elapsed: float
    usual_seconds: float
    runs: int
    name: str | None


class StuckRuns(NamedTuple):
    """Runs of workers without a recent heartbeat."""

    runs: int
    workers: int
    since: datetime | None
    run_id: UUID | None


class FailingJob(NamedTuple):
    """A job whose last attempts failed with the same cause."""

    job_id: UUID
    namespace: str
    kind: str
    failures: int
    cause: str
    last_error: str | None
    run_id: UUID | None
    failed_at: datetime | None
    name: str | None


class Cause(NamedTuple):
    """A cause of dead letters; `job_id` is None for the one-time jobs of the namespace."""

    namespace: str
    fingerprint: str
    job_id: UUID | None


class NewCause(NamedTuple):
    """A recent cause of dead letters, their number, and the times of the first and the last."""

    cause: Cause
    letters: int
    first_at: datetime
    last_at: datetime


class DeadCause(NamedTuple):
    """The current dead letters of a cause. `more` means that the count reached its cap."""

    namespace: str
    fingerprint: str
    job_id: UUID | None
    letters: int
    more: bool
    run_id: UUID
    died_at: datetime
    error: str | None
    reason: str
    kind: str | None
    name: str | None
    attempts: int
    last_success_at: datetime | None


class Silence(NamedTuple):
    """Since when no outcome has arrived, and what should have led to one."""

    seconds: float
    heard_at: datetime
    instants_due: bool
    runs_late: bool
    unsent: bool


class OpenAlert(NamedTuple):
    """An open alert."""

    fingerprint: str
    kind: str
    namespace: str | None
    job_id: UUID | None
    details: dict[str, Any]


def late_timers(connection: psycopg.Connection, *, shards: int, late_after: float) -> list[LateTimer]:
    """Return instants that were not planned in time, the oldest of each shard, lane and kind."""
    with connection.cursor(row_factory=row_of(LateTimer)) as cursor:
        return cursor.execute(
            statement("find_late_timers"),
            {"shards": list(range(shards)), "late_after": late_after, "limit": _TIMERS},
        ).fetchall()


def late_by_rule(connection: psycopg.Connection) -> list[LateByRule]:
    """Return all jobs that have their own rule, as of the last walk of `late_groups`."""
    found: list[LateByRule] = []
    page = None
    with connection.cursor(row_factory=row_of(LateByRule)) as cursor:
        while page is None or len(page) == _RULES_PAGE:
            after = page[-1].job_id if page else UUID(int=0)
            page = cursor.execute(
                statement("find_late_by_rule"), {"after": after, "limit": _RULES_PAGE}
            ).fetchall()
            page.sort(key=lambda row: row.job_id)
            found += page
    return found


def late_groups(connection: psycopg.Connection, *, late_after: float) -> list[LateGroup]:
    """Continue walking the ledger, drop started runs, and return late runs of jobs without a rule."""
    for ruled in (False, True):
        params = {"late_after": late_after, "limit": _WALK, "capacity": _SILENCE_SLACK, "ruled": ruled}
        for _ in range(_WALKS):
            row = connection.execute(statement("find_late_runs"), params).fetchone()
            if not (row and row[0]):
                break
    connection.execute(statement("delete_late_runs"))
    with connection.cursor(row_factory=row_of(LateGroup)) as cursor:
        return cursor.execute(
            statement("group_late_runs"), {"late_after": late_after, "limit": MOST_OF_A_KIND + 1}
        ).fetchall()


def long_runs(
    connection: psycopg.Connection, *, factor: float, min_runs: int, min_seconds: float
) -> list[LongRun]:
    """Return runs that have taken much longer than is usual, the longest first."""
    with connection.cursor(row_factory=row_of(LongRun)) as cursor:
        return cursor.execute(
            statement("find_long_runs"),
            {
                "factor": factor,
                "min_runs": min_runs,
                "min_seconds": min_seconds,
                "batches": _BATCHES,
                "limit": MOST_OF_A_KIND,
            },
        ).fetchall()


def stuck_runs(connection: psycopg.Connection, *, silence: float, most: int) -> StuckRuns:
    """Count the runs of workers without a heartbeat for `silence` seconds, up to `most`."""
    with connection.cursor(row_factory=row_of(StuckRuns)) as cursor:
        row = cursor.execute(
            statement("find_stuck_runs"), {"silence": silence, "most": most, "batches": _SLOW_BATCHES}
        ).fetchone()
    assert row is not None
    return row


def failing_jobs(connection: psycopg.Connection, *, failing_after: int) -> list[FailingJob]:
    """Return active jobs with at least `failing_after` equal failures in a row."""
    with connection.cursor(row_factory=row_of(FailingJob)) as cursor:
        return cursor.execute(
            statement("find_failing_jobs"), {"failing_after": failing_after, "limit": MOST_OF_A_KIND}
        ).fetchall()


def new_causes(connection: psycopg.Connection) -> list[NewCause]:
    """Return the causes of dead letters since `dead_until`, the most frequent first."""
    found = _deaths(connection, look_back=_OVERLAP_SECONDS)
    if sum(one.letters for one in found) == _DEATHS:
        # The overlap alone may fill a whole result, so continue without it.
        dead_until(connection, max(one.last_at for one in found))
        found += _deaths(connection, look_back=0.0)
    return sorted(found, key=lambda one: -one.letters)


def _deaths(connection: psycopg.Connection, *, look_back: float) -> list[NewCause]:
    params = {"look_back": look_back, "limit": _DEATHS}
    rows = connection.execute(statement("find_dead_causes"), params).fetchall()
    return [NewCause(Cause(*row[:3]), *row[3:]) for row in rows]


def dead_until(connection: psycopg.Connection, until: datetime) -> None:
    """Store up to when dead letters were checked; `new_causes` continues there."""
    connection.execute(statement("advance_dead_watermark"), {"until": until})


def dead_causes(connection: psycopg.Connection, causes: Collection[Cause]) -> list[DeadCause]:
    """Return the current state of causes; those without a dead letter are left out."""
    if not causes:
        return []
    most = max(_FEWEST_LETTERS, min(MOST_LETTERS, _LETTERS // len(causes)))
    with connection.cursor(row_factory=row_of(DeadCause)) as cursor:
        return cursor.execute(
            statement("read_dead_causes"),
            {
                "namespaces": [one.namespace for one in causes],
                "fingerprints": [one.fingerprint for one in causes],
                "job_ids": [one.job_id for one in causes],
                "most": most,
            },
        ).fetchall()


def silence(connection: psycopg.Connection, *, shards: int, seconds: float) -> Silence:
    """Return how long no outcome has arrived, and whether there should have been one."""
    with connection.cursor(row_factory=row_of(Silence)) as cursor:
        row = cursor.execute(
            statement("measure_silence"), {"shards": list(range(shards)), "silence": seconds}
        ).fetchone()
    assert row is not None
    return row


def open_alerts(connection: psycopg.Connection) -> list[OpenAlert]:
    """Return the open alerts."""
    with connection.cursor(row_factory=row_of(OpenAlert)) as cursor:
        return cursor.execute(statement("list_open_alerts"), {"limit": 10 * MOST_OF_A_KIND}).fetchall()


def caught_up(connection: psycopg.Connection, topic: str) -> bool:
    """Return whether the outcomes of all partitions are read up to the present."""
    row = connection.execute(statement("observer_is_caught_up"), {"topic": topic}).fetchone()
    return bool(row and row[0])
