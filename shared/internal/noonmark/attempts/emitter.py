"""Events that attempts emit, put among what their outcome takes along."""

from __future__ import annotations

import threading
from collections.abc import Iterable
from datetime import UTC
from typing import Final

from noonmark.attempts.running_attempt import RunningAttempt
from noonmark.core.kinds.emitted_event import (
    MAX_EVENT_BYTES,
    MAX_EVENTS,
    EmitRefusedError,
    Event,
    check_allowed,
    check_topic,
)
from noonmark.handlers import Context
from noonmark.store.outcomes.emitted_events import EmittedEvent

EVENT_TYPE: Final = "noonmark.event.emitted.v1"


class Emitter:
    """Takes events of attempts, under the operator's rules.

    Args:
        allowed: topics that jobs may write to: names, or beginnings of names that end in `*`.
        prefix: of noonmark's own topics, which jobs never write to.
    """

    def __init__(self, allowed: Iterable[str], prefix: str) -> None:
        self._allowed = tuple(allowed)
        self._prefix = prefix
        self._lock = threading.Lock()

    def emit(self, attempt: RunningAttempt, event: Event) -> str:
        """Keep an event that is sent if and only if the attempt is recorded as succeeded.

        Returns:
            Its id: of the run and of its place among the run's events.

        Raises:
            EmitRefusedError: it may not be sent, or is too much; nothing is kept of it.
        """
        topic = check_topic(event.topic, self._prefix)
        check_allowed(topic, self._allowed)
        # Handlers may have threads, and an event's place among the others is its name.
        with self._lock:
            return self._keep(attempt, topic, event)

    def _keep(self, attempt: RunningAttempt, topic: str, event: Event) -> str:
        emits = attempt.ensure_extras().emits
        if len(emits) >= MAX_EVENTS:
            raise EmitRefusedError(f"an attempt may emit {MAX_EVENTS} events, and this is one more")
        event_id = f"{attempt.run.id}/{len(emits)}"
        headers = {**_own_headers(attempt, event_id), "content-type": event.content_type}
        for name, text in event.headers.items():
            # A content type of the job's own replaces ours; no other name of ours can be given.
            headers["content-type" if name.lower() == "content-type" else name] = text
        kept = EmittedEvent(topic, event.key, event.value, tuple(headers.items()))
        if sum(one.size for one in emits) + kept.size > MAX_EVENT_BYTES:
            raise EmitRefusedError(f"the events of an attempt may have {MAX_EVENT_BYTES} bytes together")
        emits.append(kept)
        return event_id


def _own_headers(attempt: RunningAttempt, event_id: str) -> dict[str, str]:
    """Name run and event to receivers: CloudEvents in binary mode, and the names HTTP targets are given."""
    run = attempt.run
    context = Context(
        run.id,
        run.job_id,
        run.namespace,
        run.attempt,
        run.scheduled_for,
        attempt.fence,
        origin=run.origin,
        request_id=run.request_id,
    )
    return {
        "ce_specversion": "1.0",
        "ce_id": event_id,
        "ce_source": f"/noonmark/{run.namespace}/jobs/{run.job_id}",
        "ce_type": EVENT_TYPE,
        "ce_time": run.started_at.astimezone(UTC).isoformat().replace("+00:00", "Z"),
        "noonmark-run-id": str(run.id),
        "noonmark-fence": str(attempt.fence),
        "noonmark-idempotency-key": context.idempotency_key,
    }
