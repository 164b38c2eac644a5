"""The boundary around users' code: whatever it does, its run gets one outcome."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, Protocol

from noonmark.attempts.context import Services, context_of
from noonmark.attempts.outcomes import cancelled, raised, rejected, succeeded, timed_out, too_late
from noonmark.attempts.printed_output import finish_lines
from noonmark.attempts.redaction import cleaned
from noonmark.attempts.running_attempt import NotBegunError, RunningAttempt
from noonmark.core.states import DeliverySemantics
from noonmark.handlers import Handler, Registry
from noonmark.store.runs.finish import Outcome, keys_of
from noonmark.telemetry.logs import get_logger
from noonmark.telemetry.routed_output import print_for, restore_routes
from noonmark.worker.handlers.coroutines import LoopExecutor
from noonmark.worker.handlers.event_loops import EventLoops
from noonmark.worker.handlers.threads import ThreadExecutor
from noonmark.worker.handlers.transactions import Transactions
from noonmark.worker.in_flight import RunsInFlight
from noonmark.worker.leases.shared_attempts import SharedAttempts
from noonmark.worker.processes.executor import Processes
from noonmark.worker.processes.suspects import LOSSES_BEFORE_ISOLATION

_log = get_logger()

_EXACTLY_ONCE: Final = DeliverySemantics.EXACTLY_ONCE
"""To look up the member of an enum costs as much as a call, for every run."""

_SETTLE_SECONDS = 2.0
_END_SECONDS = 10.0
"""Kinds end their overdue runs themselves, child processes after their grace. After this, we do it."""

_TAKEN_SECONDS = 50.0
"""A run is taken from its worker 60 s past its timeout, so no run may wait that long for a process."""


class OutcomeSink(Protocol):
    """Receives finished outcomes."""

    def __call__(self, outcomes: Sequence[Outcome]) -> None:
        """Take a batch; callable from any thread."""


class Kind(Protocol):
    """Executes attempts of one kind of job, on an event loop of the worker."""

    async def run(self, attempt: RunningAttempt) -> Outcome:
        """Execute one attempt; call its `ensure_may_begin` just before something acts outwardly.

        The task is cancelled when the attempt times out, when the run is cancelled or handed back, and when
        the lease is lost. It must not return before everything of the attempt has stopped, and must not
        swallow the cancellation. Any other exception but `NotBegunError` fails the attempt.
        """

    async def close(self) -> None:
        """Release the resources of the kind; called once no attempt of it runs."""


class Executors:
    """Passes each started run to the executor of its kind, and ends each run once."""

    def __init__(
        self,
        registry: Registry,
        kinds: Mapping[str, Kind],
        processes: Processes,
        sink: OutcomeSink,
        services: Services,
        *,
        threads: int,
        in_flight: RunsInFlight,
        is_lease_live: Callable[[], bool],
        watched: SharedAttempts,
        transactions: Transactions | None = None,
    ) -> None:
        """Create the executors.

        Args:
            registry: the registered handlers.
            kinds: all kinds except Python, by name.
            processes: runs handlers in child processes: those registered for it, and those of runs that were
                lost repeatedly.
            sink: receives outcomes.
            services: what the contexts of handlers use.
            threads: number of sync handlers that can run at once.
            in_flight: the runs in flight; the executors end each of them once.
            is_lease_live: returns whether the worker's lease cannot be over yet.
            watched: attempts on this interpreter, for the heartbeat process.
            transactions: executes `exactly_once` runs; without it they are rejected.
        """
        self._transactions = transactions
        self._registry = registry
        self._kinds = kinds
        self._processes = processes
        self._sink = sink
        self._services = services
        self._in_flight = in_flight
        self._is_lease_live = is_lease_live
        self._unbegun: dict[Any, RunningAttempt] = {}
        self._watched = watched
        self.threads = ThreadExecutor(threads, self._run_sync, self._ended)
        self.handlers = EventLoops(self._await_handler, self._ended)
        # A separate loop: no handler can block the code that stops children and calls other systems.
        self.kinds = LoopExecutor(self._run_kind, self._ended, self._close_kinds)

    @property
    def kind_names(self) -> Sequence[str]:
        """The kinds of jobs that can be executed."""
        return sorted({*self._kinds, "python"})

    def submit(self, attempts: Sequence[RunningAttempt]) -> None:
        """Begin a batch of started runs."""
        for_threads: list[RunningAttempt] = []
        for_loop: list[RunningAttempt] = []
        for_kinds: list[RunningAttempt] = []
        refused: list[Outcome] = []
        may_begin, find, exactly_once = self._may_begin, self._registry.get, _EXACTLY_ONCE
        for attempt in attempts:
            run = attempt.run
            handler = find(run.handler) if run.handler else None
            attempt.may_begin, attempt.handler = may_begin, handler
            # Nearly all are such runs, and what can be said against others costs each of them several calls.
            if (
                handler is not None
                and handler.run == "thread"
                and not (run.losses or attempt.unreadable or "max_age_seconds" in attempt.retry)
                and attempt.deadline_seconds is None
                and attempt.delivery is not exactly_once
            ):
                for_threads.append(attempt)
            elif (refusal := self._refusal(attempt, handler)) is not None:
                refused.append(refusal)
            elif handler is None or handler.run == "process" or _is_suspect(attempt):
                for_kinds.append(attempt)
            else:
                (for_loop if handler.run == "loop" else for_threads).append(attempt)
        self._in_flight.open([*for_threads, *for_loop, *for_kinds])
        if for_threads:
            self.threads.submit(for_threads)
        if for_loop:
            self.handlers.submit(for_loop)
        if for_kinds:
            self.kinds.submit(for_kinds)
        if refused:
            self._sink(refused)

    def cancel(self, keys: Sequence[Any]) -> None:
        """Stop runs whose cancel was requested. A sync handler must check `ctx.cancelled` and return."""
        for key in keys:
            if (attempt := self._in_flight.find_open(key)) is not None:
                attempt.stop_requested = True
        self._cancel(keys, verdict=True)

    def abandon(self) -> None:
        """Drop all runs: the lease is lost, and nothing that still runs may be recorded."""
        self.threads.withdraw()
        keys = self._in_flight.end_all()
        self._unbegun.clear()
        self._services.notes.forget(keys)
        self._cancel(keys, verdict=False)

    def withdraw(self) -> list[RunningAttempt]:
        """Return the runs that have not begun; a drain hands them back at once."""
        return [*self.threads.withdraw(), *self._processes.waiting.values(), *self.unbegun()]

    def unbegun(self) -> list[RunningAttempt]:
        """Return runs that did not begin because the lease may have been over, until they are handed back."""
        for key, attempt in list(self._unbegun.items()):
            if key in self._in_flight:
                attempt.began_at = 0.0
            else:
                self._unbegun.pop(key, None)
        return list(self._unbegun.values())

    def waiting_too_long(self, now: float) -> list[RunningAttempt]:
        """Return runs that have waited too long for a process: another worker should execute them."""
        most = _TAKEN_SECONDS - self._processes.grace_seconds
        waiting = list(self._processes.waiting.values())
        return [
            attempt
            for attempt in waiting
            if now - attempt.taken_at > most and self._in_flight.is_open(attempt)
        ]

    def children(self) -> list[RunningAttempt]:
        """Return runs that are executed by child processes."""
        running = list(self.kinds.running.values())
        return [
            attempt
            for attempt in running
            if attempt.run.kind in _BY_CHILDREN and self._in_flight.is_open(attempt)
        ]

    def are_ending(self, keys: Sequence[Any]) -> bool:
        """Return whether a released run still executes on the loop of the kinds."""
        return any(map(self.kinds.holds, keys))

    def kill_children(self) -> None:
        """Kill all children now, and give no child a grace from now on."""
        self.kinds.call(self._processes.kill_all)

    def save_notes(self) -> None:
        """Write progress and checkpoints of running handlers while this worker still owns their runs."""
        self._services.notes.settle(_SETTLE_SECONDS)

    def release(self, keys: Sequence[Any]) -> list[RunningAttempt]:
        """Release runs that are handed back; nothing of them is recorded. Return those still open."""
        unfinished = [attempt for attempt in self._in_flight.end(keys) if attempt is not None]
        self._services.notes.forget(keys)
        self._cancel(keys, verdict=False)
        return unfinished

    def end_overdue(self, now: float) -> None:
        """Time out runs whose handlers, or blocked loops, do not end them."""
        on_threads = [
            attempt
            for attempt in list(self.threads.running.values())
            if now - attempt.began_at > attempt.timeout_seconds and self._claim(attempt)
        ]
        if on_threads:
            # The threads cannot be stopped: others replace them, so that the slots stay usable.
            self.threads.replace_stuck(on_threads)
        slack = self._processes.grace_seconds + _END_SECONDS
        others = [*self.handlers.overdue(now), *self.kinds.overdue(now, slack)]
        stuck = on_threads + [attempt for attempt in others if self._claim(attempt)]
        if stuck:
            self._sink([self._attempt_left(attempt, timed_out(attempt)) for attempt in stuck])
            handlers = sorted({str(attempt.run.handler) for attempt in stuck})
            _log.warning("handlers_overdue", count=len(stuck), handlers=handlers)

    def close(self) -> None:
        """Stop the executors."""
        self.threads.close()
        self.handlers.close()
        self.kinds.close()
        self._services.notes.close()
        if self._transactions is not None:
            self._transactions.close()

    def _cancel(self, keys: Sequence[Any], *, verdict: bool) -> None:
        self.handlers.cancel(keys, verdict=verdict)
        self.kinds.cancel(keys, verdict=verdict)

    def _ended(self, outcomes: Sequence[Outcome]) -> None:
        """Pass on the outcomes of runs that were not timed out, handed back or dropped meanwhile."""
        own = []
        attempts = self._in_flight.end(keys_of(outcomes))
        for attempt, outcome in zip(attempts, outcomes, strict=True):
            if attempt is not None:
                plain = attempt.extras is None and attempt.redactor is None and attempt.trace is None
                own.append(outcome if plain else self._attempt_left(attempt, outcome))
        if own:
            self._sink(own)

    def _attempt_left(self, attempt: RunningAttempt, outcome: Outcome) -> Outcome:
        """Complete an outcome: notes and output are written with it, not separately, without secrets."""
        if attempt.extras is not None and attempt.extras.note is not None:
            self._services.notes.forget([attempt.key])
        if attempt.trace is not None:
            attempt.trace.ended_at = time.monotonic()
            outcome.traceparent = attempt.trace.context.traceparent
        if attempt.extras is not None and attempt.extras.log is not None:
            attempt.extras.log.move(attempt.current_redactor, final=True)
        return outcome if attempt.redactor is None else cleaned(outcome, attempt.redactor)

    def _may_begin(self, attempt: RunningAttempt) -> bool:
        # In this order: a run that is still open was not dropped with an earlier lease, so the lease that was
        # live a moment ago is the one under which it was started.
        return self._is_lease_live() and self._in_flight.is_open(attempt)

    def _withhold(self, attempt: RunningAttempt) -> None:
        """Keep a run that may not begin until the engine hands it back, unless it has ended already."""
        if self._in_flight.is_open(attempt):
            self._unbegun[attempt.key] = attempt

    def _claim(self, attempt: RunningAttempt) -> bool:
        """Claim the end of a run for the caller; False if it has ended already."""
        return self._in_flight.end([attempt.key]) != [None]

    def _refusal(self, attempt: RunningAttempt, handler: Handler | None) -> Outcome | None:
        """Return the outcome of a run that is not executed here; None if it is."""
        if attempt.unreadable:
            return rejected(attempt, attempt.unreadable)
        if (late := too_late(attempt)) is not None:
            return late
        exactly_once = attempt.delivery is _EXACTLY_ONCE
        if exactly_once and (why := self._no_transaction(attempt, handler)):
            return rejected(attempt, why)
        if handler is None and attempt.run.kind not in self._kinds:
            return rejected(attempt, _why_refused(attempt, self._registry))
        return None

    def _no_transaction(self, attempt: RunningAttempt, handler: Handler | None) -> str | None:
        """Return why this worker cannot give a run a transaction with its outcome; None if it can."""
        if attempt.run.kind == "kafka" or (attempt.run.kind == "python" and handler is None):
            return None  # its events are committed with the outcome anyway; see `_why_refused`
        if attempt.run.kind != "python" or self._transactions is None:
            return f"exactly_once works only for Python handlers on threads, not for {attempt.run.kind!r}"
        if handler is not None and handler.run != "thread":
            where = "in a process" if handler.run == "process" else "on the event loop"
            return (
                f"exactly_once works only for handlers on threads, but {handler.name!r} runs {where}; make "
                "it a plain function that runs on a thread, or use at_least_once with ctx.idempotency_key"
            )
        return None

    def _run_sync(self, attempt: RunningAttempt) -> Outcome | None:
        # Each call counts here: the handlers of short runs take less time than this function.
        if attempt.stop_requested:
            return cancelled(attempt)
        if not self._may_begin(attempt):
            self._withhold(attempt)
            return None
        handler = attempt.handler
        assert handler is not None
        place = self._watched.enter(attempt)
        print_for(attempt)
        try:
            context = context_of(attempt, self._services)
            if self._transactions is not None and attempt.delivery is _EXACTLY_ONCE:
                return self._transactions.run(
                    attempt, context, handler.function, self._claim, self._attempt_left
                )
            return succeeded(attempt, handler.function(context))
        except BaseException as error:  # noqa: BLE001 - SystemExit of a handler must not end its thread
            return raised(attempt, error)
        finally:
            restore_routes()
            if attempt.extras is not None:
                finish_lines(attempt)
            self._watched.leave(place)

    async def _await_handler(self, attempt: RunningAttempt) -> Outcome | None:
        handler = attempt.handler
        assert handler is not None
        if not self._may_begin(attempt):
            self._withhold(attempt)
            return None
        place = self._watched.enter(attempt)
        print_for(attempt)
        try:
            outcome = succeeded(attempt, await handler.function(context_of(attempt, self._services)))
        except asyncio.CancelledError:
            raise
        except BaseException as error:  # noqa: BLE001 - see _run_sync
            # A TimeoutError here is the handler's own: the attempt's limit cancels instead.
            outcome = raised(attempt, error)
        finally:
            restore_routes()
            if attempt.extras is not None:
                finish_lines(attempt)
            self._watched.leave(place)
        return outcome

    async def _run_kind(self, attempt: RunningAttempt) -> Outcome | None:
        try:
            # Kinds check again when they send a request or start a process, which can be much later.
            attempt.ensure_may_begin()
            kind = self._kinds.get(attempt.run.kind or "")
            if kind is not None:
                return await kind.run(attempt)
            context = context_of(attempt, self._services)
            return await self._processes.run(attempt, context, suspect=_is_suspect(attempt))
        except asyncio.CancelledError:
            raise
        except NotBegunError:
            self._withhold(attempt)
            return None
        except BaseException as error:  # noqa: BLE001 - see _run_sync
            return raised(attempt, error, unknown=True)

    async def _close_kinds(self) -> None:
        for kind in self._kinds.values():
            await kind.close()
        await self._processes.close()


_BY_CHILDREN = frozenset({"python", "script"})
"""Kinds whose runs on the loop of the kinds are child processes."""


def _is_suspect(attempt: RunningAttempt) -> bool:
    """Return whether a run was lost so often that it must run in a child; one in a transaction cannot."""
    return attempt.run.losses >= LOSSES_BEFORE_ISOLATION and attempt.delivery is not _EXACTLY_ONCE


def _why_refused(attempt: RunningAttempt, registry: Registry) -> str:
    run = attempt.run
    if run.kind is None:
        return "the job of this run does not exist any more"
    if run.kind != "python":
        return f"this worker does not support the kind {run.kind!r}"
    known = ", ".join(registry.names()[:10]) or "none: start the worker with --handlers MODULE"
    return f"no handler is registered as {run.handler!r} in this worker; registered: {known}"
