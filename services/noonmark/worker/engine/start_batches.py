"""How many runs of each start batch are still in hand; the batch row goes with the last of them."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Iterable, Sequence

from noonmark.store.database.row_types import StartedRun
from noonmark.store.runs.finish import Outcome


class StartBatches:
    """Counts per start batch. Written by the engine at starts and by the recorder after commits."""

    def __init__(self) -> None:
        self._left: Counter[int] = Counter()
        self._lock = threading.Lock()

    def started(self, runs: Iterable[StartedRun]) -> None:
        """Count runs that were just started."""
        with self._lock:
            self._left.update(run.batch_id for run in runs)

    def would_end(self, outcomes: Sequence[Outcome]) -> list[int]:
        """Return the batches whose last runs these outcomes are."""
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
        """Return the batches with runs in hand."""
        with self._lock:
            return set(self._left)

    def clear(self) -> None:
        """Forget all: the lease is lost."""
        with self._lock:
            self._left.clear()
