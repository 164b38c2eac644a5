"""How long a process, or one of its helper processes, has been unable to work."""

from __future__ import annotations

import time
from typing import Final

_LONGEST_TURN_SECONDS: Final = 1.0


class Inability:
    """The time since something could last work, as seen by a loop that watches it.

    Only time counts in which the watching loop itself turned: after a pause of the whole process, what it
    watches must get its turn before its last success is judged.
    """

    def __init__(self, most_seconds: float) -> None:
        """Begin as able; `most_seconds`: from when on others should do the work."""
        self.most_seconds = most_seconds
        self._marks = self._seen = 0
        self._seconds = 0.0
        self._turned_at = time.monotonic()

    def mark_able(self) -> None:
        """Record that work was possible; callable from any thread."""
        self._marks += 1

    def is_long(self) -> bool:
        """Return whether nothing was possible for long; called by the watching loop, once a turn."""
        now = time.monotonic()
        turn = min(now - self._turned_at, _LONGEST_TURN_SECONDS)
        self._turned_at = now
        if self._seen != self._marks:
            self._seen, self._seconds = self._marks, 0.0
        else:
            self._seconds += turn
        return self._seconds > self.most_seconds
