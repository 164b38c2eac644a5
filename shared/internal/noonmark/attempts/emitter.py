"""Collects the events that attempts emit; they are sent with the outcome of the attempt."""

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
    """Adds events to attempts, under the operator's rules.

    Args:
        allowed: topics that jobs can write to: names, or prefixes that end in `*`.
        prefix: prefix of noonmark's topics, which jobs can never write to.
    """

    def __init__(self, allowed: Iterable[str], prefix: str) -> None:
        self._allowed = tuple(allowed)
        self._prefix = prefix
        self._lock = threading.Lock()

    def emit(self, attempt: RunningAttempt, event: Event) -> str:
        """Add an event that is sent if and only if the attempt is recorded as succeeded.

        Returns:
            The id of the event: the run id and its position among the events of the run.

        Raises:
            EmitRefusedError: the event may not be sent, or exceeds a limit; it is not added.
        """
        topic = check_topic(event.topic, self._prefix)
        check_allowed(topic, self._allowed)
        # Handlers can have threads, and the position of an event is part of its id.
        with self._lock:
            return self._keep(attempt, topic, event)

    def _keep(self, attempt: RunningAttempt, topic: str, event: Event) -> str:
        emits = attempt.ensure_extras().emits
        if len(emits) >= MAX_EVENTS:
            raise EmitRefusedError(f"an attempt can emit at most {MAX_EVENTS} events, and this is one more")
        event_id = f"{attempt.run.id}/{len(emits)}"
        headers = {**_own_headers(attempt, event_id), "content-type": event.content_type}
        for name, text in event.headers.items():
            # A content type of the job replaces ours; it cannot set any other header of ours.
            headers["content-type" if name.lower() == "content-type" else name] = text
        kept = EmittedEvent(topic, event.key, event.value, tuple(headers.items()))
        if sum(one.size for one in emits) + kept.size > MAX_EVENT_BYTES:
            raise EmitRefusedError(
                f"the events of an attempt can have at most {MAX_EVENT_BYTES} bytes in total"
            )
        emits.append(kept)
        return event_id


def _own_headers(attempt: RunningAttempt, event_id: str) -> dict[str, str]:
    """Return the headers that identify run and event: CloudEvents in binary mode, and those of HTTP jobs."""
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
