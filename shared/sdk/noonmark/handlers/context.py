"""What a handler is told about the run it executes."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass, field, fields
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import quote
from uuid import UUID

import orjson
import structlog
from structlog.typing import FilteringBoundLogger

from noonmark.core.kinds.emitted_event import Event
from noonmark.handlers.effects import Detached, Effects, Saved
from noonmark.handlers.results import encode_checkpoint

if TYPE_CHECKING:
    import psycopg

MAX_MESSAGE_CHARS: Final = 500
"""Of what is told with a progress."""

OpenTransaction = Callable[[], AbstractContextManager["psycopg.Connection"]]
"""Opens the transaction of an attempt, or a further block of it."""


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
        traceparent: W3C trace context of the attempt, for spans of the handler's own; None: it is not traced.
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
        """What stands behind the methods below; outside a worker a `Detached`, which tests can look at."""
        if self._effects is None:
            self._effects = Detached()
        return self._effects

    @property
    def cancelled(self) -> bool:
        """Whether somebody cancelled the run: return soon, whatever is done; the run ends as `cancelled`.

        For plain functions, which nobody can stop: ask it in long loops. Async handlers are cancelled.
        """
        return self._unwanted is not None and self._unwanted()

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

    def facts(self) -> dict[str, Any]:
        """Return what it says of the attempt, by the names of its arguments, to make another one of it."""
        return {name: getattr(self, name) for name in _FACTS}

    def log(self, message: str, **details: object) -> None:
        """Keep a line with the attempt, shown by `noonmark run logs`, and write it to the worker's log.

        The last 64 KB of an attempt are kept. Secrets that the attempt has asked for are taken out.

        Args:
            message: one line of text.
            details: what belongs to it, written behind it as `name=value`.
        """
        line = " ".join([str(message), *(f"{name}={value}" for name, value in details.items())])
        self.effects.log(line)

    def progress(self, fraction: float | None, message: str = "") -> None:
        """Show how far the attempt is; cheap enough for a loop, written about once a second.

        Args:
            fraction: of the whole work, 0 to 1; None where it is not known.
            message: what is being done, at most 500 characters of it are kept.

        Raises:
            ValueError: the fraction is not between 0 and 1.
        """
        if fraction is not None and not 0 <= fraction <= 1:
            raise ValueError(f"progress {fraction!r} is not between 0 and 1; give the share of the work done")
        self.effects.progress(fraction, str(message)[:MAX_MESSAGE_CHARS])

    def checkpoint(self, value: object) -> Saved:
        """Keep where the work stands, so that the next attempt can go on from there.

        The newest value wins. It is in the database within about a second, and with the attempt's outcome
        at the latest; wait on what is returned where it must be safe before the next step.

        Args:
            value: JSON of at most 64 KB.

        Raises:
            ResultError: no JSON, or longer.
        """
        return self.effects.checkpoint(encode_checkpoint(value))

    @property
    def last_checkpoint(self) -> Any:
        """The newest value given to `checkpoint` by this run's attempts; None when there is none."""
        kept = self.effects.last_checkpoint()
        return orjson.loads(kept) if kept is not None else None

    def secret(self, name: str) -> str:
        """Return the secret of this name in the run's namespace.

        Raises:
            SecretError: it is not there for this worker; the message names it. A retry may find it.
        """
        return self.effects.secret(name)

    def emit(
        self,
        topic: str,
        value: object,
        key: str | bytes | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> str:
        """Have an event sent to Kafka if, and only if, this attempt is recorded as succeeded.

        Events of one run and key keep their order. At most 100 events and 256 KB together for an attempt.

        Args:
            topic: one that the operator lets jobs write to.
            value: a string or bytes, sent as they stand, or what is sent as JSON.
            key: decides the partition; the job's id by default.
            headers: besides those that name the run.

        Returns:
            The event's id, the same for the same event of a later attempt: receivers tell repetitions by it.

        Raises:
            EmitRefusedError: it may not be sent, or does not fit; nothing is kept of it.
        """
        return self.effects.emit(Event.of(topic, value, key, headers))

    def transaction(self) -> AbstractContextManager[psycopg.Connection]:
        """Open the transaction that commits together with the outcome of the run, or not at all.

            with ctx.transaction() as connection:
                connection.execute("insert into invoices ...")

        It is on noonmark's database, opened at the first use and committed once the handler has returned.
        Further blocks are parts of the same transaction; a block that raises is undone. It ends when the
        attempt's time does. Only for jobs with `delivery: exactly_once`.

        Raises:
            RuntimeError: the job has another delivery, or the attempt is over.
        """
        if self._transaction is None:
            raise RuntimeError("this run has no transaction; give its job delivery: exactly_once")
        return self._transaction()

    def bind_transaction(self, opens: OpenTransaction) -> None:
        """Give the context what `transaction` opens; tests of handlers may give a connection of their own."""
        self._transaction = opens


_FACTS: Final = tuple(one.name for one in fields(Context) if not one.name.startswith("_"))
