"""Bounds of a process's own log: a flood of one kind of line cannot fill the disk or hide the other lines.

A line of a handler has the ids of its attempt (`run_id` and `fence`). Each attempt has an allowance, and all
attempts of the process share a larger one. Every other event has its own allowance, by its name and logger.
What is above an allowance is dropped and counted, and the counts are logged.
"""

from __future__ import annotations

import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final, NamedTuple

Key = tuple[str, str]
"""Of an attempt its run id and its fence; of another event its name and its logger."""

_REPORTS: Final = frozenset({"attempt_lines_dropped", "log_lines_dropped"})
"""The events that report what was dropped; they are never dropped themselves."""

_QUIET_SECONDS: Final = 10.0
"""Dropped lines of an event are reported this long after the last report of it, with the next line of any."""

_MOST_KEYS: Final = 10_000
"""Allowances that are kept at once; the one that was not used for longest is forgotten first."""


class Limit(NamedTuple):
    """The lines and bytes that may be written at once, and how many more in each second."""

    lines: int
    bytes: int
    lines_per_second: float
    bytes_per_second: float


PER_ATTEMPT: Final = Limit(1_000, 256 * 1024, 10, 4 * 1024)
ALL_ATTEMPTS: Final = Limit(10_000, 4 * 1024 * 1024, 500, 256 * 1024)
PER_EVENT: Final = Limit(1_000, 1024 * 1024, 50, 64 * 1024)


@dataclass(slots=True)
class _Allowance:
    """What is left of a limit. A line can take the bytes below zero: its size is known only afterwards."""

    limit: Limit
    at: float
    lines: float
    bytes: float
    dropped: int = 0
    fields: Mapping[str, Any] = field(default_factory=dict)

    @classmethod
    def of(cls, limit: Limit, now: float) -> _Allowance:
        return cls(limit, now, limit.lines, limit.bytes)

    def refill(self, now: float) -> None:
        seconds, self.at = max(0.0, now - self.at), now
        self.lines = min(self.limit.lines, self.lines + seconds * self.limit.lines_per_second)
        self.bytes = min(self.limit.bytes, self.bytes + seconds * self.limit.bytes_per_second)

    def permits(self) -> bool:
        return self.lines >= 1 and self.bytes > 0


class LogBounds:
    """The allowances of a process. Thread-safe."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        """Start with full allowances; `clock` returns monotonic seconds."""
        self._clock = clock
        self._lock = threading.Lock()
        self._attempts: OrderedDict[Key, _Allowance] = OrderedDict()
        self._events: OrderedDict[Key, _Allowance] = OrderedDict()
        self._all_attempts = _Allowance.of(ALL_ATTEMPTS, clock())
        self._owing: dict[Key, float] = {}

    def admit(self, event: Mapping[str, Any]) -> bool:
        """Return whether a line may be written; count it as dropped otherwise."""
        if event.get("event") in _REPORTS:
            return True
        with self._lock:
            now = self._clock()
            allowances = self._allowances(event, now)
            for allowance in allowances:
                allowance.refill(now)
            own = allowances[0]
            if not all(allowance.permits() for allowance in allowances):
                own.dropped += 1
                if own.dropped == 1:
                    self._first_dropped(event, own, now)
                return False
            for allowance in allowances:
                allowance.lines -= 1
            return True

    def charge(self, event: Mapping[str, Any], size: int) -> None:
        """Charge the bytes of a line that was admitted."""
        if event.get("event") in _REPORTS:
            return
        with self._lock:
            for allowance in self._allowances(event, self._clock()):
                allowance.bytes -= size

    @property
    def knows_attempts(self) -> bool:
        """Whether an attempt that has not ended has written a line."""
        return bool(self._attempts)

    def end_attempt(self, run_id: object, fence: int) -> dict[str, Any] | None:
        """Forget an attempt; return the fields of the line that reports its dropped lines, if any."""
        with self._lock:
            ended = self._attempts.pop((str(run_id), str(fence)), None)
        if ended is None or not ended.dropped:
            return None
        return {**ended.fields, "lines": ended.dropped}

    def due_reports(self) -> list[dict[str, Any]]:
        """Return the fields of the lines that report the dropped lines of other events."""
        if not self._owing:
            return []
        with self._lock:
            now = self._clock()
            due = [key for key, since in self._owing.items() if now - since >= _QUIET_SECONDS]
            return [report for key in due if (report := self._settle(key)) is not None]

    def _allowances(self, event: Mapping[str, Any], now: float) -> list[_Allowance]:
        run_id, fence = event.get("run_id"), event.get("fence")
        if run_id is not None and fence is not None:
            key = (str(run_id), str(fence))
            return [self._find(self._attempts, key, PER_ATTEMPT, now), self._all_attempts]
        return [self._find(self._events, _event_key(event), PER_EVENT, now)]

    def _find(self, known: OrderedDict[Key, _Allowance], key: Key, limit: Limit, now: float) -> _Allowance:
        allowance = known.get(key)
        if allowance is None:
            allowance = known[key] = _Allowance.of(limit, now)
            if len(known) > _MOST_KEYS:
                known.popitem(last=False)
        known.move_to_end(key)
        return allowance

    def _first_dropped(self, event: Mapping[str, Any], own: _Allowance, now: float) -> None:
        if own.limit is PER_ATTEMPT:
            names = ("run_id", "job_id", "namespace", "attempt", "fence")
            own.fields = {name: event[name] for name in names if name in event}
        else:
            self._owing[_event_key(event)] = now

    def _settle(self, key: Key) -> dict[str, Any] | None:
        del self._owing[key]
        allowance = self._events.get(key)
        if allowance is None:
            return None
        dropped, allowance.dropped = allowance.dropped, 0
        name, logger = key
        return {"of": name, **({"of_logger": logger} if logger else {}), "lines": dropped}


def _event_key(event: Mapping[str, Any]) -> Key:
    return str(event.get("event")), str(event.get("logger", ""))
