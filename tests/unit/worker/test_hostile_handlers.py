"""Handlers that do their worst: each run gets its outcome, and the runs beside it get theirs."""

from __future__ import annotations

import asyncio
import contextlib
import os
import sys
from collections.abc import Callable, Iterator

import pytest
from tests.unit.worker.bench import Bench

from noonmark.attempts.outcomes import describe
from noonmark.core.states import DeliverySemantics, RunState
from noonmark.handlers import Snooze


class UnspeakableError(Exception):
    def __str__(self) -> str:
        raise RecursionError


async def _called(function: Callable[[], None]) -> None:
    function()


@pytest.fixture
def bench() -> Iterator[Bench]:
    bench = Bench()
    bench.registry.add(lambda ctx: None, name="fine")
    yield bench
    bench.executors.close()


def test_an_exception_that_cannot_be_told_is_told_by_its_name():
    assert describe(UnspeakableError()) == "UnspeakableError: its text cannot be shown"


def test_an_exception_that_cannot_be_told_fails_its_run_alone(bench):
    def sync(ctx):
        raise UnspeakableError

    async def asynchronous(ctx):
        raise UnspeakableError

    bench.registry.add(sync, name="sync")
    bench.registry.add(asynchronous, name="async")

    ended = bench.run("sync", "fine", "async", "fine")

    assert ended["sync"].state is ended["async"].state is RunState.DEAD
    assert ended["sync"].error.startswith("UnspeakableError: its text cannot be shown")
    assert ended["fine"].state is RunState.SUCCEEDED


@pytest.mark.parametrize("by", ["itself", "a task", "a callback"])
def test_an_async_handler_that_cancels_all_tasks_ends_nobody_else(bench, by):
    begun, over = asyncio.Event(), asyncio.Event()

    def cancel_all():
        own = asyncio.current_task()
        for task in asyncio.all_tasks(asyncio.get_running_loop()):
            if task is not own:
                task.cancel()

    async def cancels(ctx):
        await begun.wait()
        if by == "itself":
            cancel_all()
        # What it starts cancels its own task, too.
        elif by == "a task":
            with contextlib.suppress(asyncio.CancelledError):
                await asyncio.create_task(_called(cancel_all))
        else:
            asyncio.get_running_loop().call_soon(cancel_all)
            with contextlib.suppress(asyncio.CancelledError):
                await asyncio.sleep(60)
        over.set()

    async def innocent(ctx):
        begun.set()
        await over.wait()
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0):
                await asyncio.sleep(60)
        return "here"

    bench.registry.add(cancels, name="cancels")
    bench.registry.add(innocent, name="innocent")
    runs = [bench.begin("innocent", delivery=DeliverySemantics.AT_MOST_ONCE), bench.begin("cancels")]

    assert [bench.end(run).state for run in runs] == [RunState.SUCCEEDED, RunState.SUCCEEDED]


def test_an_async_handler_that_stops_the_loop_stops_nobody_else(bench):
    async def stops(ctx):
        asyncio.get_running_loop().stop()

    async def after(ctx):
        await asyncio.sleep(0)

    bench.registry.add(stops, name="stops")
    bench.registry.add(after, name="after")

    ended = bench.run("stops", "after")

    assert {o.state for o in ended.values()} == {RunState.SUCCEEDED}


def test_an_exit_from_a_task_of_a_handler_ends_neither_loop_nor_others(bench):
    async def leaves(ctx):
        async def exits():
            sys.exit(3)

        task = asyncio.create_task(exits())
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        ctx.payload = task  # kept, so that it is not collected while it runs

    async def after(ctx):
        await asyncio.sleep(0)

    bench.registry.add(leaves, name="leaves")
    bench.registry.add(after, name="after")

    ended = bench.run("leaves", "after")

    assert ended["after"].state is RunState.SUCCEEDED


@pytest.mark.filterwarnings("ignore:This process .* is multi-threaded:DeprecationWarning")
def test_the_child_of_a_handler_that_forks_runs_nothing_of_the_queue(bench):
    ran = []
    children = []
    parent = os.getpid()

    def forks(ctx):
        child = os.fork()
        if child:
            children.append(child)

    def effect(ctx):
        assert os.getpid() == parent
        ran.append(ctx.run_id)

    bench.registry.add(forks, name="forks")
    bench.registry.add(effect, name="effect")

    bench.run("forks", "effect")

    (child,) = children
    assert os.waitpid(child, 0)[1] == 0
    assert len(ran) == 1


class BrokenOrderError(Snooze):
    def __init__(self) -> None:
        """Never given its parts."""


class NoTextError(Exception):
    @property
    def __class__(self):
        raise RecursionError


@pytest.mark.parametrize("broken", [BrokenOrderError, NoTextError])
def test_what_breaks_when_it_is_looked_at_fails_its_run_alone(bench, broken):
    def sync(ctx):
        raise broken

    async def asynchronous(ctx):
        raise broken

    bench.registry.add(sync, name="sync")
    bench.registry.add(asynchronous, name="async")

    ended = bench.run("sync", "fine", "async", "fine")

    assert {ended["sync"].error, ended["async"].error} == {
        "the handler raised an exception whose type or text cannot be read"
    }
    assert ended["fine"].state is RunState.SUCCEEDED


@pytest.mark.filterwarnings("ignore:This process .* is multi-threaded:DeprecationWarning")
@pytest.mark.parametrize("awaits", [False, True])
def test_the_child_of_an_async_handler_that_forks_goes_on_with_no_other_run(bench, awaits):
    children = []
    ended = []

    async def forks(ctx):
        if child := os.fork():
            children.append(child)
        elif awaits:
            await asyncio.sleep(0)

    bench.registry.add(forks, name="forks")

    bench.run("forks", "fine")

    (child,) = children
    bench.wait(lambda: ended.append(os.waitpid(child, os.WNOHANG)) or ended[-1][0], "the end of the fork")
    assert ended[-1] == (child, 0)


class FailingKind:
    async def run(self, hand):
        raise KeyError("nobody thought of that")

    async def close(self):
        """Nothing is held."""


@pytest.mark.parametrize(
    ("delivery", "state"),
    [(DeliverySemantics.AT_LEAST_ONCE, RunState.DEAD), (DeliverySemantics.AT_MOST_ONCE, RunState.UNKNOWN)],
)
def test_where_we_fail_ourselves_nobody_knows_what_was_done(delivery, state):
    bench = Bench(kinds=lambda _: {"failing": FailingKind()})
    outcome = bench.end(bench.begin(kind="failing", delivery=delivery))
    bench.executors.close()

    assert outcome.state is state
    assert outcome.error.startswith("KeyError: 'nobody thought of that'")
