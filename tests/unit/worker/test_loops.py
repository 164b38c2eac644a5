"""Handlers that block their event loop: what they cost the runs beside them, and what they do not."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterator

import pytest
from tests.unit.worker.bench import PATIENCE, Bench

from noonmark.attempts.running_attempt import RunningAttempt
from noonmark.core.states import AttemptOutcome, RunState


class Doors:
    """Handlers that block until the test opens their door."""

    def __init__(self) -> None:
        self.began = threading.Semaphore(0)
        self.open = threading.Event()


@pytest.fixture
def doors() -> Iterator[Doors]:
    doors = Doors()
    yield doors
    doors.open.set()


@pytest.fixture
def bench(doors: Doors) -> Iterator[Bench]:
    bench = Bench()

    async def blocks(ctx) -> str:
        doors.began.release()
        doors.open.wait(PATIENCE)
        return "late"

    async def clings(ctx) -> str:
        doors.began.release()
        while not doors.open.is_set():
            try:
                await asyncio.sleep(0.001)
            except asyncio.CancelledError:
                continue
        return "late"

    async def quick(ctx) -> int:
        return threading.get_ident()

    def sync(ctx) -> None:
        return None

    for function in (blocks, clings, quick, sync):
        bench.registry.add(function, name=function.__name__)
    yield bench
    doors.open.set()
    bench.executors.close()


def begin(bench: Bench, doors: Doors, name: str) -> RunningAttempt:
    held = bench.begin(name)
    assert doors.began.acquire(timeout=PATIENCE)
    return held


def test_a_blocked_loop_holds_up_neither_threads_nor_other_kinds(bench, doors):
    begin(bench, doors, "blocks")
    assert bench.end(bench.begin("sync")).state is RunState.SUCCEEDED
    kinds = bench.executors.kinds
    assert kinds.blocked_seconds(1.0) == 0  # asks
    bench.wait(lambda: kinds._asked_at is None, "the loop of the kinds to answer")


def test_an_overdue_run_on_a_blocked_loop_is_timed_out_and_the_loop_replaced(bench, doors):
    stuck = begin(bench, doors, "blocks")
    waiting = bench.begin("quick")
    bench.executors.end_overdue(stuck.began_at + 1)  # asks the loop
    bench.executors.end_overdue(stuck.began_at + stuck.timeout_seconds + 2)
    assert bench.end(stuck).attempt_outcome is AttemptOutcome.TIMED_OUT
    # What had not begun moves over, and so does everything new.
    assert bench.end(waiting).state is RunState.SUCCEEDED
    assert bench.end(bench.begin("quick")).state is RunState.SUCCEEDED
    doors.open.set()
    bench.wait(lambda: not bench.executors.handlers._loops[0].running, "the handler to end")
    assert [o.attempt_outcome for o in bench.outcomes if o.run.id == stuck.run.id] == [
        AttemptOutcome.TIMED_OUT
    ]


def test_what_runs_beside_a_blocked_loop_is_not_overdue_for_that_time_but_not_for_ever(bench, doors):
    async def waits(ctx) -> None:
        doors.began.release()
        await asyncio.Event().wait()

    bench.registry.add(waits, name="waits")
    beside = bench.begin("waits", timeout_seconds=20.0)
    assert doors.began.acquire(timeout=PATIENCE)
    stuck = bench.begin("blocks", timeout_seconds=10.0)
    assert doors.began.acquire(timeout=PATIENCE)
    since = stuck.began_at
    for second in (1, 12, 39):
        bench.executors.end_overdue(since + second)
    assert bench.end(stuck).attempt_outcome is AttemptOutcome.TIMED_OUT
    assert bench.of(beside) is None
    # Its own timeout once more, and it has ended, whatever the loop does.
    bench.executors.end_overdue(since + 43)
    assert bench.end(beside).attempt_outcome is AttemptOutcome.TIMED_OUT


def test_a_loop_that_moves_again_is_closed_once_it_is_empty(bench, doors):
    stuck = begin(bench, doors, "blocks")
    loops = bench.executors.handlers
    bench.executors.end_overdue(stuck.began_at + 1)
    bench.executors.end_overdue(stuck.began_at + stuck.timeout_seconds + 2)
    old, new = loops._loops
    doors.open.set()

    def only_the_new_one() -> bool:
        bench.executors.end_overdue(stuck.began_at)
        return loops._loops == [new]

    bench.wait(only_the_new_one, "the old loop to go")
    assert not old._thread.is_alive()


def test_a_loop_that_answers_is_kept_whatever_a_run_clings_to(bench, doors):
    held = begin(bench, doors, "clings")
    bench.executors.end_overdue(held.began_at + 1)
    loop = bench.executors.handlers._loops[0]
    bench.wait(lambda: loop._asked_at is None, "the loop to answer")
    bench.executors.end_overdue(held.began_at + held.timeout_seconds + 2)
    assert bench.end(held).attempt_outcome is AttemptOutcome.TIMED_OUT
    assert bench.executors.handlers._loops == [loop]


def test_a_loop_that_has_answered_nothing_for_long_is_replaced_though_nothing_is_overdue(bench, doors):
    held = begin(bench, doors, "blocks")
    for second in range(30):
        bench.executors.end_overdue(held.began_at + second)
    assert len(bench.executors.handlers._loops) == 1
    for second in range(30, 32):
        bench.executors.end_overdue(held.began_at + second)
    assert bench.end(bench.begin("quick")).state is RunState.SUCCEEDED
    assert bench.of(held) is None
    doors.open.set()
    assert bench.end(held).result == '"late"'


def test_a_loop_is_not_replaced_for_the_time_in_which_its_worker_was_stopped(bench, doors):
    held = begin(bench, doors, "blocks")
    bench.executors.end_overdue(held.began_at)
    bench.executors.end_overdue(held.began_at + 31)
    bench.executors.end_overdue(held.began_at + 45)
    assert len(bench.executors.handlers._loops) == 1
    doors.open.set()
    assert bench.end(held).result == '"late"'


def test_the_late_result_of_a_thread_that_was_handed_back_is_dropped(bench, doors):
    def deaf(ctx) -> str:
        doors.began.release()
        doors.open.wait(PATIENCE)
        return "late"

    bench.registry.add(deaf, name="deaf")
    held = begin(bench, doors, "deaf")
    assert bench.executors.release([held.key]) == [held]
    doors.open.set()
    bench.wait(lambda: not bench.executors.threads.running, "the handler to end")
    bench.run("sync")
    assert bench.of(held) is None


def test_a_run_on_a_thread_past_its_limit_is_timed_out(bench, doors):
    def deaf(ctx) -> None:
        doors.began.release()
        doors.open.wait(PATIENCE)

    bench.registry.add(deaf, name="deaf")
    held = begin(bench, doors, "deaf")
    bench.executors.end_overdue(held.began_at + held.timeout_seconds - 1)
    assert bench.of(held) is None
    bench.executors.end_overdue(held.began_at + held.timeout_seconds + 1)
    assert bench.end(held).attempt_outcome is AttemptOutcome.TIMED_OUT
