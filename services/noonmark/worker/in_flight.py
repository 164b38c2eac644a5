"""Runs in flight: started by this worker, and not recorded yet.

The engine adds and removes them, the executors end each of them once, and the recorder counts what is left of
each start batch. All of it can be called from any thread.
"""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Any

from noonmark.attempts.running_attempt import RunningAttempt
from noonmark.store.database.row_types import StartedRun
from noonmark.store.runs.finish import Outcome
from noonmark.telemetry.logs import report_dropped_lines


class RunsInFlight:
    """The registry of runs in flight, by key.

    A run is registered from its start until its outcome is in Postgres. It is open until it is ended by its
    executor, its timeout, a hand-back or a lost lease. Exactly one of them succeeds, because removing a key
    from a dict is atomic; the others find nothing and record nothing.

    Attributes:
        batches: counts the runs in flight of each start batch.
    """

    def __init__(self) -> None:
        self.batches = StartBatches()
        self._runs: dict[Any, RunningAttempt] = {}
        self._open: dict[Any, RunningAttempt] = {}

    def __len__(self) -> int:
        return len(self._runs)

    def __contains__(self, key: Any) -> bool:
        return key in self._runs

    def add(self, attempts: Sequence[RunningAttempt]) -> None:
        """Register runs that were just started."""
        self._runs.update((attempt.key, attempt) for attempt in attempts)
        self.batches.started(attempt.run for attempt in attempts)

    def all(self) -> list[RunningAttempt]:
        """Return all runs in flight."""
        return list(self._runs.values())

    def remove(self, key: Any) -> RunningAttempt | None:
        """Remove and return a run that is recorded or handed back; None if it is not in flight."""
        return self._runs.pop(key, None)

    def clear(self) -> None:
        """Remove all runs and batches: the lease is lost."""
        self.batches.clear()
        self._runs.clear()

    def open(self, attempt: RunningAttempt) -> None:
        """Mark a run as open, before it begins."""
        self._open[attempt.key] = attempt

    def is_open(self, attempt: RunningAttempt) -> bool:
        """Return whether a run has not ended yet."""
        return attempt.key in self._open

    def find_open(self, key: Any) -> RunningAttempt | None:
        """Return a run if it has not ended yet."""
        return self._open.get(key)

    def end(self, key: Any) -> RunningAttempt | None:
        """Claim the end of a run: return the run to one caller, and None to every later one."""
        attempt = self._open.pop(key, None)
        if attempt is not None:
            report_dropped_lines(attempt.run.id, attempt.fence)
        return attempt

    def end_all(self) -> list[Any]:
        """Claim the end of every open run; return their keys."""
        keys = list(self._open)
        self._open.clear()
        return keys


class StartBatches:
    """The number of runs in flight of each start batch: the last one deletes the batch's row."""

    def __init__(self) -> None:
        self._left: Counter[int] = Counter()
        self._lock = threading.Lock()

    def started(self, runs: Iterable[StartedRun]) -> None:
        """Count runs that were just started."""
        with self._lock:
            self._left.update(run.batch_id for run in runs)

    def would_end(self, outcomes: Sequence[Outcome]) -> list[int]:
        """Return the batches whose last runs have these outcomes."""
        ending = Counter(outcome.run.batch_id for outcome in outcomes)
        with self._lock:
            return [batch for batch, count in ending.items() if self._left[batch] <= count]

    def ended(self, outcomes: Iterable[Outcome]) -> None:
        """Count outcomes that are committed."""
        with self._lock:
            for outcome in outcomes:
                batch = outcome.run.batch_id
                self._left[batch] -= 1
                if self._left[batch] <= 0:
                    del self._left[batch]

    def known(self) -> set[int]:
        """Return the batches with runs in flight."""
        with self._lock:
            return set(self._left)

    def clear(self) -> None:
        """Forget all batches: the lease is lost."""
        with self._lock:
            self._left.clear()
