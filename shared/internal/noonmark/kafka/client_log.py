"""Where librdkafka's own log lines go, and how often equal lines are shown."""

from __future__ import annotations

import logging
import re
import threading
import time
from collections.abc import Callable
from typing import Final

REPEAT_SECONDS: Final = 10.0
"""A line equal to an earlier one is shown again after this time, with the number of suppressed lines."""

_KINDS_KEPT: Final = 500
# What differs between otherwise equal lines: the number of the client, and durations.
_CLIENT_NUMBER: Final = re.compile(r"#(producer|consumer)-\d+")
_DURATION: Final = re.compile(r"\d+ms\b")

Kind = tuple[int, str]


class Repeats(logging.Filter):
    """Suppresses equal lines: a client whose broker is away logs the same line many times a second.

    Args:
        seconds: how long a kind of line is suppressed after it was shown.
        clock: monotonic seconds.
    """

    def __init__(self, seconds: float = REPEAT_SECONDS, clock: Callable[[], float] = time.monotonic) -> None:
        super().__init__()
        self._seconds = seconds
        self._clock = clock
        self._lock = threading.Lock()
        self._shown: dict[Kind, tuple[float, int]] = {}

    def filter(self, record: logging.LogRecord) -> bool:
        """Return whether to show a line; lines below warning are always shown: their level was requested."""
        if record.levelno < logging.WARNING:
            return True
        text = record.getMessage()
        kind = (record.levelno, _DURATION.sub("", _CLIENT_NUMBER.sub("", text)))
        now = self._clock()
        with self._lock:
            shown_at, suppressed = self._shown.get(kind, (None, 0))
            if shown_at is not None and now - shown_at < self._seconds:
                self._shown[kind] = (shown_at, suppressed + 1)
                return False
            self._shown[kind] = (now, 0)
            if len(self._shown) > _KINDS_KEPT:
                self._forget(now)
        if suppressed:
            record.msg, record.args = "%s (%d more like this since)", (text, suppressed)
        return True

    def _forget(self, now: float) -> None:
        """Delete the entries that have expired; if there are none, delete all."""
        recent = {kind: shown for kind, shown in self._shown.items() if now - shown[0] < self._seconds}
        self._shown = recent if len(recent) <= _KINDS_KEPT else {}


CLIENT_LOGGER: Final = logging.getLogger("noonmark.kafka.client")
"""librdkafka's lines; they are delivered whenever a client polls or flushes."""

CLIENT_LOGGER.addFilter(Repeats())
