"""Async handlers on a loop of their own: limits, cancels with and without a verdict, batches."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Iterator

import pytest
from tests.unit.worker.hands import hand, success

from noonmark.attempts.running_attempt import RunningAttempt
from noonmark.core.states import AttemptOutcome, RunState
from noonmark.store.runs.finish import Outcome
from noonmark.worker.handlers.coroutines import LoopExecutor, _LoopClock

PATIENCE = 60


class Loop:
    """An executor whose handlers do what the name of the run's handler says."""

    def __init__(self) -> None:
        self.began = threading.Semaphore(0)
        self.ended: list[str | None] = []
        self.outcomes: list[Outcome] = []
        self.batches: list[int] = []
        self.closed_on: list[int] = []
        self.execute_on: set[int] = set()
        self._all = threading.Condition()
        self.news, self.free = asyncio.Event(), threading.Event()
        self.executor = LoopExecutor(self._execute, self._done, self._closing)

    async def _execute(self, held: RunningAttempt) -> Outcome | None:
        self.execute_on.add(threading.get_ident())
        self.began.release()
        try:
            if held.run.handler == "sleeps":
                await asyncio.sleep(PATIENCE)
            if held.run.handler == "waits":
                await self.news.wait()
            if held.run.handler == "blocks":
                self.free.wait(PATIENCE)
            if held.run.handler == "stutters":
                while True:
                    threading.Event().wait(0.3)
                    await asyncio.sleep(0)
            if held.run.handler == "cancels itself":
                raise asyncio.CancelledError
            if held.run.handler == "ends elsewhere":
                return None
            if held.run.handler == "clings":
                try:
                    await asyncio.sleep(PATIENCE)
                except asyncio.CancelledError:
                    await asyncio.sleep(0)
                    return success(held)
            return success(held)
        finally:
            self.ended.append(held.run.handler)

    def _done(self, outcomes) -> None:
        with self._all:
            self.outcomes += outcomes
            self.batches.append(len(outcomes))
            self._all.notify_all()

    async def _closing(self) -> None:
        self.closed_on.append(threading.get_ident())

    def wait_for(self, count: int) -> None:
        with self._all:
            assert self._all.wait_for(lambda: len(self.outcomes) >= count, PATIENCE)

    def settle(self) -> None:
        """Let the loop do all that it was told until now."""
        for _ in range(5):
            asyncio.run_coroutine_threadsafe(asyncio.sleep(0), self.executor._loop).result(PATIENCE)


@pytest.fixture
def loop() -> Iterator[Loop]:
    loop = Loop()
    yield loop
    loop.executor.close()


def test_a_batch_of_runs_gives_batches_of_outcomes(loop):
    batch = [hand(handler="fast") for _ in range(500)]
    loop.executor.submit(batch)
    loop.wait_for(500)

    assert {o.run.id for o in loop.outcomes} == {held.run.id for held in batch}
    assert len(loop.batches) < 50
    assert len(loop.execute_on) == 1
    assert threading.get_ident() not in loop.execute_on
    assert all(held.began_at > 0 for held in batch)


def test_a_slow_run_does_not_hold_up_the_others(loop):
    loop.executor.submit([hand(handler="sleeps"), hand(handler="fast")])
    loop.wait_for(1)

    assert [o.run.handler for o in loop.outcomes] == ["fast"]


def test_a_run_past_its_limit_is_cancelled_and_timed_out(loop):
    slow = hand(handler="sleeps", timeout_seconds=0.05)
    loop.executor.submit([slow])
    loop.wait_for(1)

    (outcome,) = loop.outcomes
    assert outcome.attempt_outcome is AttemptOutcome.TIMED_OUT
    assert outcome.error == "timed out after 0.05 s"
    assert loop.ended == ["sleeps"]


def test_the_time_in_which_another_run_blocked_the_loop_does_not_count(loop):
    beside = hand(handler="waits", timeout_seconds=2.0)
    loop.executor.submit([beside])
    assert loop.began.acquire(timeout=PATIENCE)
    loop.executor.submit([hand(handler="blocks")])
    assert loop.began.acquire(timeout=PATIENCE)
    began_at = beside.began_at
    while time.monotonic() < began_at + 1.5 * beside.timeout_seconds:
        assert not loop.free.wait(0.05)
    loop.free.set()
    loop.settle()
    # It was postponed by what was blocked, within its bound, and still ends on its own.
    assert loop.outcomes[0].run.handler == "blocks"
    assert began_at < beside.began_at <= began_at + beside.timeout_seconds
    loop.executor.call(loop.news.set)
    loop.wait_for(2)
    assert {o.run.handler: o.state for o in loop.outcomes}["waits"] is RunState.SUCCEEDED


