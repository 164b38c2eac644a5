"""An attempt of a run on a worker, from the start statement to the recorded outcome."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any, Protocol
from uuid import UUID

import msgspec
import orjson

from noonmark.attempts.redaction import Redactor
from noonmark.core.attempt_key import AttemptKey
from noonmark.core.monitoring.trace_context import Hop, TraceContext, parse_traceparent, span_id_of
from noonmark.core.retry import Age, RetryPolicy, policy_of_row
from noonmark.core.states import DeliverySemantics, Lane, Origin
from noonmark.handlers import Handler
from noonmark.kafka.consumers.records import Record
from noonmark.kafka.messages import QueuedRun, traceparent_of
from noonmark.store.database.row_types import StartedRun
from noonmark.store.outcomes.extras import OutcomeExtras
from noonmark.store.runs.held_runs import FencedRun
from noonmark.store.runs.starts import StartPointer


class Delivery(msgspec.Struct, eq=False):
    """A run of a message that passed its checks, and its Kafka record or its part of one."""

    start_request: StartPointer
    """The message itself says what a start needs: a run of it costs no other object."""
    record: Record
    lane: Lane
    message: QueuedRun | None = None
    """What the message says of the run, which must agree with the ledger."""


def contradicted(deliveries: Mapping[int, Delivery], runs: Iterable[StartedRun]) -> list[StartedRun]:
    """Return the runs whose messages say something else than the ledger has under their id and fence.

    Args:
        deliveries: by run id, as a number.
        runs: as the ledger has them.
    """
    return [
        run
        for run in runs
        if (said := deliveries[run.id.int].message) is not None
        and (
            said.job_id.int != run.job_id.int
            or said.job_version != run.job_version
            or said.namespace != run.namespace
        )
    ]


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


class NotBegunError(Exception):
    """The handler of an attempt may not begin: its worker may have lost its lease, or the run has ended."""


class AttemptClock(Protocol):
    """The timeout of an attempt that an event loop executes. Used on that loop."""

    def hold(self, attempt: RunningAttempt) -> None:
        """Stop the timeout: the attempt waits for something that is not its own work."""

    def start(self, attempt: RunningAttempt) -> None:
        """Start the timeout from the beginning."""


class RunningAttempt(msgspec.Struct, eq=False):
    """A started run. `key` identifies it in memory: the same run under a higher fence is another attempt."""

    key: AttemptKey
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
    taken_at: float = msgspec.field(default_factory=time.monotonic)
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
    rejections: int = 0
    """How many attempts right before this one were rejected, because their workers could not execute them."""
    trace: AttemptTrace | None = None
    """The position of the attempt in the trace of its run, if the run is traced."""
    may_begin: Callable[[RunningAttempt], bool] | None = None
    """Whether the worker still owns the run; set by the executors. Without it there is no lease to check."""
    handler: Handler | None = None
    """The registered handler of a Python job; set by the executors."""
    clock: AttemptClock | None = None
    """Its timeout; None if no event loop executes it."""
    unreadable: str = ""
    """Why this worker cannot read the job of the run, which is then rejected; empty if it can."""
    has_policy: bool = True
    """Whether the job is an object, in which a retry policy can be looked up. Without one, no retry."""

    @classmethod
    def of(cls, run: StartedRun, delivery: Delivery, pool: str) -> RunningAttempt:
        """Create the attempt of a started run. If its job is gone, it has no work and will be rejected.

        One job that cannot be read must not end the worker, and with it all other runs.
        """
        fence, record, lane = delivery.start_request.fence, delivery.record, delivery.lane
        key, work = (run.id.int, fence), None
        attempt: RunningAttempt | None = None
        try:
            work = orjson.loads(run.work) if run.work else {}
            find = work.get
            timeout, retry = float(find("timeout_seconds") or _TIMEOUT_SECONDS), find("retry") or {}
            attempt = cls(key, run, fence, record, lane, pool, find("payload"), timeout, retry)
            if "delivery" in work or "deadline_seconds" in work:
                attempt._read_rare(work)
        except (ValueError, TypeError, AttributeError) as error:
            attempt = attempt or cls(key, run, fence, record, lane, pool, None, _TIMEOUT_SECONDS, {})
            attempt.unreadable = f"this worker cannot read the job of this run: {error}"
            attempt.has_policy = isinstance(work, dict)
        return attempt

    @property
    def fenced_run(self) -> FencedRun:
        """What a statement needs to write to the run, under the fence of this attempt alone."""
        return self.run.id, self.run.scheduled_for, self.fence

    def ensure_may_begin(self) -> None:
        """Check that the run is still this worker's, right before its handler begins or its request is sent.

        Raises:
            NotBegunError: it may be another worker's; nothing of the attempt may be executed or recorded.
        """
        if self.may_begin is not None and not self.may_begin(self):
            raise NotBegunError

    def _read_rare(self, work: dict[str, Any]) -> None:
        """Read the fields that few jobs have."""
        if "delivery" in work:
            self.delivery = DeliverySemantics(work["delivery"])
        if "deadline_seconds" in work:
            self.deadline_seconds = float(work["deadline_seconds"])
            self.timeout_seconds = min(self.timeout_seconds, self.age().left_seconds)

    def is_stop_requested(self) -> bool:
        """Return whether a cancel of the run was requested."""
        return self.stop_requested

    def hold_clock(self) -> None:
        """Stop the timeout while the attempt waits for its worker, before anything of it is executed."""
        if self.clock is not None:
            self.clock.hold(self)

    def start_clock(self) -> None:
        """Start the timeout: what follows is the work of the attempt. The total deadline may shorten it."""
        if self.deadline_seconds is not None:
            self.timeout_seconds = min(self.timeout_seconds, max(0.0, self.age().left_seconds))
        if self.clock is not None:
            self.clock.start(self)

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
        """Return the age of the run: by the database's clock at its start, plus the time since then.

        The instant of a task is that of its workflow run, so its age says nothing about the task.
        """
        begun = (self.run.started_at - (self.run.due_at or self.run.scheduled_for)).total_seconds()
        return Age(
            begun + time.monotonic() - self.taken_at,
            self.deadline_seconds,
            counts=self.run.origin != Origin.BACKFILL,
        )


_TIMEOUT_SECONDS = 3600.0
"""The timeout of a job that sets none."""

_extras_lock = threading.Lock()
"""Held while the extras of an attempt are created, because its handler can have threads."""


@lru_cache(maxsize=1024)
def _policy(stored: bytes) -> RetryPolicy:
    return policy_of_row(orjson.loads(stored))
