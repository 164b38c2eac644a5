"""What a handler does through its context, in the worker."""

from __future__ import annotations

from noonmark.attempts.running_attempt import RunningAttempt
from noonmark.attempts.services import Services
from noonmark.core.bounded_tail import TAIL_BYTES
from noonmark.core.kinds.emitted_event import Event
from noonmark.handlers.context import MAX_MESSAGE_CHARS
from noonmark.handlers.effects import Saved
from noonmark.telemetry.logs import get_logger

_log = get_logger()


class AttemptEffects:
    """The effects of one attempt. Nothing is made before it is used: most attempts use none."""

    __slots__ = ("_attempt", "_services")

    def __init__(self, attempt: RunningAttempt, services: Services) -> None:
        """Bind a run in hand to what its worker has."""
        self._attempt = attempt
        self._services = services

    def log(self, line: str) -> None:
        """Keep a line with the attempt, and write it to the worker's log."""
        attempt = self._attempt
        # No more of a line is kept anyway, and the worker's log is not for more.
        line = self._without_secrets(line)[-TAIL_BYTES:]
        attempt.ensure_extras().logged().add(line)
        _log.info(
            "handler_logged",
            message=line,
            run_id=str(attempt.run.id),
            job_id=str(attempt.run.job_id),
            namespace=attempt.run.namespace,
            attempt=attempt.run.attempt,
            fence=attempt.fence,
        )

    def progress(self, fraction: float | None, message: str) -> None:
        """Leave a note of how far the attempt is."""
        cut = len(message) >= MAX_MESSAGE_CHARS
        self._services.notes.progress(self._attempt, fraction, self._without_secrets(message, cut=cut))

    def checkpoint(self, data: bytes) -> Saved:
        """Leave a note for the next attempt."""
        redactor = self._attempt.redactor
        if redactor is not None:
            data = redactor.clean_json(data.decode()).encode()
        return self._services.notes.checkpoint(self._attempt, data)

    def last_checkpoint(self) -> bytes | None:
        """Return the newest checkpoint: of this attempt, else of an earlier one."""
        extras = self._attempt.extras
        if extras is not None and extras.note is not None and extras.note.checkpoint is not None:
            return extras.note.checkpoint
        return self._attempt.checkpoint

    def secret(self, name: str) -> str:
        """Return a secret of the run's namespace."""
        return self._services.secrets.get(self._attempt, name)

    def emit(self, event: Event) -> str:
        """Keep an event among what the outcome takes along."""
        return self._services.emitter.emit(self._attempt, event)

    def _without_secrets(self, text: str, *, cut: bool = False) -> str:
        redactor = self._attempt.redactor
        return text if redactor is None else redactor.clean(text, cut=cut)
