"""Finishing attempts: an outcome and everything that follows from it are recorded in one transaction.

Every write checks the run's fence and the worker's identity (id, epoch). A row that is not returned belongs
to another worker by now: nothing is inserted for it, and the caller counts it.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Final, NamedTuple
from uuid import UUID

import msgspec
import orjson
import psycopg

from noonmark.core.attempt_key import AttemptKey, attempt_key
from noonmark.core.states import AttemptOutcome, Lane, RunState
from noonmark.schemas.events.settled import SettledRun
from noonmark.store.database.columns import clean_text, span
from noonmark.store.database.planned_once import planned_once
from noonmark.store.database.row_types import ChangedRun, StartedRun
from noonmark.store.database.statements import statement
from noonmark.store.limits.slots import release_slots
from noonmark.store.outcomes.events import EventTopics, announce
from noonmark.store.outcomes.extras import OutcomeExtras, write_extras
from noonmark.store.runs.worker_lease import Identity


class Outcome(msgspec.Struct):
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
    def key(self) -> AttemptKey:
        """The attempt that the outcome belongs to."""
        return attempt_key(self.run.id, self.fence)

    @property
    def plain(self) -> bool:
        """Whether the run succeeded without a result: its row needs nothing but the new state."""
        return self.state is RunState.SUCCEEDED and self.result is None


def keys_of(outcomes: Sequence[Outcome]) -> list[AttemptKey]:
    """Return the key of each outcome; a call for each would cost more than the rest of it."""
    return [(outcome.run.id.int, outcome.fence) for outcome in outcomes]


class Retry(NamedTuple):
    """A run that is queued again in so many seconds."""

    run: StartedRun | ChangedRun
    pool: str
    seconds: float


_LANES: Final = tuple(lane.label for lane in Lane)
"""Labels by number: an index costs a tenth of an enum's look-up."""

_KEEP_SLOT = frozenset({RunState.RETRYING, RunState.RUNNING})
_GIVEN_BACK = frozenset({AttemptOutcome.SNOOZED, AttemptOutcome.REJECTED})
"""Outcomes that use up no attempt: the handler has not failed, or was not called."""


@dataclass(slots=True)
class Recorded:
    """What was recorded of a batch of outcomes."""

    written: dict[UUID, str] = field(default_factory=dict)
    """The state of each run that was written, unless `plain` has them."""
    plain: Sequence[Outcome] = ()
    """All outcomes, if each was plain and was written as it is: their runs have succeeded."""
    fenced: list[Outcome] = field(default_factory=list)
    """Outcomes that came too late: nothing was written for them."""
    freed: bool = False
    """Whether runs wait for a slot that was freed."""
    tasks_ended: bool = False
    """Whether workflows can go on, because tasks have ended."""

    @property
    def states(self) -> Mapping[UUID, str]:
        """The state of each run that was written."""
        if not self.plain:
            return self.written
        return dict.fromkeys((outcome.run.id for outcome in self.plain), RunState.SUCCEEDED.value)


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
    if is_uniform := _are_uniform(outcomes):
        plain: Mapping[int, Sequence[Outcome]] = {outcomes[0].fence: outcomes}
        detailed: Sequence[Outcome] = ()
    else:
        plain, detailed = _by_plainness(outcomes)
    written: dict[AttemptKey, tuple[str, datetime | None]] = {}
    for fence, group in plain.items():
        count, finished_at, exceptions = _write_plain(connection, identity, fence, group)
        if is_uniform and count == len(group) and not exceptions:
            holders = [(outcome.run.id, outcome.run.job_id) for outcome in outcomes if outcome.run.holds_slot]
            freed = release_slots(connection, holders)
            tasks_ended = announce(connection, topics, _succeeded(outcomes, finished_at), shards=shards)
            if ended_batches:
                delete_batches(connection, ended_batches)
            return Recorded(plain=outcomes, freed=freed, tasks_ended=tasks_ended)
        rows = exceptions or [(outcome.run.id, RunState.SUCCEEDED.value) for outcome in group]
        if count:
            written.update((attempt_key(run_id, fence), (state, finished_at)) for run_id, state in rows)
    _write_detailed(connection, identity, detailed, written)
    kept: dict[AttemptKey, Outcome] = {}
    recorded = Recorded()
    for outcome in outcomes:
        if outcome.key in written and outcome.key not in kept:
            kept[outcome.key] = outcome
            recorded.written[outcome.run.id] = written[outcome.key][0]
        else:
            recorded.fenced.append(outcome)
    _write_consequences(connection, identity, list(kept.values()), recorded)
    # A run that waits for its callback continues: there is nothing to announce yet.
    ended = [_settled(o, *written[key]) for key, o in kept.items() if written[key][0] != RunState.RUNNING]
    recorded.tasks_ended = announce(connection, topics, ended, shards=shards)
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
    return {run_id for run_id, fence in rows if attempt_key(run_id, fence) in keys}


