"""Runs whose target reports their end itself: completed by its report, or ended by their deadline.

Such a run is `running` with owner 0, or still its worker's where the report was faster than the answer
202. What follows from its outcome is what follows from any other: it is recorded in the name of whoever
owns the run.
"""

from __future__ import annotations

import hmac
from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from random import Random
from typing import Any, Final
from uuid import UUID

import orjson
import psycopg

from noonmark.core.failures import Failure, exception_names
from noonmark.core.next_state import after_failure
from noonmark.core.retry import Age, RetryPolicy
from noonmark.core.vocabulary import AttemptOutcome, DeliverySemantics, Origin, RunState
from noonmark.schemas.events.submissions import CompleteRun
from noonmark.store.database.row_types import StartedRun
from noonmark.store.database.statements import statement
from noonmark.store.outcomes.callback_rows import Expected, token_hash
from noonmark.store.outcomes.events import EventTopics
from noonmark.store.outcomes.extras import OutcomeExtras
from noonmark.store.runs import finish
from noonmark.store.runs.finish import Outcome
from noonmark.store.runs.worker_lease import Identity

_NO_HASH: Final = bytes(32)
_TRIES: Final = 2
"""The owner of a run whose callback is open changes once at the most: when its worker lets go of it."""

_rng = Random()


@dataclass(slots=True)
class Settled:
    """What became of runs: the state of each, and how many there are by state and lane."""

    states: dict[UUID, str] = field(default_factory=dict)
    counts: Counter[tuple[str, int]] = field(default_factory=Counter)
    freed: bool = False
    """Whether one of them gave back a slot that others may wait for."""

    def add(self, other: Settled) -> None:
        """Take in what became of further runs."""
        self.states.update(other.states)
        self.counts.update(other.counts)
        self.freed |= other.freed


@dataclass(frozen=True, slots=True)
class OpenRun:
    """A live run with an open callback."""

    token_hash: bytes
    is_over: bool
    cancel_requested: bool
    fence: int
    identity: Identity
    pool: str
    now: datetime
    run: StartedRun


def complete_runs(
    connection: psycopg.Connection, topics: EventTopics, completions: Sequence[CompleteRun], *, shards: int
) -> tuple[Settled, list[bool]]:
    """Take in reports, inside the caller's transaction.

    A report that is not taken has a wrong token, one that was used, one of an earlier attempt, or comes
    after the deadline; which of these is not told.

    Args:
        connection: in a transaction.
        topics: where verdicts are announced.
        completions: in the order of their arrival; the first that fits counts.
        shards: of the installation.

    Returns:
        What was settled, and for each report whether it was taken.
    """
    settled = Settled()
    taken: set[int] = set()
    open_places: Sequence[int] = range(len(completions))
    for _ in range(_TRIES):
        outcomes = _fitting(connection, completions, open_places)
        some = _record(connection, topics, list(outcomes.values()), shards=shards)
        settled.add(some)
        taken |= {place for place, (one, _) in outcomes.items() if one.run.id in some.states}
        missed = {one.run.id for one, _ in outcomes.values()} - some.states.keys()
        if not missed:
            break
        # Its worker let go of it between the look and the write: the report is of the same attempt still.
        open_places = [place for place in open_places if completions[place].run_id in missed]
    return settled, [place in taken for place in range(len(completions))]


def _fitting(
    connection: psycopg.Connection, completions: Sequence[CompleteRun], places: Iterable[int]
) -> dict[int, tuple[OpenRun, Outcome]]:
    """Return what reports make of their runs, by place; of those for one run the first that fits counts."""
    places = list(places)
    found = {one.run.id: one for one in _read(connection, {completions[place].run_id for place in places})}
    chosen: set[UUID] = set()
    outcomes: dict[int, tuple[OpenRun, Outcome]] = {}
    for place in places:
        completion = completions[place]
        open_run = found.get(completion.run_id)
        # Also where there is nothing to compare with: how long it takes tells nothing.
        stored = open_run.token_hash if open_run is not None else _NO_HASH
        fits = hmac.compare_digest(stored, token_hash(completion.token))
        if fits and open_run is not None and not open_run.is_over and completion.run_id not in chosen:
            chosen.add(completion.run_id)
            outcomes[place] = (open_run, _reported(open_run, completion))
    return outcomes


