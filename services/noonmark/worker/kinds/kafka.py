"""Kafka jobs: one event that commits together with the success of the run."""

from __future__ import annotations

from noonmark.attempts.emitter import Emitter
from noonmark.attempts.outcomes import NO_RETRY, failed, succeeded
from noonmark.attempts.running_attempt import RunningAttempt
from noonmark.attempts.secrets import refuse_references
from noonmark.core.kinds.emitted_event import EmitRefusedError, Event
from noonmark.store.runs.finish import Outcome


class KafkaKind:
    """Adds the event of each attempt to its outcome; the dispatcher sends it after the commit."""

    def __init__(self, emitter: Emitter) -> None:
        self._emitter = emitter

    async def run(self, attempt: RunningAttempt) -> Outcome:
        """Emit the event."""
        spec = attempt.payload
        refuse_references(spec, "an event")
        try:
            event = Event.of(spec["topic"], spec["value"], spec.get("key"), spec.get("headers"))
            event_id = self._emitter.emit(attempt, event)
        except EmitRefusedError as error:
            return failed(attempt, f"not sent: {error}", failure=NO_RETRY)
        return succeeded(attempt, {"topic": spec["topic"], "event": event_id})

    async def close(self) -> None:
        """Close nothing."""