def delete_batches(connection: psycopg.Connection, batches: Sequence[int]) -> None:
    """Remove start batches whose last run has finished."""
    connection.execute(planned_once("delete_batches"), {"ids": list(batches)})


def _by_plainness(outcomes: Sequence[Outcome]) -> tuple[dict[int, list[Outcome]], list[Outcome]]:
    """Return the plain outcomes by fence, and the others."""
    plain: dict[int, list[Outcome]] = defaultdict(list)
    detailed: list[Outcome] = []
    for outcome in outcomes:
        if outcome.plain:
            plain[outcome.fence].append(outcome)
        else:
            detailed.append(outcome)
    return plain, detailed


def _are_uniform(outcomes: Sequence[Outcome]) -> bool:
    """Return whether only states, events and slots must be written: all have succeeded, under one fence."""
    fence = outcomes[0].fence if outcomes else 0
    # To look up a member of an enum costs as much as the comparison.
    succeeded, attempt_succeeded = RunState.SUCCEEDED, AttemptOutcome.SUCCEEDED
    for outcome in outcomes:
        if (
            outcome.state is not succeeded
            or outcome.result is not None
            or outcome.fence != fence
            or outcome.extras is not None
            or outcome.attempt_outcome is not attempt_succeeded
        ):
            return False
    return bool(outcomes)


def _write_plain(
    connection: psycopg.Connection, identity: Identity, fence: int, group: Sequence[Outcome]
) -> tuple[int, datetime, Sequence[tuple[UUID, str]]]:
    """Execute the guarded update of runs of one fence number that succeeded without a result.

    Returns:
        The number of rows that were written, their finish time, and id and state of each of them, unless all
        were written and have succeeded.
    """
    which = span([(outcome.run.id, outcome.run.scheduled_for) for outcome in group])
    with connection.cursor(binary=True) as cursor:
        row = cursor.execute(
            planned_once("finish_plain"),
            {**identity._asdict(), **which, "fence": fence, "expected": len(group)},
        ).fetchone()
    assert row is not None
    count, finished_at, ids, states = row
    return count, finished_at, list(zip(ids or (), states or (), strict=True))


def _write_detailed(
    connection: psycopg.Connection,
    identity: Identity,
    detailed: Sequence[Outcome],
    written: dict[AttemptKey, tuple[str, datetime | None]],
) -> None:
    """Execute the guarded updates of all other outcomes; add state and finish time of each row written."""
    if waiting := [o for o in detailed if o.state is RunState.RUNNING]:
        written.update(_await_callbacks(connection, identity, waiting))
        detailed = [o for o in detailed if o.state is not RunState.RUNNING]
    if not detailed:
        return
    with connection.cursor(binary=True) as cursor:
        cursor.execute(
            statement("finish_detailed"),
            {
                **identity._asdict(),
                **span([(o.run.id, o.run.scheduled_for) for o in detailed]),
                "outcomes": _details(detailed),
            },
        )
        written.update({attempt_key(row[0], row[1]): (row[2], row[3]) for row in cursor})


def _await_callbacks(
    connection: psycopg.Connection, identity: Identity, waiting: Sequence[Outcome]
) -> dict[AttemptKey, tuple[str, datetime | None]]:
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
    return {attempt_key(row[0], row[1]): (row[2], row[3]) for row in rows}


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


def _succeeded(outcomes: Sequence[Outcome], finished_at: datetime) -> list[SettledRun]:
    """Return what is announced about runs that succeeded without a result."""
    succeeded = RunState.SUCCEEDED.value
    return [
        _settled(outcome, succeeded, finished_at)
        if outcome.traceparent is not None
        else SettledRun(
            (run := outcome.run).id,
            run.job_id,
            run.namespace,
            run.scheduled_for,
            run.origin,
            succeeded,
            outcome.reason,
            run.attempt,
            outcome.fence,
            _LANES[run.lane],
            outcome.pool,
            run.started_at,
            finished_at,
            outcome.error and clean_text(outcome.error),
        )
        for outcome in outcomes
    ]


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
        lane=_LANES[run.lane],
        pool=outcome.pool,
        started_at=run.started_at,
        finished_at=finished_at,
        error=clean_text(outcome.error),
    )
    if outcome.result is None and outcome.traceparent is None:
        return settled
    return settled.detailed(result=outcome.result, traceparent=outcome.traceparent)
