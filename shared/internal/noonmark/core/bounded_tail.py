"""The end of a stream, bounded in bytes."""

from __future__ import annotations

import threading
from collections import deque

TAIL_BYTES = 64 * 1024
"""The bytes that are kept of each stream of an attempt."""


class Tail:
    """Keeps the last bytes that were added; thread-safe."""

    def __init__(self, limit: int = TAIL_BYTES) -> None:
        """Start empty.

        Args:
            limit: the most bytes that are kept.
        """
        self._limit = limit
        self._parts: deque[bytes] = deque()
        self._size = 0
        self._dropped = 0
        self._lock = threading.Lock()

    @property
    def dropped(self) -> int:
        """The number of dropped bytes before the kept ones."""
        return self._dropped

    def add(self, data: bytes) -> None:
        """Append; the oldest bytes beyond the limit are dropped."""
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
        """Return the kept text; bytes that are not UTF-8, such as half a character, become U+FFFD."""
        with self._lock:
            return b"".join(self._parts).decode("utf-8", "replace")
