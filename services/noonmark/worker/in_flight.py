"""Runs in flight: started by this worker, and not recorded yet.

The engine adds and removes them, the executors end each of them once, and the recorder asks what is left of
each start batch. All of it can be called from any thread.
"""

from __future__ import annotations

import threading
import time
from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from noonmark.attempts.running_attempt import RunningAttempt
from noonmark.core.attempt_key import AttemptKey
from noonmark.core.states import Lane
from noonmark.store.database.row_types import StartedRun
from noonmark.store.runs.finish import Outcome
from noonmark.telemetry.logs import report_dropped_lines


class Load(NamedTuple):
    """The runs of a worker that are in flight, and how fast they end.

    Attributes:
        in_flight: runs that were started and are not recorded yet.
        open: those of them that have not ended: each needs a slot.
        open_lower: those of these that are not of the high lane.
        ended: runs that have ended since the process began.
        busy_seconds: for how long, since then, at least one run was open.
    """

    in_flight: int
    open: int
    open_lower: int
    ended: int = 0
    busy_seconds: float = 0.0


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
        self._runs: dict[AttemptKey, RunningAttempt] = {}
        self._open: dict[AttemptKey, RunningAttempt] = {}
        self._lower = 0
        self._ended = 0
        self._busy_seconds = 0.0
        self._busy_since = 0.0
        self._counting = threading.Lock()

    def load(self) -> Load:
        """Return the current load."""
        with self._counting:
            busy = time.monotonic() - self._busy_since if self._open else 0.0
            return Load(len(self._runs), len(self._open), self._lower, self._ended, self._busy_seconds + busy)

    def __len__(self) -> int:
        return len(self._runs)

    def __contains__(self, key: AttemptKey) -> bool:
        return key in self._runs

    def has_none(self, keys: Iterable[AttemptKey]) -> bool:
        """Return whether none of these is in flight."""
        return self._runs.keys().isdisjoint(keys)

    def add(self, attempts: Sequence[RunningAttempt]) -> None:
        """Register runs that were just started."""
        self._runs.update({attempt.key: attempt for attempt in attempts})
        self.batches.started([attempt.run for attempt in attempts])

    def all(self) -> list[RunningAttempt]:
        """Return all runs in flight."""
        return list(self._runs.values())

    def remove(self, keys: Iterable[AttemptKey]) -> list[RunningAttempt | None]:
        """Remove recorded runs; return each in the order of the keys, or None if it is not in flight."""
        return [self._runs.pop(key, None) for key in keys]

    def hand_back(self, attempts: Sequence[RunningAttempt]) -> None:
        """Remove runs that are queued again."""
        self.remove([attempt.key for attempt in attempts])
        self.batches.handed_back([attempt.run for attempt in attempts])

    def clear(self) -> None:
        """Remove all runs and batches: the lease is lost."""
        self.batches.clear()
        self._runs.clear()

    def open(self, attempts: Sequence[RunningAttempt]) -> None:
        """Mark runs as open, before any of them begins."""
        with self._counting:
            if not self._open:
                self._busy_since = time.monotonic()
            fresh = {attempt.key: attempt for attempt in attempts}
            if not fresh.keys().isdisjoint(self._open):
                attempts = [attempt for key, attempt in fresh.items() if key not in self._open]
            self._lower += _count_lower(attempts)
            self._open.update(fresh)

    def is_open(self, attempt: RunningAttempt) -> bool:
        """Return whether a run has not ended yet."""
        return attempt.key in self._open

    def find_open(self, key: AttemptKey) -> RunningAttempt | None:
        """Return a run if it has not ended yet."""
        return self._open.get(key)

    def end(self, keys: Iterable[AttemptKey]) -> list[RunningAttempt | None]:
        """Claim the ends of runs, in the order of the keys: one caller gets a run, every later one None."""
        with self._counting:
            ended = [self._open.pop(key, None) for key in keys]
            claimed = [attempt for attempt in ended if attempt is not None]
            self._count_ended(claimed)
        report_dropped_lines((attempt.run.id, attempt.fence) for attempt in claimed)
        return ended

    def end_all(self) -> list[AttemptKey]:
        """Claim the end of every open run; return their keys."""
        with self._counting:
            keys = list(self._open)
            ended = list(self._open.values())
            self._open.clear()
            self._count_ended(ended)
        return keys

    def _count_ended(self, attempts: Sequence[RunningAttempt]) -> None:
        """Count runs that were just taken out of the open ones."""
        self._ended += len(attempts)
        self._lower -= _count_lower(attempts)
        if attempts and not self._open:
            self._busy_seconds += time.monotonic() - self._busy_since


def _count_lower(attempts: Iterable[RunningAttempt]) -> int:
    high = Lane.HIGH  # to look it up each time would cost more than the comparison
    return sum([attempt.lane is not high for attempt in attempts])


class StartBatches:
    """The runs in flight of each start batch: the last one deletes the batch's row.

    A run may leave its batch twice: it is handed back while the recorder has its outcome, which is refused.
    """

    def __init__(self) -> None:
        self._left: defaultdict[int, set[int]] = defaultdict(set)
        self._lock = threading.Lock()

    def started(self, runs: Sequence[StartedRun]) -> None:
        """Add runs that were just started."""
        with self._lock:
            for batch, run_ids in _by_batch(runs):
                self._left[batch] |= run_ids

    def would_end(self, outcomes: Sequence[Outcome]) -> list[int]:
        """Return the batches whose last runs have these outcomes.

        A batch of a lost lease is never one of them. Its row must stay until the runs whose outcomes were
        dropped are queued again, even if the recorder still writes outcomes that it took before.
        """
        ending = Counter([outcome.run.batch_id for outcome in outcomes])
        with self._lock:
            left = {batch: self._left[batch] for batch in ending if batch in self._left}
            # Most batches have too many runs left to end, and which these are is not compared.
            near = {batch for batch, run_ids in left.items() if len(run_ids) <= ending[batch]}
            runs = [outcome.run for outcome in outcomes if outcome.run.batch_id in near]
            return [batch for batch, run_ids in _by_batch(runs) if left[batch] <= run_ids]

    def ended(self, outcomes: Iterable[Outcome]) -> None:
        """Remove runs whose outcomes are committed."""
        self._remove([outcome.run for outcome in outcomes])

    def handed_back(self, runs: Sequence[StartedRun]) -> None:
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

    def _remove(self, runs: Sequence[StartedRun]) -> None:
        with self._lock:
            for batch, run_ids in _by_batch(runs):
                if batch in self._left:
                    self._left[batch] -= run_ids
                    if not self._left[batch]:
                        del self._left[batch]


def _by_batch(runs: Sequence[StartedRun]) -> Iterable[tuple[int, set[int]]]:
    """Return the ids of runs, as numbers, by their start batch."""
    batches = {run.batch_id for run in runs}
    if len(batches) == 1:
        return [(batches.pop(), {run.id.int for run in runs})]
    found: defaultdict[int, set[int]] = defaultdict(set)
    for run in runs:
        found[run.batch_id].add(run.id.int)
    return found.items()
