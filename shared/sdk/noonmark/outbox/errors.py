"""Errors of enqueueing."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any


class OutboxError(ValueError):
    """The job cannot be enqueued; the message says what to do instead."""


class JobRefusedError(OutboxError):
    """The job document is not valid.

    Attributes:
        errors: every problem found, each with `pointer` (RFC 6901), `message`, and what was `expected`.
    """

    def __init__(self, errors: Sequence[Any]) -> None:
        self.errors = tuple(errors)
        super().__init__("; ".join(map(str, self.errors)))
