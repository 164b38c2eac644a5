"""What a worker writes: its lease, the start of runs, their outcomes, and what it hands back.

Every write names the run's fence and the worker's (id, epoch). Rows that do not come back are
somebody else's by now: nothing is inserted for them, and the caller counts them.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import NamedTuple
from uuid import UUID

import orjson
import psycopg

from noonmark.core.words import AttemptOutcome, Lane, RunState
from noonmark.schemas.lifecycle import SettledRun
from noonmark.store.events import EventTopics, announce, settled_of
from noonmark.store.extras import OutcomeExtras, write_extras
from noonmark.store.rows import ChangedRun, StartedRun, row_of
from noonmark.store.slots import release_slots
from noonmark.store.statements import statement

START_GRACE_SECONDS = 60.0
"""A run this long past its timeout is taken from its worker, whatever the heartbeat says."""

_Key = tuple[UUID, int]
"""A run and the fence it was started with."""


class Identity(NamedTuple):
    """Who writes: a row of `workers`. A lapsed worker gets a new one, never the old one again."""

    worker: int
    epoch: int


class StartRequest(NamedTuple):
    """A run message's claim to be started: decoded and verified, not yet believed."""

    run_id: UUID
    scheduled_for: datetime
    fence: int


@dataclass(slots=True)
class Outcome:
    """How a worker wants an attempt to be recorded."""

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
        """Which queueing of which run it is the outcome of."""
        return self.run.id, self.fence

    @property
    def plain(self) -> bool:
        """Whether the row of the run has nothing to say but that it succeeded."""
        return self.state is RunState.SUCCEEDED and self.result is None


_KEEP_SLOT = frozenset({RunState.RETRYING, RunState.RUNNING})


@dataclass(slots=True)
class Recorded:
    """What the ledger took of a batch of outcomes."""

    states: dict[UUID, str] = field(default_factory=dict)
    """State per run that was written."""
    fenced: list[Outcome] = field(default_factory=list)
    """Outcomes that came too late: nothing was written for them."""
    freed: bool = False
    """Runs wait for what was freed."""


def register(
    connection: psycopg.Connection,
    *,
    pool: str,
    host: str,
    pid: int,
    lease_seconds: float,
    catalogue: str = "{}",
    slots: int | None = None,
) -> Identity:
    """Make this process a worker with a lease, of so many slots; `catalogue`: see `store.catalogues`."""
    row = connection.execute(
        statement("register_worker"),
        {
            "pool": pool,
            "host": host,
            "pid": pid,
            "lease_seconds": lease_seconds,
            "catalogue": catalogue,
            "slots": slots,
        },
    ).fetchone()
    assert row is not None
    return Identity(*row)


def beat(connection: psycopg.Connection, identity: Identity) -> bool:
    """Renew the lease; False when it has lapsed and every run of it must stop."""
    return connection.execute(statement("renew_worker_lease"), identity._asdict()).fetchone() is not None


def leave(connection: psycopg.Connection, identity: Identity) -> None:
    """End the lease of a worker that holds nothing any more."""
    connection.execute(statement("end_worker_lease"), identity._asdict())


def start(
    connection: psycopg.Connection, identity: Identity, pool: str, requests: Sequence[StartRequest]
) -> tuple[list[StartedRun], list[StartRequest]]:
    """Move queued runs to running, in one transaction.

    Returns:
        The runs that are this worker's now, and the tickets that are not: duplicates, fenced,
        cancelled, past their start deadline, or all of them when the lease has lapsed.
    """
    by_fence: dict[int, list[StartRequest]] = defaultdict(list)
    for ticket in requests:
        by_fence[ticket.fence].append(ticket)
    started: list[StartedRun] = []
    held: set[tuple[UUID, int]] = set()
    with connection.transaction(), connection.cursor(row_factory=row_of(StartedRun)) as cursor:
        for fence, group in by_fence.items():
            cursor.execute(
                statement("start_runs"),
                {
                    **identity._asdict(),
                    **span([(t.run_id, t.scheduled_for) for t in group]),
                    "fence": fence,
                    "pool": pool,
                    "grace_seconds": START_GRACE_SECONDS,
                },
                binary=True,
            )
            rows = cursor.fetchall()
            started += rows
            held.update((run.id, fence) for run in rows)
    # By fence: a copy of an older message may be in the batch of the one that was started.
    refused = [ticket for ticket in requests if (ticket.run_id, ticket.fence) not in held]
    return _with_pinned_work(connection, started), refused


def _with_pinned_work(connection: psycopg.Connection, started: list[StartedRun]) -> list[StartedRun]:
    """Fill in the work of runs whose job was edited since: they keep the version they were planned with."""
    edited = [run for run in started if run.kind is None]
    if not edited:
        return started
    rows = connection.execute(
        statement("read_version_work"),
        {"job_ids": [run.job_id for run in edited], "versions": [run.job_version for run in edited]},
    ).fetchall()
    work = {(row[0], row[1]): row[2:] for row in rows}
    filled = []
    for run in started:
        if run.kind is None and (pinned := work.get((run.job_id, run.job_version))):
            filled.append(run._replace(kind=pinned[0], handler=pinned[1], work=pinned[2]))
        else:
            filled.append(run)
    return filled


def expire(
    connection: psycopg.Connection, topics: EventTopics, requests: Sequence[StartRequest], *, shards: int
) -> Mapping[int, int]:
    """Give the verdict `start_deadline` to refused tickets that waited too long; count them by lane."""
    if not requests:
        return {}
    with connection.transaction(), connection.cursor(row_factory=row_of(ChangedRun)) as cursor:
        cursor.execute(statement("expire_starts"), span([(t.run_id, t.scheduled_for) for t in requests]))
        ended = cursor.fetchall()
        release_slots(connection, [(run.id, run.job_id) for run in ended if run.holds_slot])
        announce(connection, topics, [settled_of(run) for run in ended], shards=shards)
    return Counter(run.lane for run in ended)


