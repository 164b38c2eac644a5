"""Executes one attempt of a handler in memory, with the code of the worker.

The context, the rules of its methods, the removal of secrets, and the retry rule are those of a worker.
Nothing is written to Postgres.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future
from contextlib import nullcontext
from dataclasses import dataclass, field
from datetime import datetime
from functools import wraps
from typing import TYPE_CHECKING, Any, Final, ParamSpec, TypeVar, cast
from uuid import UUID, uuid4

import orjson
from msgspec.structs import replace

from noonmark.attempts.context import Services, context_of
from noonmark.attempts.emitter import Emitter
from noonmark.attempts.notes import NoteWriter
from noonmark.attempts.outcomes import raised, succeeded, timed_out
from noonmark.attempts.redaction import cleaned
from noonmark.attempts.running_attempt import RunningAttempt
from noonmark.attempts.secrets import SecretError, SecretResolver
from noonmark.core.attempt_key import attempt_key
from noonmark.core.retry import RetryPolicy
from noonmark.core.states import DeliverySemantics, Lane
from noonmark.handlers import Context, Handler, Registry, Saved
from noonmark.handlers.registry import REGISTRY
from noonmark.kafka.consumers.records import Record
from noonmark.store.database.row_types import StartedRun
from noonmark.store.outcomes.emitted_events import EmittedEvent
from noonmark.store.outcomes.notes import Note
from noonmark.store.runs.finish import Outcome
from noonmark.testing.clocks import VirtualClock

if TYPE_CHECKING:
    import psycopg

P = ParamSpec("P")
T = TypeVar("T")

_TOPIC_PREFIX: Final = "noonmark"


@dataclass(frozen=True, slots=True)
class Progress:
    """Progress that a handler reported: the share of the work (None if unknown), and a message."""

    fraction: float | None
    message: str


@dataclass(frozen=True, slots=True)
class HandlerResult:
    """The outcome of an attempt.

    Attributes:
        state: of the run after the attempt: succeeded, retrying, dead, cancelled, discarded, or unknown.
        outcome: of the attempt: succeeded, failed, timed_out, snoozed or cancelled.
        value: what the handler returned, as JSON values.
        reason: why the run is dead, cancelled or discarded, as in the ledger.
        error: what went wrong, for people, without the secrets that the handler received.
        exception: what the handler raised; None if it returned.
        retry_in: seconds until the next attempt; None if there is none.
        progress: all reported progress, in order.
        checkpoints: all stored checkpoints, in order.
        emitted: events that are sent to Kafka; empty unless the attempt succeeded.
        logs: lines of `ctx.log`, as stored with the attempt.
    """

    state: str
    outcome: str
    value: Any = None
    reason: str | None = None
    error: str | None = None
    exception: BaseException | None = None
    retry_in: float | None = None
    progress: tuple[Progress, ...] = ()
    checkpoints: tuple[Any, ...] = ()
    emitted: tuple[EmittedEvent, ...] = ()
    logs: tuple[str, ...] = ()

    @property
    def checkpoint(self) -> Any:
        """The newest checkpoint; None if the attempt stored none."""
        return self.checkpoints[-1] if self.checkpoints else None


@dataclass(slots=True)
class _Attempt:
    """One attempt, ready to begin."""

    handler: Handler
    attempt: RunningAttempt
    context: Context
    notes: _Notes

    def run(self) -> HandlerResult:
        """Execute it: a plain function directly, an async one on a new event loop."""
        if self.handler.is_async:
            return asyncio.run(self.run_async())
        return self._result(*self._call())

    async def run_async(self) -> HandlerResult:
        """Execute it from an event loop: a plain function on a thread, as in a worker."""
        if self.handler.is_async:
            return self._result(*await self._await())
        return self._result(*await asyncio.to_thread(self._call))

    def _call(self) -> tuple[Outcome, BaseException | None]:
        """Call a plain function; its exceptions fail the attempt, except those that stop the tests."""
        try:
            return succeeded(self.attempt, self.handler.function(self.context)), None
        except (Exception, SystemExit) as error:  # noqa: BLE001 - whatever a handler raises is an outcome
            return raised(self.attempt, error), error

    async def _await(self) -> tuple[Outcome, BaseException | None]:
        limit = asyncio.timeout(self.attempt.timeout_seconds)
        try:
            async with limit:
                value = await self.handler.function(self.context)
            return succeeded(self.attempt, value), None
        except (Exception, SystemExit) as error:  # noqa: BLE001 - see _call
            # A TimeoutError of the handler itself is a failure like any other.
            return (timed_out(self.attempt) if limit.expired() else raised(self.attempt, error)), error

    def _result(self, outcome: Outcome, error: BaseException | None) -> HandlerResult:
        if self.attempt.redactor is not None:
            outcome = cleaned(outcome, self.attempt.redactor)
            if self.attempt.extras is not None and self.attempt.extras.log is not None:
                self.attempt.extras.log.move(self.attempt.current_redactor, final=True)
        return _result_of(outcome, error, self.notes)


def _attempt_of(
    handler: Callable[[Context], Any] | Handler | str,
    payload: Any = None,
    *,
    attempt: int = 1,
    fence: int = 1,
    clock: VirtualClock | None = None,
    scheduled_for: datetime | None = None,
    origin: str = "schedule",
    namespace: str = "default",
    run_id: UUID | None = None,
    job_id: UUID | None = None,
    retry: RetryPolicy | None = None,
    timeout_seconds: float = 3600.0,
    deadline_seconds: float | None = None,
    delivery: str = "at_least_once",
    checkpoint: Any = None,
    secrets: Mapping[str, str] | None = None,
    emit_topics: Sequence[str] = ("*",),
    transaction: psycopg.Connection | None = None,
    cancelled: bool = False,
) -> _Attempt:
    """Execute one attempt of a handler, sync or async, and return its outcome.

    Args:
        handler: the function, or the name of a registered handler.
        payload: payload of the job: JSON values.
        attempt: 1 for the first try; decides with `retry` whether another one follows.
        fence: fence of the run.
        clock: returns the time at which the attempt begins.
        scheduled_for: the due instant; by default the time of the clock.
        origin: schedule, manual, backfill or event.
        namespace: namespace of the job.
        run_id: id of the run; random by default.
        job_id: id of the job; random by default.
        retry: retry policy of the job; by default that of a job without one.
        timeout_seconds: an async handler that takes longer is cancelled, as in a worker.
        deadline_seconds: time limit of all attempts together, from the due instant.
        delivery: at_least_once, at_most_once or exactly_once.
        checkpoint: what an earlier attempt stored.
        secrets: secrets of the namespace, by name.
        emit_topics: topics that the operator allows jobs to write to.
        transaction: the connection that `ctx.transaction()` returns; the test commits or rolls back.
        cancelled: whether a cancel of the run was requested (`ctx.cancelled`).

    Returns:
        The outcome; it contains what the handler raised, which is not raised again.

    Raises:
        HandlerError: the function is not valid as a handler.
        LookupError: no handler is registered under this name.
    """
    found = _handler_of(handler)
    began = (clock or VirtualClock()).now()
    work: dict[str, Any] = {
        # Encoded and decoded as in production, so that a payload that is not JSON fails here.
        "payload": orjson.loads(orjson.dumps(payload)),
        "timeout_seconds": timeout_seconds,
        "retry": (retry or RetryPolicy()).stored(),
        "delivery": DeliverySemantics(delivery),
        "deadline_seconds": deadline_seconds,
    }
    run = replace(
        _started(run_id or uuid4(), job_id or uuid4(), scheduled_for or began, began),
        origin=origin,
        namespace=namespace,
        attempt=attempt,
        handler=found.name,
    )
    record = Record("", 0, 0, 0, None, b"", 0)
    running = RunningAttempt(attempt_key(run.id, fence), run, fence, record, Lane.NORMAL, "default", **work)
    running.timeout_seconds = min(running.timeout_seconds, running.age().left_seconds)
    running.stop_requested = cancelled
    running.checkpoint = None if checkpoint is None else orjson.dumps(checkpoint)
    notes = _Notes()
    emitter = Emitter(emit_topics, _TOPIC_PREFIX)
    services = Services(_Secrets(secrets or {}), cast("NoteWriter", notes), emitter)
    context = context_of(running, services)
    if transaction is not None:
        context.bind_transaction(lambda: nullcontext(transaction))
    return _Attempt(found, running, context, notes)


def _started(run_id: UUID, job_id: UUID, scheduled_for: datetime, began: datetime) -> StartedRun:
    return StartedRun(
        id=run_id,
        scheduled_for=scheduled_for,
        job_id=job_id,
        job_version=1,
        origin="schedule",
        request_id="",
        namespace="default",
        lane=int(Lane.NORMAL),
        attempt=1,
        losses=0,
        holds_slot=False,
        started_at=began,
        shard=0,
        kind="python",
        handler=None,
        work=None,
        batch_id=0,
    )


def _named(name: str, begin: Callable[P, _Attempt], run: Callable[[_Attempt], T]) -> Callable[P, T]:
    """Create a function with the arguments of `begin` and the result of `run`."""

    @wraps(begin)
    def call(*args: P.args, **kwargs: P.kwargs) -> T:
        return run(begin(*args, **kwargs))

    call.__name__ = call.__qualname__ = name
    return call


run_handler = _named("run_handler", _attempt_of, _Attempt.run)
run_handler_async = _named("run_handler_async", _attempt_of, _Attempt.run_async)
"""For tests that run on an event loop: `await run_handler_async(...)`."""


def _handler_of(handler: Callable[[Context], Any] | Handler | str) -> Handler:
    """Find the handler, or create it from a function.

    Raises:
        HandlerError: the function is not valid as a handler.
        LookupError: no handler is registered under this name.
    """
    if isinstance(handler, Handler):
        return handler
    if isinstance(handler, str):
        found = REGISTRY.get(handler)
        if found is None:
            known = ", ".join(REGISTRY.names()) or "none; import the module that registers it"
            raise LookupError(f"no handler is registered as {handler!r}; registered: {known}")
        return found
    registered = next((one for one in REGISTRY if one.function is handler), None)
    # A function that is not registered, or is defined inside a test, is checked as well.
    return registered or Registry().add(handler, name="handler.under.test")


def _result_of(outcome: Outcome, error: BaseException | None, notes: _Notes) -> HandlerResult:
    extras = outcome.extras
    sent = extras is not None and outcome.state == "succeeded"
    return HandlerResult(
        state=outcome.state.value,
        outcome=outcome.attempt_outcome.value,
        value=None if outcome.result is None else orjson.loads(outcome.result),
        reason=outcome.reason,
        error=outcome.error,
        exception=error,
        retry_in=outcome.retry_seconds if outcome.state == "retrying" else None,
        progress=tuple(notes.reported),
        checkpoints=tuple(orjson.loads(kept) for kept in notes.kept),
        emitted=tuple(extras.emits) if extras is not None and sent else (),
        logs=_lines(extras.log.lines.text()) if extras is not None and extras.log is not None else (),
    )


def _lines(text: str) -> tuple[str, ...]:
    return tuple(text.removesuffix("\n").split("\n")) if text else ()


@dataclass(slots=True)
class _Notes:
    """Stores the notes of an attempt in memory, in place of the `NoteWriter`."""

    reported: list[Progress] = field(default_factory=list)
    kept: list[bytes] = field(default_factory=list)

    def progress(self, running: RunningAttempt, fraction: float | None, message: str) -> None:
        """Add a progress."""
        del running
        self.reported.append(Progress(fraction, message))

    def checkpoint(self, running: RunningAttempt, data: bytes) -> Saved:
        """Add a checkpoint; it is safe at once."""
        self.kept.append(data)
        extras = running.ensure_extras()
        extras.note = extras.note or Note(running.run, running.fence)
        extras.note.checkpoint = data
        done: Future[None] = Future()
        done.set_result(None)
        return Saved(lambda: done)


class _Secrets(SecretResolver):
    """Resolves the secrets of a test."""

    def __init__(self, given: Mapping[str, str]) -> None:
        super().__init__(None, {})
        self._given = given

    def _from_file(self, namespace: str, name: str) -> str | None:
        del namespace
        return self._given.get(name)


__all__ = ["HandlerResult", "Progress", "SecretError", "run_handler", "run_handler_async"]
