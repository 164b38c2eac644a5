"""What the effects of all attempts of a worker work with."""

from __future__ import annotations

from dataclasses import dataclass

from noonmark.attempts.emitter import Emitter
from noonmark.attempts.notes import NoteWriter
from noonmark.attempts.secrets import SecretResolver


@dataclass(frozen=True, slots=True)
class Services:
    """Made once, in `main`.

    Attributes:
        secrets: of jobs.
        notes: takes progress and checkpoints.
        emitter: takes events.
    """

    secrets: SecretResolver
    notes: NoteWriter
    emitter: Emitter
