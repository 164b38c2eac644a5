"""Callbacks: runs whose target reports the result later. The report ends them, or their deadline.

Such a run is `running` with owner 0; or its worker still owns it, if the report was faster than the response
202. Its outcome is recorded like any other, in the name of the owner.
"""

from __future__ import annotations

import hmac
from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Final
from uuid import UUID

import psycopg

from noonmark.core.failures import Failure, exception_names
from noonmark.core.states import AttemptOutcome, RunState
from noonmark.schemas.events.submissions import CompleteRun
from noonmark.store.database.row_types import StartedRun
from noonmark.store.database.statements import statement
from noonmark.store.outcomes.callback_rows import Expected, token_hash
from noonmark.store.outcomes.events import EventTopics
from noonmark.store.outcomes.extras import OutcomeExtras
from noonmark.store.runs import finish
from noonmark.store.runs.failed_attempts import LiveAttempt, failed_attempt
from noonmark.store.runs.finish import Outcome
from noonmark.store.runs.worker_lease import Identity

_NO_HASH: Final = bytes(32)
_TRIES: Final = 2
"""The owner of a run with an open callback changes at most once: when its worker releases it."""


@dataclass(slots=True)
class Settled:
    """Runs that were settled: the state of each, and their number by state and lane."""

    states: dict[UUID, str] = field(default_factory=dict)
    counts: Counter[tuple[str, int]] = field(default_factory=Counter)
    freed: bool = False
    """Whether one of them released a slot that other runs can wait for."""

    def add(self, other: Settled) -> None:
        """Add more settled runs."""
        self.states.update(other.states)
        self.counts.update(other.counts)
        self.freed |= other.freed


@dataclass(frozen=True, slots=True)
class OpenRun:
    """A live run with an open callback."""

    token_hash: bytes
    is_over: bool
    identity: Identity
    attempt: LiveAttempt


def complete_runs(
    connection: psycopg.Connection, topics: EventTopics, completions: Sequence[CompleteRun], *, shards: int
) -> tuple[Settled, list[bool]]:
    """Accept reports of targets, in the caller's transaction.

    A report is refused if its token is wrong, was used already, or belongs to an earlier attempt, or if the
    deadline has passed; the caller does not learn which.

    Args:
        connection: in a transaction.
        topics: where verdicts are published.
        completions: the reports in the order of their arrival; the first valid one counts.
        shards: number of shards of the installation.

    Returns:
        What was settled, and for each report whether it was accepted.
    """
    settled = Settled()
    accepted: set[int] = set()
    pending: Sequence[int] = range(len(completions))
    for _ in range(_TRIES):
        outcomes = _valid_reports(connection, completions, pending)
        recorded = _record(connection, topics, list(outcomes.values()), shards=shards)
        settled.add(recorded)
        accepted |= {index for index, (one, _) in outcomes.items() if one.attempt.run.id in recorded.states}
        missed = {one.attempt.run.id for one, _ in outcomes.values()} - recorded.states.keys()
        if not missed:
            break
        # The worker released the run between the read and the write: the report is still of this attempt.
        pending = [index for index in pending if completions[index].run_id in missed]
    return settled, [index in accepted for index in range(len(completions))]


def _valid_reports(
    connection: psycopg.Connection, completions: Sequence[CompleteRun], indices: Iterable[int]
) -> dict[int, tuple[OpenRun, Outcome]]:
    """Return the outcomes of valid reports, by index; of several for one run, the first valid one counts."""
    indices = list(indices)
    found = {
        one.attempt.run.id: one for one in _read(connection, {completions[index].run_id for index in indices})
    }
    chosen: set[UUID] = set()
    outcomes: dict[int, tuple[OpenRun, Outcome]] = {}
    for index in indices:
        completion = completions[index]
        open_run = found.get(completion.run_id)
        # Compare even without a stored token, so that the duration reveals nothing.
        stored = open_run.token_hash if open_run is not None else _NO_HASH
        matches = hmac.compare_digest(stored, token_hash(completion.token))
        if matches and open_run is not None and not open_run.is_over and completion.run_id not in chosen:
            chosen.add(completion.run_id)
            outcomes[index] = (open_run, _reported(open_run, completion))
    return outcomes


def expire(
    connection: psycopg.Connection, topics: EventTopics, run_ids: Iterable[UUID], *, shards: int
) -> Settled:
    """Time out runs whose target has not reported in time, in the caller's transaction."""
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
            Identity(row[4], row[5]),
            LiveAttempt(
                StartedRun(*row[9:]),
                fence=row[3],
                pool=row[6],
                cancel_requested=row[2],
                now=row[7],
                due_at=row[8],
            ),
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
    seconds = open_run.attempt.age_seconds()
    error = f"the target answered 202, but sent no report within {seconds:.0f} s of the start of the attempt"
    failure = Failure(exception=exception_names(TimeoutError), unknown=True)
    return _failed(open_run, error, AttemptOutcome.TIMED_OUT, failure)


def _failed(open_run: OpenRun, error: str, attempt: AttemptOutcome, failure: Failure) -> Outcome:
    outcome = failed_attempt(open_run.attempt, error, attempt, failure)
    outcome.extras = OutcomeExtras(callback=Expected(0.0))
    return outcome


def _outcome(open_run: OpenRun, state: RunState, attempt: AttemptOutcome) -> Outcome:
    extras = OutcomeExtras(callback=Expected(0.0))
    live = open_run.attempt
    return Outcome(live.run, live.fence, state, attempt, pool=live.pool, extras=extras)
