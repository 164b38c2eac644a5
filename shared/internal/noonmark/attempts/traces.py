"""The spans of attempts: `execute`, and `outcome` until it is recorded."""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING
from uuid import UUID

from noonmark.core.monitoring.trace_context import Hop, TraceContext, parse_traceparent, span_id_of
from noonmark.kafka.messages import traceparent_of
from noonmark.service.run_traces import about
from noonmark.telemetry.tracing import Tracer, wall_clock

if TYPE_CHECKING:
    from noonmark.attempts.running_attempt import RunningAttempt
    from noonmark.store.runs.finish import Outcome


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


def record_spans(tracer: Tracer, attempt: RunningAttempt, outcome: Outcome) -> None:
    """Send the spans of an attempt whose outcome is recorded."""
    trace, run = attempt.trace, attempt.run
    assert trace is not None
    now = time.time()
    ended = wall_clock(trace.ended_at) if trace.ended_at else now
    facts = {
        **about(run.id, run.job_id),
        "noonmark.namespace": run.namespace,
        "noonmark.lane": attempt.lane.label,
        "noonmark.pool": attempt.pool,
        "noonmark.kind": run.kind or "",
        "noonmark.attempt": run.attempt,
        "noonmark.fence": attempt.fence,
        "noonmark.outcome": outcome.attempt_outcome.value,
    }
    failed = outcome.attempt_outcome.value if outcome.error is not None else None
    began = wall_clock(attempt.began_at) if attempt.began_at else trace.taken
    tracer.record(
        Hop.EXECUTE,
        trace.context,
        parent=trace.parent,
        began=began,
        ended=ended,
        attributes=facts,
        # The text itself may hold what belongs in the ledger alone.
        error=failed,
    )
    tracer.record(
        Hop.OUTCOME,
        TraceContext(trace.context.trace_id, span_id_of(run.id, Hop.OUTCOME, attempt.fence)),
        parent=trace.context.span_id,
        began=ended,
        ended=now,
        attributes={**about(run.id, run.job_id), "noonmark.state": outcome.state.value},
    )
