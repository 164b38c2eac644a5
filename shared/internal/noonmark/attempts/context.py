"""From a run in hand to what its handler is told."""

from __future__ import annotations

from datetime import timedelta

from noonmark.attempts.effects import AttemptEffects
from noonmark.attempts.running_attempt import RunningAttempt
from noonmark.attempts.services import Services
from noonmark.handlers import Context


def context_of(attempt: RunningAttempt, services: Services | None = None) -> Context:
    """Make the context of one attempt; without services for those that need its facts alone."""
    run = attempt.run
    return Context(
        run_id=run.id,
        job_id=run.job_id,
        namespace=run.namespace,
        attempt=run.attempt,
        scheduled_for=run.scheduled_for,
        fence=attempt.fence,
        payload=attempt.payload,
        deadline=run.started_at + timedelta(seconds=attempt.timeout_seconds),
        origin=run.origin,
        request_id=run.request_id,
        traceparent=None if attempt.trace is None else attempt.trace.context.traceparent,
        _unwanted=attempt.is_stop_requested,
        _effects=AttemptEffects(attempt, services) if services is not None else None,
    )
