"""From a run in hand to what its handler is told."""

from __future__ import annotations

from datetime import timedelta

from noonmark.handlers import Context
from noonmark.worker.effects import AttemptEffects
from noonmark.worker.hand import Hand
from noonmark.worker.services import Services


def context_of(hand: Hand, services: Services | None = None) -> Context:
    """Make the context of one attempt; without services for those that need its facts alone."""
    run = hand.run
    return Context(
        run_id=run.id,
        job_id=run.job_id,
        namespace=run.namespace,
        attempt=run.attempt,
        scheduled_for=run.scheduled_for,
        fence=hand.fence,
        payload=hand.payload,
        deadline=run.started_at + timedelta(seconds=hand.timeout_seconds),
        origin=run.origin,
        request_id=run.request_id,
        traceparent=None if hand.trace is None else hand.trace.context.traceparent,
        _unwanted=hand.is_unwanted,
        _effects=AttemptEffects(hand, services) if services is not None else None,
    )
