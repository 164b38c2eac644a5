"""Runs that have seized their worker: timed out in its name, before it is ended."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Final
from uuid import UUID

import psycopg

from noonmark.core.failures import Failure, exception_names
from noonmark.core.states import AttemptOutcome
from noonmark.store.database.columns import span
from noonmark.store.database.row_types import StartedRun
from noonmark.store.database.statements import statement
from noonmark.store.outcomes.events import EventTopics
from noonmark.store.runs import finish
from noonmark.store.runs.failed_attempts import LiveAttempt, failed_attempt
from noonmark.store.runs.held_runs import read_worker_runs
from noonmark.store.runs.worker_lease import Identity

_ERROR: Final = (
    "timed out after {seconds:.0f} s; the handler kept the interpreter's lock (GIL), so its worker was ended"
)


def time_out(
    connection: psycopg.Connection,
    identity: Identity,
    topics: EventTopics,
    run_ids: Collection[UUID],
    *,
    shards: int,
) -> Sequence[UUID]:
    """Time out runs of a worker that cannot do it any more; return those that it still owned.

    The attempts are used up, as at any timeout.

    Args:
        connection: in autocommit mode.
        identity: the lease of the worker.
        topics: where verdicts are announced.
        run_ids: the runs.
        shards: the number of shards of the installation.
    """
    held = read_worker_runs(connection, identity).live
    found = [(run_id, held[run_id].scheduled_for) for run_id in run_ids if run_id in held]
    if not found:
        return []
    with connection.transaction():
        rows = connection.execute(
            statement("read_held_runs"), {**identity._asdict(), **span(found)}
        ).fetchall()
        live = [
            LiveAttempt(
                StartedRun(*row[5:]),
                fence=row[1],
                pool=row[2],
                cancel_requested=row[0],
                now=row[3],
                due_at=row[4],
            )
            for row in rows
        ]
        outcomes = [
            failed_attempt(
                one,
                _ERROR.format(seconds=one.age_seconds()),
                AttemptOutcome.TIMED_OUT,
                Failure(exception=exception_names(TimeoutError), unknown=True),
            )
            for one in live
        ]
        recorded = finish.record(connection, identity, topics, outcomes, [], shards=shards)
    return list(recorded.states)
