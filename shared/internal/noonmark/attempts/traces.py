"""Sends the spans of an attempt: `execute`, then `outcome` until the outcome is recorded."""

from __future__ import annotations

import time

from noonmark.attempts.running_attempt import RunningAttempt
from noonmark.core.monitoring.trace_context import Hop, SpanKind, TraceContext, span_id_of
from noonmark.service.run_traces import about
from noonmark.store.runs.finish import Outcome
from noonmark.telemetry.span_attributes import ERROR_TYPE, of_message
from noonmark.telemetry.tracing import Tracer, wall_clock


def record_spans(tracer: Tracer, attempt: RunningAttempt, outcome: Outcome, *, group: str) -> None:
    """Send the spans of an attempt whose outcome is recorded; `group` received its message."""
    trace, run = attempt.trace, attempt.run
    assert trace is not None
    now = time.time()
    ended = wall_clock(trace.ended_at) if trace.ended_at else now
    record = attempt.record
    facts = {
        **about(run.id, run.job_id),
        **of_message("process", record.topic, partition=record.partition, offset=record.offset, group=group),
        "noonmark.namespace": run.namespace,
        "noonmark.lane": attempt.lane.label,
        "noonmark.pool": attempt.pool,
        "noonmark.kind": run.kind or "",
        "noonmark.attempt": run.attempt,
        "noonmark.fence": attempt.fence,
        "noonmark.outcome": outcome.attempt_outcome.value,
    }
    failed = outcome.attempt_outcome.value if outcome.error is not None else None
    if failed is not None:
        facts[ERROR_TYPE] = failed
    began = wall_clock(attempt.began_at) if attempt.began_at else trace.taken
    tracer.record(
        Hop.EXECUTE,
        trace.context,
        kind=SpanKind.CONSUMER,
        parent=trace.parent,
        began=began,
        ended=ended,
        attributes=facts,
        # The text of the error can contain data that belongs only in the ledger.
        error=failed,
    )
    tracer.record(
        Hop.OUTCOME,
        TraceContext(trace.context.trace_id, span_id_of(run.id, Hop.OUTCOME, attempt.fence)),
        kind=SpanKind.INTERNAL,
        parent=trace.context.span_id,
        began=ended,
        ended=now,
        attributes={**about(run.id, run.job_id), "noonmark.state": outcome.state.value},
    )
