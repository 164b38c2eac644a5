"""Finishing attempts: an outcome and everything that follows from it are recorded in one transaction.

Every write checks the run's fence and the worker's identity (id, epoch). A row that is not returned belongs
to another worker by now: nothing is inserted for it, and the caller counts it.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import NamedTuple
from uuid import UUID

import orjson
import psycopg

from noonmark.core.states import AttemptOutcome, Lane, RunState
from noonmark.schemas.events.settled import SettledRun
from noonmark.store.database.columns import clean_text, span
from noonmark.store.database.row_types import ChangedRun, StartedRun
from noonmark.store.database.statements import statement
from noonmark.store.limits.slots import release_slots
from noonmark.store.outcomes.events import EventTopics, announce
from noonmark.store.outcomes.extras import OutcomeExtras, write_extras
from noonmark.store.runs.worker_lease import Identity

_Key = tuple[UUID, int]
"""A run and the fence that it was started with."""


@dataclass(slots=True)
class Outcome:
    """The outcome of an attempt, as its worker wants it recorded."""

    run: StartedRun
    fence: int
    state: RunState
    attempt_outcome: AttemptOutcome
    reason: str | None = None
    result: str | None = None
    error: str | None = None
    retry_seconds: float = 0.0
    pool: str = ""
    extras: OutcomeExtras | None = None
    traceparent: str | None = None

    @property
    def key(self) -> _Key:
        """The run and fence that the outcome belongs to."""
        return self.run.id, self.fence

    @property
    def plain(self) -> bool:
        """Whether the run succeeded without a result: its row needs nothing but the new state."""
        return self.state is RunState.SUCCEEDED and self.result is None


class Retry(NamedTuple):
    """A run that is queued again in so many seconds."""

    run: StartedRun | ChangedRun
    pool: str
    seconds: float


_KEEP_SLOT = frozenset({RunState.RETRYING, RunState.RUNNING})
_GIVEN_BACK = frozenset({AttemptOutcome.SNOOZED, AttemptOutcome.REJECTED})
"""Outcomes that use up no attempt: the handler has not failed, or was not called."""


@dataclass(slots=True)
class Recorded:
    """What was recorded of a batch of outcomes."""

    states: dict[UUID, str] = field(default_factory=dict)
    """The state of each run that was written."""
    fenced: list[Outcome] = field(default_factory=list)
    """Outcomes that came too late: nothing was written for them."""
    freed: bool = False
    """Whether runs wait for a slot that was freed."""


def record(
    connection: psycopg.Connection,
    identity: Identity,
    topics: EventTopics,
    outcomes: Sequence[Outcome],
    ended_batches: Sequence[int],
    *,
    shards: int,
) -> Recorded:
    """Record outcomes and everything that follows from them, in the caller's transaction.

    Retries, attempts, dead letters, freed slots and lifecycle events are written only for rows that the
    guarded updates returned: once for each row, and for the fence of the row.
    """
    written = _write_states(connection, identity, outcomes)
    recorded = Recorded(states={run_id: state for (run_id, _), (state, _) in written.items()})
    kept: dict[_Key, Outcome] = {}
    for outcome in outcomes:
        if outcome.key in written and outcome.key not in kept:
            kept[outcome.key] = outcome
        else:
            recorded.fenced.append(outcome)
    _write_consequences(connection, identity, list(kept.values()), recorded)
    # A run that waits for its callback continues: there is nothing to announce yet.
    ended = [_settled(o, *written[key]) for key, o in kept.items() if written[key][0] != RunState.RUNNING]
    announce(connection, topics, ended, shards=shards)
    if ended_batches:
        delete_batches(connection, ended_batches)
    return recorded


def _write_consequences(
    connection: psycopg.Connection, identity: Identity, kept: Sequence[Outcome], recorded: Recorded
) -> None:
    """Write what only some outcomes have; a run that just succeeds has none of it."""
    states = recorded.states
    if with_extras := [(o, o.extras) for o in kept if o.extras is not None]:
        write_extras(connection, with_extras, states)
    if retries := [o for o in kept if states[o.run.id] == RunState.RETRYING]:
        write_retries(connection, [Retry(o.run, o.pool, o.retry_seconds) for o in retries])
    if failed := [o for o in kept if o.attempt_outcome is not AttemptOutcome.SUCCEEDED]:
        _write_attempts(connection, identity, failed)
    if done := [o.run for o in kept if o.run.holds_slot and states[o.run.id] not in _KEEP_SLOT]:
        recorded.freed = release_slots(connection, [(run.id, run.job_id) for run in done])


def already_recorded(
    connection: psycopg.Connection, identity: Identity, outcomes: Sequence[Outcome]
) -> set[UUID]:
    """Return the runs whose outcome an earlier try with an unknown COMMIT result did record."""
    if not outcomes:
        return set()
    rows = connection.execute(
        statement("find_recorded_outcomes"),
        {**identity._asdict(), **span([(o.run.id, o.run.scheduled_for) for o in outcomes])},
    ).fetchall()
    keys = {o.key for o in outcomes}
    return {run_id for run_id, fence in rows if (run_id, fence) in keys}


def delete_batches(connection: psycopg.Connection, batches: Sequence[int]) -> None:
    """Remove start batches whose last run has finished."""
    connection.execute(statement("delete_batches"), {"ids": list(batches)})


def _write_states(
    connection: psycopg.Connection, identity: Identity, outcomes: Sequence[Outcome]
) -> dict[_Key, tuple[str, datetime | None]]:
    """Execute the guarded updates; return the state and the finish time of each row that was written."""
    written: dict[_Key, tuple[str, datetime | None]] = {}
    plain: dict[int, list[Outcome]] = defaultdict(list)
    detailed: list[Outcome] = []
    for outcome in outcomes:
        if outcome.plain:
            plain[outcome.fence].append(outcome)
        else:
            detailed.append(outcome)
    if waiting := [o for o in detailed if o.state is RunState.RUNNING]:
        written.update(_await_callbacks(connection, identity, waiting))
        detailed = [o for o in detailed if o.state is not RunState.RUNNING]
    with connection.cursor(binary=True) as cursor:
        for fence, group in plain.items():
            which = span([(o.run.id, o.run.scheduled_for) for o in group])
            cursor.execute(statement("finish_plain"), {**identity._asdict(), **which, "fence": fence})
            written.update({(row[0], row[1]): (row[2], row[3]) for row in cursor})
        if detailed:
            cursor.execute(
                statement("finish_detailed"),
                {
                    **identity._asdict(),
                    **span([(o.run.id, o.run.scheduled_for) for o in detailed]),
                    "outcomes": _details(detailed),
                },
            )
            written.update({(row[0], row[1]): (row[2], row[3]) for row in cursor})
    return written


def _await_callbacks(
    connection: psycopg.Connection, identity: Identity, waiting: Sequence[Outcome]
) -> dict[_Key, tuple[str, datetime | None]]:
    """Release runs that will finish by a callback; see `noonmark.store.runs.callbacks`."""
    seconds = {
        str(o.run.id): [o.fence, o.extras.callback.seconds]
        for o in waiting
        if o.extras is not None and o.extras.callback is not None
    }
    rows = connection.execute(
        statement("await_callbacks"),
        {
            **identity._asdict(),
            **span([(o.run.id, o.run.scheduled_for) for o in waiting]),
            "seconds": orjson.dumps(seconds).decode(),
        },
    )
    return {(row[0], row[1]): (row[2], row[3]) for row in rows}


def _details(outcomes: Sequence[Outcome]) -> str:
    """Return outcomes as the JSON that `finish_detailed` reads; only the highest fence of a run can match."""
    by_run: dict[str, list[object]] = {}
    for outcome in sorted(outcomes, key=lambda o: o.fence):
        by_run[str(outcome.run.id)] = [
            outcome.fence,
            outcome.state.value,
            outcome.reason,
            outcome.result,
            clean_text(outcome.error),
            int(outcome.attempt_outcome in _GIVEN_BACK),
        ]
    return orjson.dumps(by_run).decode()


def write_retries(connection: psycopg.Connection, retries: Sequence[Retry]) -> None:
    """Write the timers that queue `retrying` runs again, in the transaction that changed their states."""
    connection.execute(
        statement("insert_retries"),
        {
            "delays": [retry.seconds for retry in retries],
            "scheduled_for": [retry.run.scheduled_for for retry in retries],
            "job_ids": [retry.run.job_id for retry in retries],
            "run_ids": [retry.run.id for retry in retries],
            "job_versions": [retry.run.job_version for retry in retries],
            "shards": [retry.run.shard for retry in retries],
            "lanes": [retry.run.lane for retry in retries],
            "namespaces": [retry.run.namespace for retry in retries],
            "pools": [retry.pool for retry in retries],
        },
    )


def _write_attempts(connection: psycopg.Connection, identity: Identity, failed: Sequence[Outcome]) -> None:
    connection.execute(
        statement("insert_attempts"),
        {
            "run_ids": [o.run.id for o in failed],
            "scheduled_for": [o.run.scheduled_for for o in failed],
            "fences": [o.fence for o in failed],
            "attempts": [o.run.attempt for o in failed],
            "workers": [identity.worker] * len(failed),
            "outcomes": [o.attempt_outcome.value for o in failed],
            "errors": [clean_text(o.error) for o in failed],
            "started_at": [o.run.started_at for o in failed],
        },
    )


def _settled(outcome: Outcome, state: str, finished_at: datetime | None) -> SettledRun:
    run = outcome.run
    settled = SettledRun(
        run_id=run.id,
        job_id=run.job_id,
        namespace=run.namespace,
        scheduled_for=run.scheduled_for,
        origin=run.origin,
        state=state,
        # A cancelled run keeps the reason of its cancel, whatever its worker reports.
        reason=outcome.reason if state == outcome.state else None,
        attempt=run.attempt,
        fence=outcome.fence,
        lane=Lane(run.lane).label,
        pool=outcome.pool,
        started_at=run.started_at,
        finished_at=finished_at,
        error=clean_text(outcome.error),
    )
    if outcome.result is None and outcome.traceparent is None:
        return settled
    return settled.detailed(result=outcome.result, traceparent=outcome.traceparent)
