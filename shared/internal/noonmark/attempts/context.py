"""The context that a handler receives, and what its methods do in a worker."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import lru_cache

import msgspec

from noonmark.attempts.emitter import Emitter
from noonmark.attempts.notes import NoteWriter
from noonmark.attempts.printed_output import ids_of
from noonmark.attempts.running_attempt import RunningAttempt
from noonmark.attempts.secrets import SecretResolver
from noonmark.core.bounded_tail import TAIL_BYTES
from noonmark.core.kinds.emitted_event import Event
from noonmark.handlers import Context
from noonmark.handlers.context import MAX_MESSAGE_CHARS
from noonmark.handlers.effects import Saved
from noonmark.telemetry.logs import get_logger

_log = get_logger()


@dataclass(frozen=True, slots=True)
class Services:
    """What the effects of all attempts of a worker use.

    Attributes:
        secrets: resolves the secrets of jobs.
        notes: writes progress and checkpoints.
        emitter: collects events.
    """

    secrets: SecretResolver
    notes: NoteWriter
    emitter: Emitter


class AttemptEffects(msgspec.Struct, eq=False):
    """The effects of one attempt. Everything is created at its first use: most attempts use nothing."""

    _attempt: RunningAttempt
    _services: Services
    """What its worker provides."""

    def log(self, line: str) -> None:
        """Add a line to the log of the attempt, and write it to the worker's log."""
        attempt = self._attempt
        # No more of a line is stored, and the worker's log must not contain more either.
        line = self._without_secrets(line)[-TAIL_BYTES:]
        attempt.ensure_extras().logged().add(line)
        _log.info("handler_logged", message=line, **ids_of(attempt))

    def progress(self, fraction: float | None, message: str) -> None:
        """Note how far the attempt is."""
        cut = len(message) >= MAX_MESSAGE_CHARS
        self._services.notes.progress(self._attempt, fraction, self._without_secrets(message, cut=cut))

    def checkpoint(self, data: bytes) -> Saved:
        """Note where the next attempt can resume."""
        redactor = self._attempt.redactor
        if redactor is not None:
            data = redactor.clean_json(data.decode()).encode()
        return self._services.notes.checkpoint(self._attempt, data)

    def last_checkpoint(self) -> bytes | None:
        """Return the newest checkpoint, of this attempt or of an earlier one."""
        extras = self._attempt.extras
        if extras is not None and extras.note is not None and extras.note.checkpoint is not None:
            return extras.note.checkpoint
        return self._attempt.checkpoint

    def secret(self, name: str) -> str:
        """Return a secret of the run's namespace."""
        return self._services.secrets.get(self._attempt, name)

    def emit(self, event: Event) -> str:
        """Add an event to the outcome of the attempt."""
        return self._services.emitter.emit(self._attempt, event)

    def _without_secrets(self, text: str, *, cut: bool = False) -> str:
        redactor = self._attempt.redactor
        return text if redactor is None else redactor.clean(text, cut=cut)


@lru_cache(maxsize=64)
def _deadline(started_at: datetime, timeout_seconds: float) -> datetime:
    """Return when an attempt times out: runs that start together nearly always have one timeout."""
    return started_at + timedelta(seconds=timeout_seconds)


def context_of(attempt: RunningAttempt, services: Services | None = None) -> Context:
    """Create the context of one attempt; without services, it has only the facts about the attempt."""
    run = attempt.run
    # By position: with names it costs twice as much, for every run.
    return Context(
        run.id,
        run.job_id,
        run.namespace,
        run.attempt,
        run.scheduled_for,
        attempt.fence,
        attempt.payload,
        _deadline(run.started_at, attempt.timeout_seconds),
        run.origin,
        run.request_id,
        None if attempt.trace is None else attempt.trace.context.traceparent,
        None,
        attempt.is_stop_requested,
        AttemptEffects(attempt, services) if services is not None else None,
    )
