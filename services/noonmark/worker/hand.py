"""A run in a worker's hands, from the start statement to its recorded outcome."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import orjson

from noonmark.core.retry import RetryPolicy
from noonmark.core.words import Lane
from noonmark.kafka.records import Record
from noonmark.store.rows import StartedRun
from noonmark.store.work import Ticket


@dataclass(slots=True, eq=False)
class Delivery:
    """A run message that passed its checks, and the record it came in."""

    ticket: Ticket
    record: Record
    lane: Lane


@dataclass(slots=True, eq=False)
class Hand:
    """A started run. `key` names it in memory: the same run under a higher fence is another one."""

    key: tuple[Any, int]
    run: StartedRun
    fence: int
    record: Record
    lane: Lane
    pool: str
    payload: Any
    timeout_seconds: float
    retry: dict[str, Any]
    began_at: float = 0.0
    """Monotonic seconds when the handler began; 0 while it waits for a thread."""

    @classmethod
    def of(cls, run: StartedRun, delivery: Delivery, pool: str) -> Hand:
        """Take a started run into hand. A run whose job vanished has no work and will be refused."""
        work = orjson.loads(run.work) if run.work else {}
        return cls(
            (run.id, delivery.ticket.fence),
            run,
            delivery.ticket.fence,
            delivery.record,
            delivery.lane,
            pool,
            work.get("payload"),
            work.get("timeout_seconds") or 3600.0,
            work.get("retry") or {},
        )

    def retry_policy(self) -> RetryPolicy:
        """Return the run's retry policy, read only when an attempt failed."""
        return _policy(tuple(sorted(self.retry.items())))


@lru_cache(maxsize=1024)
def _policy(items: tuple[tuple[str, Any], ...]) -> RetryPolicy:
    return RetryPolicy(**dict(items))
