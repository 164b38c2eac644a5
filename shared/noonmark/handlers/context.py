"""What a handler is told about the run it executes."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any
from urllib.parse import quote
from uuid import UUID

import structlog
from structlog.typing import FilteringBoundLogger


@dataclass(slots=True, eq=False)
class Context:
    """One attempt of one run. Made for every attempt, so everything dear is made on demand.

    Attributes:
        run_id: the run; the same over all its attempts.
        job_id: the job the run belongs to.
        namespace: the job's namespace.
        attempt: 1 for the first try.
        scheduled_for: the due instant this run stands for, in UTC.
        fence: rises with every queueing of the run; give it to systems that can refuse an older one.
        payload: the job's payload, decoded from JSON.
        deadline: when the attempt's timeout ends, in UTC; None without a timeout.
        origin: what asked for the run: schedule, manual, backfill or event.
        request_id: tells runs of one instant apart; empty for the schedule.
    """

    run_id: UUID
    job_id: UUID
    namespace: str
    attempt: int
    scheduled_for: datetime
    fence: int
    payload: Any = None
    deadline: datetime | None = None
    origin: str = "schedule"
    request_id: str = ""
    _logger: FilteringBoundLogger | None = field(default=None, repr=False)

    @property
    def idempotency_key(self) -> str:
        """The run's key, the same at every attempt: `<job_id>/<scheduled_for>/<origin>/<request>`.

        Printable ASCII, fit for an HTTP header.
        """
        instant = self.scheduled_for.astimezone(UTC).isoformat(timespec="microseconds")
        request = quote(self.request_id, safe="-._~:")
        return f"{self.job_id}/{instant.removesuffix('+00:00')}Z/{self.origin}/{request}"

    @property
    def logger(self) -> FilteringBoundLogger:
        """A logger with the run's ids bound, made at its first use."""
        if self._logger is None:
            self._logger = structlog.get_logger(
                run_id=str(self.run_id),
                job_id=str(self.job_id),
                namespace=self.namespace,
                attempt=self.attempt,
                fence=self.fence,
            )
        return self._logger
