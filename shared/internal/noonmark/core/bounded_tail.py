"""The end of a stream, bounded in bytes."""

from __future__ import annotations

import threading
from collections import deque

TAIL_BYTES = 64 * 1024
"""How much is kept of each stream of an attempt."""


class Tail:
    """Keeps the last bytes of what is added; safe to be added to and read from any thread."""

    def __init__(self, limit: int = TAIL_BYTES) -> None:
        """Start empty.

        Args:
            limit: most bytes kept.
        """
        self._limit = limit
        self._parts: deque[bytes] = deque()
        self._size = 0
        self._dropped = 0
        self._lock = threading.Lock()

    @property
    def dropped(self) -> int:
        """How many bytes before the kept ones are gone."""
        return self._dropped

    def add(self, data: bytes) -> None:
        """Append; the oldest bytes make room."""
        with self._lock:
            self._parts.append(data[-self._limit :])
            self._dropped += max(0, len(data) - self._limit)
            self._size += len(self._parts[-1])
            while self._size > self._limit:
                over = self._size - self._limit
                first = self._parts.popleft()
                if len(first) > over:
                    self._parts.appendleft(first[over:])
                gone = min(over, len(first))
                self._size -= gone
                self._dropped += gone

    def text(self) -> str:
        """Return what is kept; bytes that are no UTF-8, as where a character was cut, become U+FFFD."""
        with self._lock:
            return b"".join(self._parts).decode("utf-8", "replace")
