"""The rows of a good history: jobs, a run that succeeded, and what it leaves at targets and on topics."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

from noonmark.core.states import Lane
from noonmark.verify.copies import key_of
from noonmark.verify.history import Attempt, Call, DeadLetter, Death, LifecycleRecord, Run, Worker
from noonmark.verify.recorded import digest

NS = "shop"
NOON = datetime(2026, 6, 1, 12, tzinfo=UTC)
MADE = NOON - timedelta(minutes=1)
END = NOON + timedelta(minutes=2)
STEP = timedelta(milliseconds=5)
BOUND = timedelta(seconds=30)
FORMER = Worker(
    1, "default", 33, 2, MADE - timedelta(hours=2), MADE - timedelta(hours=1), MADE - timedelta(hours=1)
)
FIRST = Worker(2, "default", 11, 1, MADE, None, NOON)
SECOND = Worker(3, "default", 22, 1, MADE, None, NOON)
SHARDS = 4
QUEUES = ("outbox", "start_batches", "slots", "limit_slots", "waits", "timers", "workflows")
"""Tables that are empty when everything is at rest."""


def after(seconds: float) -> datetime:
    """An instant from noon."""
    return NOON + timedelta(seconds=seconds)


def every(seconds: float, instants: int) -> dict[str, Any]:
    """A stored schedule."""
    return {
        "every": seconds,
        "anchor": NOON.isoformat(),
        "start": NOON.isoformat(),
        "end": after(seconds * (instants - 1)).isoformat(),
    }


JOBS: dict[str, tuple[dict[str, Any] | None, dict[str, Any]]] = {
    # name: schedule, what its version says above the defaults
    "now": (None, {}),
    "once": ({"run_at": NOON.isoformat()}, {}),
    "tick": (every(1, 3), {}),
    "tock": (every(1, 3), {}),
    "alone": (every(10, 3), {"overlap": "skip"}),
    "flaky": (None, {"max_attempts": 3}),
    "doomed": (None, {"max_attempts": 2}),
    "stopped": (None, {}),
    "maybe": (None, {"delivery": "at_most_once"}),
    "risen": (None, {"max_attempts": 2}),
    "handed": (None, {}),
    "ledgered": (None, {"delivery": "exactly_once"}),
    "crowd": (every(1, 40), {}),
    "flow": (None, {}),
    "narrow": (every(2, 2), {"limits": (("stripe", None),)}),
}


def run(name: str, job: str, at: datetime, **other: Any) -> Run:
    """A run that succeeded at its first attempt."""
    made = Run(
        name,
        f"j-{job}",
        1,
        NS,
        at,
        None,
        "schedule",
        "",
        "succeeded",
        None,
        1,
        1,
        1,
        at + STEP / 5,
        at + STEP,
        at + 10 * STEP,
        result='"done"',
        pool="default",
        owner=FIRST.id,
        epoch=1,
        shard=shard_of_job(job),
        zone_data=1,
        holds_slot=job == "alone",
    )
    return made._replace(**other)


def call(of: Run, fence: int, at: datetime, attempt: int = 1) -> Call:
    """A call as its target noted it; it keeps fences."""
    pid = FIRST.pid if of.owner is None else {FIRST.id: FIRST.pid, SECOND.id: SECOND.pid}[of.owner]
    return Call(
        of.id,
        fence,
        attempt,
        key_of(of),
        of.scheduled_for,
        NS,
        at,
        pid,
        accepted=True,
        returns=of.result or '"done"',
    )


def tell(of: Run) -> LifecycleRecord:
    """The event of a run's verdict. A success says nothing of an error before it."""
    error = None if of.state == "succeeded" else of.error
    return LifecycleRecord(
        f"t-{of.id}",
        of.id,
        of.state,
        of.fence,
        NS,
        of.attempt,
        of.reason,
        of.finished_at,
        error,
        digest(of.result),
        digest(error),
        of.started_at,
        of.job,
        of.scheduled_for,
        of.origin,
        Lane(of.lane).label,
        of.pool,
    )


def tell_retry(row: Attempt, of: Run) -> LifecycleRecord:
    """The event of an attempt that is followed by another."""
    state = of._replace(state="retrying", fence=row.fence, attempt=row.attempt, reason=None, result=None)
    told = tell(state._replace(started_at=row.started_at, finished_at=None, error=row.error))
    return told._replace(event=f"t-{of.id}-{row.fence}")


def die(letter: DeadLetter, fence: int, rows: list[Attempt]) -> Death:
    """The event of a death, with the attempts before it."""
    history = tuple(row._replace(scheduled_for=None) for row in rows if row.run == letter.run)
    return Death(
        letter.run,
        NS,
        fence,
        letter.attempts or 0,
        letter.reason,
        letter.error,
        letter.kind,
        letter.name,
        letter.fingerprint,
        tuple(row for row in history if row.fence <= fence),
    )


def letter(name: str) -> DeadLetter:
    """The dead letter of a run that used up its attempts."""
    cause = ("python", name, "1f0c6a39be2d5e71")
    return DeadLetter(name, NS, 2, "retries_exhausted", "no luck", NOON, f"j-{name}", *cause, after(3.1))


def shard_of_job(job: str) -> int:
    """The shard of a job and its runs."""
    return list(JOBS).index(job) % SHARDS
