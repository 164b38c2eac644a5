"""The context of a handler: the facts about its attempt, and what it can do."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass, field, fields
from datetime import UTC, datetime
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import quote
from uuid import UUID

import orjson
import structlog
from structlog.typing import FilteringBoundLogger

from noonmark.core.kinds.emitted_event import Event
from noonmark.core.states import Origin
from noonmark.handlers.effects import Detached, Effects, Saved
from noonmark.handlers.results import encode_checkpoint

if TYPE_CHECKING:
    import psycopg

MAX_MESSAGE_CHARS: Final = 500
"""Characters of a progress message that are stored."""

_TASK: Final = Origin.TASK.value

OpenTransaction = Callable[[], AbstractContextManager["psycopg.Connection"]]
"""Opens the transaction of an attempt, or another block of it."""


@dataclass(slots=True, eq=False)
class Context:
    """One attempt of one run. Expensive parts are created on demand.

    Attributes:
        run_id: the run; the same for all its attempts.
        job_id: the job of the run.
        namespace: the job's namespace.
        attempt: 1 for the first try.
        scheduled_for: the due instant of the run, in UTC.
        fence: rises every time the run is queued; pass it to systems that can refuse an older one.
        payload: the job's payload, decoded from JSON.
        deadline: when the attempt's timeout ends, in UTC; None without a timeout.
        origin: what created the run: schedule, manual, backfill, task or event.
        request_id: distinguishes runs of one instant; empty for the schedule.
        traceparent: W3C trace context of the attempt, for the handler's spans; None if it is not traced.
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
    traceparent: str | None = None
    _logger: FilteringBoundLogger | None = field(default=None, repr=False)
    _unwanted: Callable[[], bool] | None = field(default=None, repr=False)
    _effects: Effects | None = field(default=None, repr=False)
    _transaction: OpenTransaction | None = field(default=None, repr=False)

    @property
    def effects(self) -> Effects:
        """The implementation of the methods below; outside a worker a `Detached`, which tests can read."""
        if self._effects is None:
            self._effects = Detached()
        return self._effects

    @property
    def cancelled(self) -> bool:
        """Whether a cancel of the run was requested: return soon; the run ends as `cancelled` in any case.

        For plain functions, which cannot be stopped: check it in long loops. Async handlers are cancelled.
        """
        return self._unwanted is not None and self._unwanted()

    @property
    def idempotency_key(self) -> str:
        """The key of the run, the same for every attempt: `<job_id>/<scheduled_for>/<origin>/<request>`.

        The runs that a redrive of a workflow gives a task have the key of its first run: it is the same work.
        Printable ASCII, valid in an HTTP header.
        """
        request = self.request_id
        if self.origin == _TASK:
            request, _, _ = request.rpartition("/")  # what is left out is the generation
        if request:
            request = quote(request, safe="-._~:")
        return f"{self.job_id}/{_instant_text(self.scheduled_for)}/{self.origin}/{request}"

    @property
    def logger(self) -> FilteringBoundLogger:
        """A logger with the ids of the run, created at its first use."""
        if self._logger is None:
            self._logger = structlog.get_logger(
                run_id=str(self.run_id),
                job_id=str(self.job_id),
                namespace=self.namespace,
                attempt=self.attempt,
                fence=self.fence,
            )
        return self._logger

    def facts(self) -> dict[str, Any]:
        """Return the facts by the names of their arguments, to create another context from them."""
        return {name: getattr(self, name) for name in _FACTS}

    def log(self, message: str, **details: object) -> None:
        """Store a line with the attempt, for `noonmark run logs`, and write it to the worker's log.

        The last 64 KB of an attempt are stored. Secrets that the attempt has requested are removed.

        Args:
            message: one line of text.
            details: values that are appended as `name=value`.
        """
        line = " ".join([str(message), *(f"{name}={value}" for name, value in details.items())])
        self.effects.log(line)

    def progress(self, fraction: float | None, message: str = "") -> None:
        """Report the progress of the attempt; cheap enough for a loop, written about once a second.

        Args:
            fraction: finished share of the work, 0 to 1; None if unknown.
            message: what the attempt is doing; at most 500 characters are stored.

        Raises:
            ValueError: the fraction is not between 0 and 1.
        """
        if fraction is not None and not 0 <= fraction <= 1:
            raise ValueError(f"progress {fraction!r} is not between 0 and 1; give the share of the work done")
        self.effects.progress(fraction, str(message)[:MAX_MESSAGE_CHARS])

    def checkpoint(self, value: object) -> Saved:
        """Store how far the work is, so that the next attempt can resume there.

        The newest value wins. It is in the database within about a second, and at the latest with the outcome
        of the attempt. Wait for the returned object if the value must be safe before the next step.

        Args:
            value: JSON of at most 64 KB.

        Raises:
            ResultError: the value is not JSON, or is longer.
        """
        return self.effects.checkpoint(encode_checkpoint(value))

    @property
    def last_checkpoint(self) -> Any:
        """The newest value that an attempt of this run passed to `checkpoint`; None if there is none."""
        kept = self.effects.last_checkpoint()
        return orjson.loads(kept) if kept is not None else None

    def secret(self, name: str) -> str:
        """Return the secret of this name in the run's namespace.

        Raises:
            SecretError: this worker does not have it; the message names it. A retry may find it.
        """
        return self.effects.secret(name)

    def emit(
        self,
        topic: str,
        value: object,
        key: str | bytes | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> str:
        """Send an event to Kafka if, and only if, this attempt is recorded as succeeded.

        Events of one run and key keep their order. An attempt can send at most 100 events and 256 KB.

        Args:
            topic: a topic that the operator allows jobs to write to.
            value: a string or bytes, sent unchanged, or any other value, sent as JSON.
            key: decides the partition; by default the id of the job.
            headers: in addition to those that identify the run.

        Returns:
            The id of the event, the same in every attempt, so that receivers can deduplicate.

        Raises:
            EmitRefusedError: the event may not be sent, or exceeds a limit; it is not added.
        """
        return self.effects.emit(Event.of(topic, value, key, headers))

    def transaction(self) -> AbstractContextManager[psycopg.Connection]:
        """Open the transaction that commits together with the outcome of the run, or not at all.

            with ctx.transaction() as connection:
                connection.execute("insert into invoices ...")

        It is on noonmark's database, opened at the first use and committed once the handler has returned.
        Further blocks are parts of the same transaction; a block that raises is rolled back. The transaction
        ends with the timeout of the attempt. Only for jobs with `delivery: exactly_once`.

        Raises:
            RuntimeError: the job has another delivery, or the attempt has ended.
        """
        if self._transaction is None:
            raise RuntimeError("this run has no transaction; give its job delivery: exactly_once")
        return self._transaction()

    def bind_transaction(self, opens: OpenTransaction) -> None:
        """Set what `transaction` opens; tests of handlers can pass their own connection."""
        self._transaction = opens


@lru_cache(maxsize=1024)
def _instant_text(instant: datetime) -> str:
    """Return an instant as keys have it. Many runs have the same."""
    return instant.astimezone(UTC).isoformat(timespec="microseconds").removesuffix("+00:00") + "Z"


_FACTS: Final = tuple(one.name for one in fields(Context) if not one.name.startswith("_"))
