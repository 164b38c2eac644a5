"""The open streams of logs: how many there are, and how often each one reads the database."""

from __future__ import annotations

import threading
from collections import Counter
from typing import Final

_POLL_SECONDS: Final = 0.5
_POLLS_PER_SECOND: Final = 50
"""Most reads of all streams together in each second."""


class TooManyFollowers(Exception):  # noqa: N818 - the name says what is the case
    """The process, or the credential, has the maximum number of streams of logs.

    Attributes:
        own: the streams of the credential, if these are too many.
    """

    def __init__(self, own: int | None = None) -> None:
        """Create the error."""
        super().__init__("too many streams of logs are open")
        self.own = own


class LogFollowers:
    """Counts the open streams of logs. Thread-safe."""

    def __init__(self, *, most: int) -> None:
        """Create it without streams.

        Args:
            most: most streams at once; one credential can have three quarters of them.
        """
        self._most = most
        self._lock = threading.Lock()
        self._open: Counter[str] = Counter()
        self.closed = False
        """Whether the server shuts down: all streams end."""

    @property
    def poll_seconds(self) -> float:
        """The time between two reads of a stream: longer if there are many."""
        return max(_POLL_SECONDS, self._open.total() / _POLLS_PER_SECOND)

    def join(self, principal_id: str) -> None:
        """Count a stream of a credential.

        Raises:
            TooManyFollowers: there are too many.
        """
        with self._lock:
            if self._open.total() >= self._most:
                raise TooManyFollowers
            if (own := self._open[principal_id]) >= -(-self._most * 3 // 4):
                raise TooManyFollowers(own)
            self._open[principal_id] += 1

    def leave(self, principal_id: str) -> None:
        """Count a stream no longer."""
        with self._lock:
            self._open[principal_id] -= 1
            if not self._open[principal_id]:
                del self._open[principal_id]

    def close(self) -> None:
        """End all streams, at their next read."""
        self.closed = True
