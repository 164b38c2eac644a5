"""What a handler does through its context, in the worker."""

from __future__ import annotations

from noonmark.core.emit_rules import Event
from noonmark.core.tail import TAIL_BYTES
from noonmark.handlers.context import MAX_MESSAGE_CHARS
from noonmark.handlers.effects import Saved
from noonmark.telemetry.logs import get_logger
from noonmark.worker.hand import Hand
from noonmark.worker.services import Services

_log = get_logger()


class AttemptEffects:
    """The effects of one attempt. Nothing is made before it is used: most attempts use none."""

    __slots__ = ("_hand", "_services")

    def __init__(self, hand: Hand, services: Services) -> None:
        """Bind a run in hand to what its worker has."""
        self._hand = hand
        self._services = services

    def log(self, line: str) -> None:
        """Keep a line with the attempt, and write it to the worker's log."""
        hand = self._hand
        # No more of a line is kept anyway, and the worker's log is not for more.
        line = self._without_secrets(line)[-TAIL_BYTES:]
        hand.leave().logged().add(line)
        _log.info(
            "handler_logged",
            message=line,
            run_id=str(hand.run.id),
            job_id=str(hand.run.job_id),
            namespace=hand.run.namespace,
            attempt=hand.run.attempt,
            fence=hand.fence,
        )

    def progress(self, fraction: float | None, message: str) -> None:
        """Leave a note of how far the attempt is."""
        cut = len(message) >= MAX_MESSAGE_CHARS
        self._services.notes.progress(self._hand, fraction, self._without_secrets(message, cut=cut))

    def checkpoint(self, data: bytes) -> Saved:
        """Leave a note for the next attempt."""
        redactor = self._hand.redactor
        if redactor is not None:
            data = redactor.clean_json(data.decode()).encode()
        return self._services.notes.checkpoint(self._hand, data)

    def last_checkpoint(self) -> bytes | None:
        """Return the newest checkpoint: of this attempt, else of an earlier one."""
        extras = self._hand.extras
        if extras is not None and extras.note is not None and extras.note.checkpoint is not None:
            return extras.note.checkpoint
        return self._hand.checkpoint

    def secret(self, name: str) -> str:
        """Return a secret of the run's namespace."""
        return self._services.secrets.get(self._hand, name)

    def emit(self, event: Event) -> str:
        """Keep an event among what the outcome takes along."""
        return self._services.emitter.emit(self._hand, event)

    def _without_secrets(self, text: str, *, cut: bool = False) -> str:
        redactor = self._hand.redactor
        return text if redactor is None else redactor.clean(text, cut=cut)