def test_a_run_that_has_just_ended_does_not_keep_the_timeouts_of_others_from_being_postponed(loop):
    over = hand(handler="waits")
    left = threading.Event()

    async def leave() -> None:
        async with asyncio.timeout(PATIENCE) as limit:
            await asyncio.sleep(0)
        # As between the end of a handler and the callbacks of its task.
        loop.executor._clocks[over.key] = _LoopClock(asyncio.get_running_loop(), limit)
        loop.executor.running[over.key] = over
        left.set()

    beside = hand(handler="waits", timeout_seconds=2.0)
    loop.executor.submit([beside])
    assert loop.began.acquire(timeout=PATIENCE)
    began_at = beside.began_at
    loop.executor.call(lambda: asyncio.ensure_future(leave()))
    assert left.wait(PATIENCE)
    for _ in range(2):
        loop.executor.submit([hand(handler="blocks")])
        assert loop.began.acquire(timeout=PATIENCE)
        blocked_at = time.monotonic()
        while time.monotonic() < blocked_at + 0.6 * beside.timeout_seconds:
            assert not loop.free.wait(0.05)
        loop.free.set()
        loop.settle()
        loop.free.clear()
    # In the second block, too: without it, 2.4 s of 2 would have passed.
    assert beside.began_at > began_at + 0.6 * beside.timeout_seconds
    loop.executor.call(loop.news.set)
    loop.wait_for(3)
    assert {o.run.handler: o.state for o in loop.outcomes}["waits"] is RunState.SUCCEEDED
    loop.executor.running.pop(over.key)


def test_a_run_that_blocks_the_loop_again_and_again_still_ends(loop):
    held = hand(handler="stutters", timeout_seconds=0.6)
    loop.executor.submit([held])
    loop.wait_for(1)
    assert loop.outcomes[0].attempt_outcome is AttemptOutcome.TIMED_OUT


def test_a_run_that_a_user_cancelled_ends_with_that_verdict(loop):
    doomed, other = hand(handler="sleeps"), hand(handler="sleeps")
    loop.executor.submit([doomed, other])
    for _ in range(2):
        assert loop.began.acquire(timeout=PATIENCE)

    loop.executor.cancel([doomed.key], verdict=True)
    loop.wait_for(1)

    (outcome,) = loop.outcomes
    assert (outcome.run.id, outcome.state) == (doomed.run.id, RunState.CANCELLED)
    assert len(loop.ended) == 1


def test_a_run_that_was_abandoned_ends_without_a_verdict(loop):
    doomed = hand(handler="sleeps")
    loop.executor.submit([doomed])
    assert loop.began.acquire(timeout=PATIENCE)

    loop.executor.cancel([doomed.key], verdict=False)
    loop.settle()

    assert loop.outcomes == []
    assert loop.ended == ["sleeps"]
    assert loop.executor._tasks == {}


@pytest.mark.parametrize("verdict", [True, False])
def test_a_run_that_is_cancelled_before_its_first_step_is_not_forgotten(loop, verdict):
    doomed = hand(handler="sleeps")
    held = threading.Event()
    # The loop is busy, so that it sees the batch and the cancel together.
    loop.executor._loop.call_soon_threadsafe(held.wait, PATIENCE)
    loop.executor.submit([doomed])
    loop.executor.cancel([doomed.key], verdict=verdict)
    held.set()
    loop.settle()

    assert [o.state for o in loop.outcomes] == ([RunState.CANCELLED] if verdict else [])
    assert loop.executor._tasks == {}
    assert loop.executor._to_cancel == set()


def test_a_cancellation_that_nobody_asked_for_is_a_failure_of_the_handler(loop):
    loop.executor.submit([hand(handler="cancels itself")])
    loop.wait_for(1)

    (outcome,) = loop.outcomes
    assert (outcome.state, outcome.attempt_outcome) == (RunState.RETRYING, AttemptOutcome.FAILED)
    assert "CancelledError" in (outcome.error or "")


def test_a_handler_that_clings_to_its_run_may_finish_it(loop):
    clinging = hand(handler="clings")
    loop.executor.submit([clinging])
    assert loop.began.acquire(timeout=PATIENCE)

    loop.executor.cancel([clinging.key], verdict=True)
    loop.wait_for(1)

    assert [o.state for o in loop.outcomes] == [RunState.SUCCEEDED]
    loop.settle()
    assert loop.executor._to_cancel == set()


def test_cancelling_what_is_over_or_unknown_does_nothing(loop):
    fast = hand(handler="fast")
    loop.executor.submit([fast])
    loop.wait_for(1)

    loop.executor.cancel([fast.key, ("nobody", 1)], verdict=True)
    loop.settle()

    assert len(loop.outcomes) == 1
    assert loop.executor._to_cancel == set()


def test_a_run_that_somebody_else_ended_is_told_by_nobody(loop):
    loop.executor.submit([hand(handler="ends elsewhere"), hand(handler="fast")])
    loop.wait_for(1)
    loop.settle()

    assert [o.run.handler for o in loop.outcomes] == ["fast"]


def test_closing_cancels_what_runs_and_closes_its_client_on_the_loop():
    loop = Loop()
    loop.executor.submit([hand(handler="sleeps")])
    assert loop.began.acquire(timeout=PATIENCE)

    loop.executor.close()

    assert not loop.executor._thread.is_alive()
    assert set(loop.closed_on) == loop.execute_on
    assert loop.outcomes == []
    assert loop.ended == ["sleeps"]
