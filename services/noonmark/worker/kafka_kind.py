"""Kafka jobs: one event, committed with the success of the run, so that neither is without the other."""

from __future__ import annotations

from noonmark.core.emit_rules import EmitRefusedError, Event
from noonmark.store.work import Outcome
from noonmark.worker.emitting import Emitter
from noonmark.worker.hand import RunningAttempt
from noonmark.worker.outcomes import NO_RETRY, failed, succeeded
from noonmark.worker.secrets import refuse_references


class KafkaKind:
    """Puts the event of each attempt among what its success takes along; the dispatcher sends it."""

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
        """Nothing to close."""
