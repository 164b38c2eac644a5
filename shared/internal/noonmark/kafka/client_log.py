"""Where librdkafka's own log lines go, and how often the same one is shown."""

from __future__ import annotations

import logging
import re
import threading
import time
from collections.abc import Callable
from typing import Final

REPEAT_SECONDS: Final = 10.0
"""A line that says the same as one before it is shown again after this long, with the number left out."""

_KINDS_KEPT: Final = 500
# What differs between lines that say the same: the number of the client, and how long something took.
_CLIENT_NUMBER: Final = re.compile(r"#(producer|consumer)-\d+")
_DURATION: Final = re.compile(r"\d+ms\b")

Kind = tuple[int, str]


class Repeats(logging.Filter):
    """Lets one of many equal lines through: a client whose broker is away says so many times a second.

    Args:
        seconds: how long a kind of line is silent after it was shown.
        clock: monotonic seconds.
    """

    def __init__(self, seconds: float = REPEAT_SECONDS, clock: Callable[[], float] = time.monotonic) -> None:
        super().__init__()
        self._seconds = seconds
        self._clock = clock
        self._lock = threading.Lock()
        self._shown: dict[Kind, tuple[float, int]] = {}

    def filter(self, record: logging.LogRecord) -> bool:
        """Say whether to show a line; what is below a warning is shown always (somebody asked for it)."""
        if record.levelno < logging.WARNING:
            return True
        text = record.getMessage()
        kind = (record.levelno, _DURATION.sub("", _CLIENT_NUMBER.sub("", text)))
        now = self._clock()
        with self._lock:
            shown_at, left_out = self._shown.get(kind, (None, 0))
            if shown_at is not None and now - shown_at < self._seconds:
                self._shown[kind] = (shown_at, left_out + 1)
                return False
            self._shown[kind] = (now, 0)
            if len(self._shown) > _KINDS_KEPT:
                self._forget(now)
        if left_out:
            record.msg, record.args = "%s (%d more like this since)", (text, left_out)
        return True

    def _forget(self, now: float) -> None:
        """Drop what could be shown again anyway; if that is nothing, everything."""
        recent = {kind: held for kind, held in self._shown.items() if now - held[0] < self._seconds}
        self._shown = recent if len(recent) <= _KINDS_KEPT else {}


CLIENT_LOGGER: Final = logging.getLogger("noonmark.kafka.client")
"""librdkafka's lines; it hands them over whenever a client polls or flushes."""

CLIENT_LOGGER.addFilter(Repeats())
