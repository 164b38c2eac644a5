"""Runs in flight: started by this worker, and not recorded yet.

The engine adds and removes them, the executors end each of them once, and the recorder asks what is left of
each start batch. All of it can be called from any thread.
"""

from __future__ import annotations

import threading
from collections.abc import Iterable, Sequence
from typing import Any
from uuid import UUID

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
        batches: the runs in flight of each start batch.
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
        """Remove and return a run that is recorded; None if it is not in flight."""
        return self._runs.pop(key, None)

    def hand_back(self, attempts: Sequence[RunningAttempt]) -> None:
        """Remove runs that are queued again."""
        for attempt in attempts:
            self._runs.pop(attempt.key, None)
        self.batches.handed_back(attempt.run for attempt in attempts)

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
    """The runs in flight of each start batch: the last one deletes the batch's row.

    A run may leave its batch twice: it is handed back while the recorder has its outcome, which is refused.
    """

    def __init__(self) -> None:
        self._left: dict[int, set[UUID]] = {}
        self._lock = threading.Lock()

    def started(self, runs: Iterable[StartedRun]) -> None:
        """Add runs that were just started."""
        with self._lock:
            for run in runs:
                self._left.setdefault(run.batch_id, set()).add(run.id)

    def would_end(self, outcomes: Sequence[Outcome]) -> list[int]:
        """Return the batches whose last runs have these outcomes.

        A batch of a lost lease is never one of them. Its row must stay until the runs whose outcomes were
        dropped are queued again, even if the recorder still writes outcomes that it took before.
        """
        ending: dict[int, set[UUID]] = {}
        for outcome in outcomes:
            ending.setdefault(outcome.run.batch_id, set()).add(outcome.run.id)
        with self._lock:
            return [b for b, runs in ending.items() if b in self._left and self._left[b] <= runs]

    def ended(self, outcomes: Iterable[Outcome]) -> None:
        """Remove runs whose outcomes are committed."""
        self._remove(outcome.run for outcome in outcomes)

    def handed_back(self, runs: Iterable[StartedRun]) -> None:
        """Remove runs that are queued again; the row of the last is deleted when the engine reconciles."""
        self._remove(runs)

    def known(self) -> set[int]:
        """Return the batches with runs in flight."""
        with self._lock:
            return set(self._left)

    def clear(self) -> None:
        """Forget all batches: the lease is lost."""
        with self._lock:
            self._left.clear()

    def _remove(self, runs: Iterable[StartedRun]) -> None:
        with self._lock:
            for run in runs:
                left = self._left.get(run.batch_id, set())
                left.discard(run.id)
                if not left:
                    self._left.pop(run.batch_id, None)
