"""Outcomes of attempts that their worker cannot judge: the retry rule applied to the ledger."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from random import Random
from typing import Any, Final

import orjson

from noonmark.core.failures import Failure
from noonmark.core.next_state import after_failure
from noonmark.core.retry import Age, policy_of_row
from noonmark.core.states import AttemptOutcome, DeliverySemantics, Origin
from noonmark.store.database.row_types import StartedRun
from noonmark.store.runs.finish import Outcome

_rng: Final = Random()


@dataclass(frozen=True, slots=True)
class LiveAttempt:
    """An attempt that has not ended, as the ledger has it.

    Attributes:
        run: its run.
        fence: of the attempt.
        pool: of the run.
        cancel_requested: whether the run was asked to stop.
        now: the time of the database when it was read.
        due_at: from when its time limits count: its instant, or when its task became due.
    """

    run: StartedRun
    fence: int
    pool: str
    cancel_requested: bool
    now: datetime
    due_at: datetime

    def age_seconds(self) -> float:
        """Return the seconds since the attempt started."""
        return (self.now - self.run.started_at).total_seconds()


def _spec_of(work: str | None) -> dict[str, Any]:
    """Return the work of a job; if nothing can read it, one whose runs are not repeated."""
    try:
        spec = orjson.loads(work) if work else {}
    except ValueError:
        spec = None
    return spec if isinstance(spec, dict) else {"retry": "unreadable", "delivery": "unreadable"}


def _delivery_of(spec: dict[str, Any]) -> DeliverySemantics:
    """Return the delivery guarantee of a job; one that this version does not know is not repeated."""
    try:
        return DeliverySemantics(spec.get("delivery", DeliverySemantics.AT_LEAST_ONCE))
    except ValueError:
        return DeliverySemantics.AT_MOST_ONCE


def failed_attempt(live: LiveAttempt, error: str, outcome: AttemptOutcome, failure: Failure) -> Outcome:
    """Return the outcome of an attempt that failed, by the retry policy of its job.

    Args:
        live: the attempt.
        error: what users read.
        outcome: how the attempt ended: failed or timed out.
        failure: what is known about the failure.
    """
    run = live.run
    spec = _spec_of(run.work)
    deadline = spec.get("deadline_seconds")
    next_state = after_failure(
        outcome,
        failure,
        policy=policy_of_row(spec.get("retry") or {}),
        attempt=run.attempt,
        delivery=_delivery_of(spec),
        rng=_rng,
        age=Age(
            (live.now - live.due_at).total_seconds(),
            deadline if isinstance(deadline, (int, float)) else None,
            counts=run.origin != Origin.BACKFILL,
        ),
        cancel_requested=live.cancel_requested,
    )
    ended = Outcome(run, live.fence, next_state.state, outcome, pool=live.pool)
    ended.reason, ended.retry_seconds, ended.error = next_state.reason, next_state.retry_seconds, error
    return ended