def record(
    connection: psycopg.Connection,
    identity: Identity,
    topics: EventTopics,
    outcomes: Sequence[Outcome],
    ended_batches: Sequence[int],
    *,
    shards: int,
) -> Recorded:
    """Record outcomes and all that follows from them, inside the caller's transaction.

    Retries, attempts, dead letters, freed slots and lifecycle events are made only for rows that the
    guarded updates returned: once for each, and for the fence that the row has.
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
    # A run whose target will report its end itself goes on: there is nothing to tell yet.
    ended = [_settled(o, *written[key]) for key, o in kept.items() if written[key][0] != RunState.RUNNING]
    announce(connection, topics, ended, shards=shards)
    delete_batches(connection, ended_batches)
    return recorded


def _write_consequences(
    connection: psycopg.Connection, identity: Identity, kept: Sequence[Outcome], recorded: Recorded
) -> None:
    write_extras(connection, [(o, o.extras) for o in kept if o.extras is not None], recorded.states)
    _write_retries(connection, [o for o in kept if recorded.states[o.run.id] == RunState.RETRYING])
    _write_attempts(
        connection, identity, [o for o in kept if o.attempt_outcome is not AttemptOutcome.SUCCEEDED]
    )
    recorded.freed = release_slots(
        connection,
        [
            (o.run.id, o.run.job_id)
            for o in kept
            if o.run.holds_slot and recorded.states[o.run.id] not in _KEEP_SLOT
        ],
    )


def already_recorded(
    connection: psycopg.Connection, identity: Identity, outcomes: Sequence[Outcome]
) -> set[UUID]:
    """Tell which outcomes an earlier try with an unknown COMMIT did record."""
    if not outcomes:
        return set()
    rows = connection.execute(
        statement("find_recorded_outcomes"),
        {**identity._asdict(), **span([(o.run.id, o.run.scheduled_for) for o in outcomes])},
    ).fetchall()
    mine = {o.key for o in outcomes}
    return {run_id for run_id, fence in rows if (run_id, fence) in mine}


def delete_batches(connection: psycopg.Connection, batches: Sequence[int]) -> None:
    """Remove start batches whose last run has ended."""
    if batches:
        connection.execute(statement("delete_batches"), {"ids": list(batches)})


def _write_states(
    connection: psycopg.Connection, identity: Identity, outcomes: Sequence[Outcome]
) -> dict[_Key, tuple[str, datetime | None]]:
    """Run the guarded updates; return state and end of each row that was written."""
    written: dict[_Key, tuple[str, datetime | None]] = {}
    plain: dict[int, list[Outcome]] = defaultdict(list)
    detailed: list[Outcome] = []
    for outcome in outcomes:
        if outcome.plain:
            plain[outcome.fence].append(outcome)
        else:
            detailed.append(outcome)
    written.update(
        _await_callbacks(connection, identity, [o for o in detailed if o.state is RunState.RUNNING])
    )
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
    """Part with runs whose target will report their end itself; see `noonmark.store.callbacks`."""
    if not waiting:
        return {}
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
    """Write outcomes as `finish_detailed` looks them up; only the highest fence of a run can count."""
    by_run: dict[str, list[object]] = {}
    for outcome in sorted(outcomes, key=lambda o: o.fence):
        by_run[str(outcome.run.id)] = [
            outcome.fence,
            outcome.state.value,
            outcome.reason,
            outcome.result,
            clean_text(outcome.error),
            int(outcome.attempt_outcome is AttemptOutcome.SNOOZED),
        ]
    return orjson.dumps(by_run).decode()


def _write_retries(connection: psycopg.Connection, retries: Sequence[Outcome]) -> None:
    if retries:
        connection.execute(
            statement("insert_retries"),
            {
                "delays": [o.retry_seconds for o in retries],
                "scheduled_for": [o.run.scheduled_for for o in retries],
                "job_ids": [o.run.job_id for o in retries],
                "run_ids": [o.run.id for o in retries],
                "job_versions": [o.run.job_version for o in retries],
                "shards": [o.run.shard for o in retries],
                "lanes": [o.run.lane for o in retries],
                "namespaces": [o.run.namespace for o in retries],
                "pools": [o.pool for o in retries],
            },
        )


def _write_attempts(connection: psycopg.Connection, identity: Identity, failed: Sequence[Outcome]) -> None:
    if failed:
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
    told = SettledRun(
        run_id=run.id,
        job_id=run.job_id,
        namespace=run.namespace,
        scheduled_for=run.scheduled_for,
        origin=run.origin,
        state=state,
        # What somebody cancelled has no other reason, whatever its worker reports.
        reason=outcome.reason if state == outcome.state else None,
        attempt=run.attempt,
        fence=outcome.fence,
        lane=Lane(run.lane).label,
        pool=outcome.pool,
        started_at=run.started_at,
        finished_at=finished_at,
        error=clean_text(outcome.error),
    )
    return told if outcome.traceparent is None else told.traced(outcome.traceparent)


def clean_text(text: str | None) -> str | None:
    """Make text storable: NUL and lone surrogates become escapes, length is bounded to 4,000 characters."""
    if text is None:
        return None
    safe = text[:4000].replace("\x00", "\\x00")
    return safe.encode("utf-8", "backslashreplace").decode()


def span(rows: Sequence[tuple[UUID, datetime]]) -> dict[str, object]:
    """Give ids with the range of their days, so that partitions are pruned."""
    days = [day for _, day in rows]
    return {"ids": [run_id for run_id, _ in rows], "first": min(days), "last": max(days)}
