"""An attempt of a run on a worker, from the start statement to the recorded outcome."""

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
from noonmark.core.states import DeliverySemantics, Lane, Origin
from noonmark.kafka.consumers.records import Record
from noonmark.kafka.messages import RunMessage, traceparent_of
from noonmark.store.database.row_types import StartedRun
from noonmark.store.outcomes.extras import OutcomeExtras
from noonmark.store.runs.starts import StartRequest


@dataclass(slots=True, eq=False)
class Delivery:
    """A run message that passed its checks, and its Kafka record."""

    start_request: StartRequest
    record: Record
    lane: Lane
    message: RunMessage | None = None
    """The message itself, which must agree with the ledger."""

    def agrees(self, run: StartedRun) -> bool:
        """Return whether the message agrees with the run that the ledger has under this id and fence."""
        said = self.message
        return said is None or (
            said.job_id == run.job_id
            and said.job_version == run.job_version
            and said.namespace == run.namespace
        )


@dataclass(slots=True)
class AttemptTrace:
    """The position of an attempt in the trace of its run.

    Attributes:
        context: the context of its span, which its target receives.
        parent: id of the span of its run message.
        taken: when the worker had started the run, in seconds since 1970.
        ended_at: when the handler ended, in monotonic seconds; 0 before.
    """

    context: TraceContext
    parent: str
    taken: float = field(default_factory=time.time)
    ended_at: float = 0.0

    @classmethod
    def of(cls, message: bytes, run_id: UUID, fence: int) -> AttemptTrace | None:
        """Read the trace context of a run message; None if the run is not traced."""
        text = traceparent_of(message)
        given = parse_traceparent(text) if text is not None else None
        if given is None or not given.sampled:
            return None
        return cls(TraceContext(given.trace_id, span_id_of(run_id, Hop.EXECUTE, fence)), given.span_id)


@dataclass(slots=True, eq=False)
class RunningAttempt:
    """A started run. `key` identifies it in memory: the same run under a higher fence is another attempt."""

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
    """When the handler began, in monotonic seconds; 0 while it waits for a thread."""
    taken_at: float = field(default_factory=time.monotonic)
    """When the reply to the start statement was read, in monotonic seconds."""
    # Only the used parts of `jobs.work` are stored: a dict that lives as long as its run costs the garbage
    # collector more than parsing it.
    delivery: DeliverySemantics = DeliverySemantics.AT_LEAST_ONCE
    """The delivery guarantee of the job."""
    deadline_seconds: float | None = None
    """Time limit of all attempts together, from the run's instant."""
    extras: OutcomeExtras | None = None
    """Log, notes and events of the attempt; part of every outcome that is created for it."""
    stop_requested: bool = False
    """Whether a cancel of the run was requested: the handler sees it, and the verdict will be `cancelled`."""
    redactor: Redactor | None = None
    """Removes the secrets that the attempt has received."""
    checkpoint: bytes | None = None
    """The checkpoint of an earlier attempt, as JSON."""
    trace: AttemptTrace | None = None
    """The position of the attempt in the trace of its run, if the run is traced."""

    @classmethod
    def of(cls, run: StartedRun, delivery: Delivery, pool: str) -> RunningAttempt:
        """Create the attempt of a started run. If its job is gone, it has no work and will be rejected."""
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
        """Return whether a cancel of the run was requested."""
        return self.stop_requested

    def current_redactor(self) -> Redactor | None:
        """Return what removes the secrets that the attempt has received by now."""
        return self.redactor

    def ensure_extras(self) -> OutcomeExtras:
        """Return log, notes and events of the attempt, to add to them."""
        if self.extras is None:
            with _extras_lock:
                self.extras = self.extras or OutcomeExtras()
        return self.extras

    def retry_policy(self) -> RetryPolicy:
        """Return the retry policy of the job, parsed only when an attempt fails."""
        return _policy(orjson.dumps(self.retry, option=orjson.OPT_SORT_KEYS))

    def age(self) -> Age:
        """Return the age of the run: by the database's clock at its start, plus the time since then."""
        begun = (self.run.started_at - self.run.scheduled_for).total_seconds()
        return Age(
            begun + time.monotonic() - self.taken_at,
            self.deadline_seconds,
            counts=self.run.origin != Origin.BACKFILL,
        )


_extras_lock = threading.Lock()
"""Held while the extras of an attempt are created, because its handler can have threads."""


@lru_cache(maxsize=1024)
def _policy(stored: bytes) -> RetryPolicy:
    return RetryPolicy.of(orjson.loads(stored))