def expire(
    connection: psycopg.Connection, topics: EventTopics, run_ids: Iterable[UUID], *, shards: int
) -> Settled:
    """End the attempts of those runs whose target has not reported in time, in the caller's transaction."""
    overdue = [one for one in _read(connection, set(run_ids)) if one.is_over]
    return _record(connection, topics, [(one, _overdue(one)) for one in overdue], shards=shards)


def _read(connection: psycopg.Connection, run_ids: set[UUID]) -> list[OpenRun]:
    if not run_ids:
        return []
    rows = connection.execute(statement("read_callback_runs"), {"ids": list(run_ids)}).fetchall()
    return [
        OpenRun(
            bytes(row[0]),
            row[1],
            row[2],
            row[3],
            Identity(row[4], row[5]),
            row[6],
            row[7],
            StartedRun(*row[8:]),
        )
        for row in rows
    ]


def _record(
    connection: psycopg.Connection,
    topics: EventTopics,
    outcomes: Sequence[tuple[OpenRun, Outcome]],
    *,
    shards: int,
) -> Settled:
    by_owner: dict[Identity, list[Outcome]] = defaultdict(list)
    for open_run, outcome in outcomes:
        by_owner[open_run.identity].append(outcome)
    settled = Settled()
    for identity, group in sorted(by_owner.items()):
        recorded = finish.record(connection, identity, topics, group, [], shards=shards)
        settled.states.update(recorded.states)
        settled.freed |= recorded.freed
    settled.counts.update(
        (settled.states[o.run.id], o.run.lane) for _, o in outcomes if o.run.id in settled.states
    )
    return settled


def _reported(open_run: OpenRun, completion: CompleteRun) -> Outcome:
    if not completion.succeeded:
        failure = Failure(retryable=None if completion.retryable else False)
        error = completion.error or "the target reported a failure"
        return _failed(open_run, error, AttemptOutcome.FAILED, failure)
    outcome = _outcome(open_run, RunState.SUCCEEDED, AttemptOutcome.SUCCEEDED)
    outcome.result = completion.result.decode() if completion.result is not None else None
    return outcome


def _overdue(open_run: OpenRun) -> Outcome:
    seconds = (open_run.now - open_run.run.started_at).total_seconds()
    error = f"the target answered 202 and has reported nothing {seconds:.0f} s after the attempt began"
    failure = Failure(exception=exception_names(TimeoutError), unknown=True)
    return _failed(open_run, error, AttemptOutcome.TIMED_OUT, failure)


def _failed(open_run: OpenRun, error: str, attempt: AttemptOutcome, failure: Failure) -> Outcome:
    run = open_run.run
    spec: dict[str, Any] = orjson.loads(run.work) if run.work else {}
    age = Age(
        (open_run.now - run.scheduled_for).total_seconds(),
        spec.get("deadline_seconds"),
        counts=run.origin != Origin.BACKFILL,
    )
    next_state = after_failure(
        attempt,
        failure,
        policy=RetryPolicy.of(spec.get("retry") or {}),
        attempt=run.attempt,
        delivery=DeliverySemantics(spec.get("delivery", DeliverySemantics.AT_LEAST_ONCE)),
        rng=_rng,
        age=age,
        cancel_requested=open_run.cancel_requested,
    )
    outcome = _outcome(open_run, next_state.state, attempt)
    outcome.reason, outcome.retry_seconds = next_state.reason, next_state.retry_seconds
    outcome.error = error
    return outcome


def _outcome(open_run: OpenRun, state: RunState, attempt: AttemptOutcome) -> Outcome:
    extras = OutcomeExtras(callback=Expected(0.0))
    return Outcome(open_run.run, open_run.fence, state, attempt, pool=open_run.pool, extras=extras)
