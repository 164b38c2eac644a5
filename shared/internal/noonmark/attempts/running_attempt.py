"""A run in a worker's hands, from the start statement to its recorded outcome."""

from __future__ import annotations

import threading
import time
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any
from uuid import UUID

import orjson

from noonmark.attempts.redaction import Redactor
from noonmark.core.monitoring.trace_context import Hop, TraceContext, parse_traceparent, span_id_of
from noonmark.core.retry import Age, RetryPolicy
from noonmark.core.vocabulary import DeliverySemantics, Lane, Origin
from noonmark.kafka.consumers.records import Record
from noonmark.kafka.messages import RunMessage, traceparent_of
from noonmark.store.database.row_types import StartedRun
from noonmark.store.outcomes.extras import OutcomeExtras
from noonmark.store.runs.starts import StartRequest


@dataclass(slots=True, eq=False)
class Delivery:
    """A run message that passed its checks, and the record it came in."""

    start_request: StartRequest
    record: Record
    lane: Lane
    message: RunMessage | None = None
    """What it said, which the ledger must confirm."""

    def agrees(self, run: StartedRun) -> bool:
        """Tell whether the message is about the run that the ledger has under this id and fence."""
        said = self.message
        return said is None or (
            said.job_id == run.job_id
            and said.job_version == run.job_version
            and said.namespace == run.namespace
        )


@dataclass(slots=True)
class AttemptTrace:
    """Where an attempt stands in the trace of its run.

    Attributes:
        context: of its span; what its target is told.
        parent: id of the span of the message that it came by.
        taken: when the run was in the worker's hands, in seconds since 1970.
        ended_at: when the handler had ended, on the clock of `time.monotonic`; 0 before.
    """

    context: TraceContext
    parent: str
    taken: float = field(default_factory=time.time)
    ended_at: float = 0.0

    @classmethod
    def of(cls, message: bytes, run_id: UUID, fence: int) -> AttemptTrace | None:
        """Read off its message whether an attempt is traced."""
        text = traceparent_of(message)
        given = parse_traceparent(text) if text is not None else None
        if given is None or not given.sampled:
            return None
        return cls(TraceContext(given.trace_id, span_id_of(run_id, Hop.EXECUTE, fence)), given.span_id)


@dataclass(slots=True, eq=False)
class RunningAttempt:
    """A started run. `key` names it in memory: the same run under a higher fence is another one."""

    key: tuple[Any, int]
    run: StartedRun
    fence: int
    record: Record
    lane: Lane
    pool: str
    payload: Any
    timeout_seconds: float
    retry: dict[str, Any]
    began_at: float = 0.0
    """Monotonic seconds when the handler began; 0 while it waits for a thread."""
    taken_at: float = field(default_factory=time.monotonic)
    """Monotonic seconds when the reply to the start statement was read."""
    # Of `jobs.work` only what is used is kept: a dict that lives as long as its run costs the collector more
    # than reading it did.
    delivery: DeliverySemantics = DeliverySemantics.AT_LEAST_ONCE
    """What is promised about the run's attempts."""
    deadline_seconds: float | None = None
    """Total time of all attempts, from the run's instant."""
    extras: OutcomeExtras | None = None
    """What the attempt leaves besides its outcome; taken along by every outcome that is made of this hand."""
    stop_requested: bool = False
    """Whether somebody cancelled the run: its handler is told, and its verdict will be `cancelled`."""
    redactor: Redactor | None = None
    """Knows the secrets that the attempt was given."""
    checkpoint: bytes | None = None
    """JSON that an earlier attempt kept for this one."""
    trace: AttemptTrace | None = None
    """Where the attempt stands in the trace of its run, if that is traced."""

    @classmethod
    def of(cls, run: StartedRun, delivery: Delivery, pool: str) -> RunningAttempt:
        """Take a started run into hand. A run whose job vanished has no work and will be refused."""
        work = orjson.loads(run.work) if run.work else {}
        attempt = cls(
            (run.id, delivery.start_request.fence),
            run,
            delivery.start_request.fence,
            delivery.record,
            delivery.lane,
            pool,
            work.get("payload"),
            work.get("timeout_seconds") or 3600.0,
            work.get("retry") or {},
        )
        if "delivery" in work:
            attempt.delivery = DeliverySemantics(work["delivery"])
        if "deadline_seconds" in work:
            attempt.deadline_seconds = work["deadline_seconds"]
            attempt.timeout_seconds = min(attempt.timeout_seconds, attempt.age().left_seconds)
        return attempt

    def is_stop_requested(self) -> bool:
        """Tell whether somebody cancelled the run."""
        return self.stop_requested

    def ensure_extras(self) -> OutcomeExtras:
        """Return what the attempt leaves besides its outcome, to add to it."""
        if self.extras is None:
            with _extras_lock:
                self.extras = self.extras or OutcomeExtras()
        return self.extras

    def retry_policy(self) -> RetryPolicy:
        """Return the run's retry policy, read only when an attempt failed."""
        return _policy(orjson.dumps(self.retry, option=orjson.OPT_SORT_KEYS))

    def age(self) -> Age:
        """Return how far the run is from its instant, by the database's clock at its start and ours since."""
        begun = (self.run.started_at - self.run.scheduled_for).total_seconds()
        return Age(
            begun + time.monotonic() - self.taken_at,
            self.deadline_seconds,
            counts=self.run.origin != Origin.BACKFILL,
        )


_extras_lock = threading.Lock()
"""Held for a moment where an attempt leaves something for the first time: its handler may have threads."""


@lru_cache(maxsize=1024)
def _policy(stored: bytes) -> RetryPolicy:
    return RetryPolicy.of(orjson.loads(stored))
