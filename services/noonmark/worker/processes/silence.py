"""How long a supervisor has not answered, without the time in which it or the worker had no CPU."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Final

_MOST_SECONDS: Final = 5.0
_STARVED_SHARE: Final = 0.1
"""Of the time of a supervisor that executes or waits for CPU: one that is stopped or hangs does neither."""


class Silence:
    """The time since a question was asked, until anything is heard."""

    def __init__(self, pid: int) -> None:
        """Start with a supervisor that owes no answer.

        Args:
            pid: of the supervisor.
        """
        self._status = Path(f"/proc/{pid}/status")
        self._asked = False
        self._checked_at = 0.0
        self._switches = ""
        self._seconds = 0.0

    def ask(self) -> bool:
        """Note that the supervisor is asked; False if it owes an answer already."""
        if self._asked:
            return False
        self._asked, self._seconds = True, 0.0
        self._checked_at = time.monotonic()
        self._is_executing()
        return True

    def heard(self) -> None:
        """Note that the supervisor answered."""
        self._asked = False

    def wait_more(self, planned_seconds: float) -> None:
        """Count the time since the last check, of which this process may have slept through a part.

        Args:
            planned_seconds: how long this process meant to wait.
        """
        now = time.monotonic()
        passed, self._checked_at = min(now - self._checked_at, 2 * planned_seconds), now
        self._seconds += passed * (_STARVED_SHARE if self._is_executing() else 1)

    def is_too_long(self) -> bool:
        """Return whether the supervisor owes an answer for too long."""
        return self._asked and self._seconds >= _MOST_SECONDS

    def _is_executing(self) -> bool:
        """Return whether the supervisor was given a CPU since the last call, or waits for one."""
        try:
            text = self._status.read_text(encoding="utf-8", errors="replace")
        except OSError:
            return False
        before, self._switches = self._switches, text[text.find("voluntary_ctxt_switches") :]
        return self._switches != before or "\nState:\tR" in text
