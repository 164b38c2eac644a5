"""One boundary around users' code: whatever it does, the run gets an outcome."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from datetime import timedelta
from typing import Any, Protocol

from noonmark.handlers import Context, Handler, Registry
from noonmark.store.work import Outcome
from noonmark.telemetry.logs import get_logger
from noonmark.worker.coroutines import LoopExecutor
from noonmark.worker.hand import Hand
from noonmark.worker.http import HttpExecutor
from noonmark.worker.isolation import LOSSES_BEFORE_ISOLATION, Isolation
from noonmark.worker.outcomes import describe, failed, rejected, succeeded, timed_out
from noonmark.worker.threads import ThreadExecutor

_log = get_logger()


class OutcomeSink(Protocol):
    """Where finished outcomes go."""

    def __call__(self, outcomes: Sequence[Outcome]) -> None:
        """Take a batch; callable from any thread."""


class Executors:
    """Sends each started run to the executor of its kind, and sees that each is ended once."""

    def __init__(
        self, registry: Registry, http: HttpExecutor, isolation: Isolation, sink: OutcomeSink, *, threads: int
    ) -> None:
        """Make the executors.

        Args:
            registry: the operator's handlers.
            http: makes HTTP calls.
            isolation: runs handlers that cost workers their lives, in children.
            sink: takes outcomes.
            threads: most sync handlers at once.
        """
        self._registry = registry
        self._http = http
        self._isolation = isolation
        self._sink = sink
        self._open: dict[Any, Hand] = {}
        self.threads = ThreadExecutor(threads, self._run_sync, self._ended)
        self.loop = LoopExecutor(self._run_async, self._ended, http.close)

    def submit(self, hands: Sequence[Hand]) -> None:
        """Begin a batch of started runs."""
        for_threads: list[Hand] = []
        for_loop: list[Hand] = []
        refused: list[Outcome] = []
        for hand in hands:
            handler = self._registry.get(hand.run.handler) if hand.run.handler else None
            if hand.run.kind == "http":
                for_loop.append(hand)
            elif handler is not None:
                alone = hand.run.losses >= LOSSES_BEFORE_ISOLATION
                (for_loop if handler.is_async and not alone else for_threads).append(hand)
            else:
                refused.append(rejected(hand, _why_refused(hand, self._registry)))
                continue
            self._open[hand.key] = hand
        if for_threads:
            self.threads.submit(for_threads)
        if for_loop:
            self.loop.submit(for_loop)
        if refused:
            self._sink(refused)

    def cancel(self, keys: Sequence[Any]) -> None:
        """Stop runs that somebody cancelled. A sync handler goes on: its verdict waits for it."""
        self.loop.cancel(keys, verdict=True)

    def abandon(self) -> None:
        """Forget everything: the lease is lost, and nothing that still runs may be recorded."""
        self.threads.withdraw()
        keys = list(self._open)
        self._open.clear()
        self.loop.cancel(keys, verdict=False)

    def release(self, keys: Sequence[Any]) -> None:
        """Forget runs that were handed back: what still runs of them is not recorded."""
        for key in keys:
            self._open.pop(key, None)
        self.loop.cancel(keys, verdict=False)

    def end_overdue(self, now: float) -> None:
        """Give sync handlers past their timeout the outcome that they will not give themselves."""
        overdue = [
            hand
            for hand in list(self.threads.running.values())
            if now - hand.began_at > hand.timeout_seconds and hand.key in self._open
        ]
        stuck = [hand for hand in overdue if self._open.pop(hand.key, None) is not None]
        if stuck:
            # The threads cannot be stopped; others take their place, so that slots stay usable.
            self.threads.replace_stuck(stuck)
            self._sink([timed_out(hand) for hand in stuck])
            handlers = sorted({str(hand.run.handler) for hand in stuck})
            _log.warning("handlers_overdue", count=len(stuck), handlers=handlers)

    def close(self) -> None:
        """End the executors."""
        self.threads.close()
        self.loop.close()

    def _ended(self, outcomes: Sequence[Outcome]) -> None:
        """Pass on the outcomes of runs that nobody else has ended, handed back or abandoned meanwhile."""
        own = [o for o in outcomes if self._open.pop((o.run.id, o.fence), None) is not None]
        if own:
            self._sink(own)

    def _run_sync(self, hand: Hand) -> Outcome:
        assert hand.run.handler is not None
        handler = self._registry.get(hand.run.handler)
        assert handler is not None
        try:
            if hand.run.losses >= LOSSES_BEFORE_ISOLATION:
                outcome = self._isolation.run(hand, _context(hand))
            else:
                outcome = succeeded(hand, handler.function(_context(hand)))
        except BaseException as error:  # noqa: BLE001 - SystemExit of a handler must not end its thread
            outcome = failed(hand, describe(error))
        return outcome

    async def _run_async(self, hand: Hand) -> Outcome:
        try:
            if hand.run.kind == "http":
                outcome = await self._call_http(hand)
            else:
                outcome = await self._await_handler(hand)
        except asyncio.CancelledError:
            raise
        except BaseException as error:  # noqa: BLE001 - see _run_sync
            # A TimeoutError here is the handler's own: the attempt's limit cancels instead.
            outcome = failed(hand, describe(error))
        return outcome

    async def _await_handler(self, hand: Hand) -> Outcome:
        assert hand.run.handler is not None
        handler: Handler | None = self._registry.get(hand.run.handler)
        assert handler is not None
        return succeeded(hand, await handler.function(_context(hand)))

    async def _call_http(self, hand: Hand) -> Outcome:
        result = await self._http.execute(hand.payload, _context(hand), hand.timeout_seconds)
        if result.ok:
            return succeeded(hand, {"status": result.status})
        if result.timed_out:
            return timed_out(hand)
        return failed(hand, result.error or f"answered {result.status}", retryable=not result.refused)


def _context(hand: Hand) -> Context:
    run = hand.run
    return Context(
        run_id=run.id,
        job_id=run.job_id,
        namespace=run.namespace,
        attempt=run.attempt,
        scheduled_for=run.scheduled_for,
        fence=hand.fence,
        payload=hand.payload,
        deadline=run.started_at + timedelta(seconds=hand.timeout_seconds),
        origin=run.origin,
        request_id=run.request_id,
    )


def _why_refused(hand: Hand, registry: Registry) -> str:
    run = hand.run
    if run.kind is None:
        return "the job of this run is gone, and with it what it should do"
    if run.kind != "python":
        return f"this worker does not know the kind {run.kind!r}"
    known = ", ".join(registry.names()[:10]) or "none: start the worker with --handlers MODULE"
    return f"no handler is registered as {run.handler!r} in this worker; registered: {known}"
