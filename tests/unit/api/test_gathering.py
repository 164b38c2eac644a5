"""Group commit: everybody is answered, each with its own answer, and nobody waits for a full batch."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Sequence

import pytest

from noonmark.api.backend.group_commit import GroupCommit, StartNext, TooBusyError


def test_what_comes_while_a_batch_is_under_way_is_the_next_one() -> None:
    batches: list[list[int]] = []
    begun, go_on = threading.Event(), threading.Event()

    def work(items: Sequence[int], _start_next: StartNext) -> list[int | Exception]:
        batches.append(list(items))
        begun.set()
        assert go_on.wait(5)
        return [ValueError(item) if item % 2 else item * 10 for item in items]

    async def play() -> list[int | BaseException]:
        gatherer = GroupCommit(work, threads=1, max_waiting=100)
        first = asyncio.create_task(gatherer.submit(0))
        await asyncio.to_thread(begun.wait, 5)
        others = [asyncio.create_task(gatherer.submit(number)) for number in range(1, 6)]
        others[4].add_done_callback(lambda _: None)
        await asyncio.sleep(0)
        others[3].cancel()
        go_on.set()
        return await asyncio.gather(first, *others, return_exceptions=True)

    answers = asyncio.run(play())
    assert batches == [[0], [1, 2, 3, 4, 5]]
    assert [answers[0], answers[2]] == [0, 20]
    assert [type(answers[place]) for place in (1, 3, 5)] == [ValueError] * 3
    assert isinstance(answers[4], asyncio.CancelledError), "one that went away harms nobody"


def test_what_is_asked_for_in_one_round_of_the_loop_is_one_batch() -> None:
    batches: list[list[int]] = []

    def work(items: Sequence[int], _start_next: StartNext) -> list[int | Exception]:
        batches.append(list(items))
        return list(items)

    async def play() -> list[int]:
        gatherer = GroupCommit(work, threads=4, max_waiting=100)
        return await asyncio.gather(*(gatherer.submit(number) for number in range(8)))

    assert asyncio.run(play()) == list(range(8))
    assert batches == [list(range(8))]


def test_a_batch_that_fails_is_everybodys_answer_and_the_next_one_goes_on() -> None:
    failures = iter([OSError("away")])

    def work(items: Sequence[int], _start_next: StartNext) -> list[int | Exception]:
        for failure in failures:
            raise failure
        return list(items)

    async def play() -> None:
        gatherer = GroupCommit(work, threads=2, max_waiting=100)
        with pytest.raises(OSError, match="away"):
            await gatherer.submit(1)
        assert await gatherer.submit(2) == 2

    asyncio.run(play())


def test_who_finds_no_room_is_told_at_once() -> None:
    go_on = threading.Event()
    begun = threading.Event()

    def work(items: Sequence[int], _start_next: StartNext) -> list[int | Exception]:
        begun.set()
        assert go_on.wait(5)
        return list(items)

    async def play() -> None:
        gatherer = GroupCommit(work, threads=1, max_waiting=2)
        under_way = asyncio.create_task(gatherer.submit(0))
        await asyncio.to_thread(begun.wait, 5)
        waiting = [asyncio.create_task(gatherer.submit(number)) for number in (1, 2)]
        await asyncio.sleep(0)
        with pytest.raises(TooBusyError):
            await gatherer.submit(3)
        go_on.set()
        assert await asyncio.gather(under_way, *waiting) == [0, 1, 2]

    asyncio.run(play())


def test_the_next_batch_begins_while_one_is_in_its_commit() -> None:
    batches: list[list[int]] = []
    committing, go_on = threading.Event(), threading.Event()

    def work(items: Sequence[int], start_next: StartNext) -> list[int | Exception]:
        batches.append(list(items))
        start_next()
        if items[0] == 0:
            committing.set()
            assert go_on.wait(5)
        return list(items)

    async def play() -> None:
        gatherer = GroupCommit(work, threads=2, max_waiting=100)
        first = asyncio.create_task(gatherer.submit(0))
        await asyncio.to_thread(committing.wait, 5)
        assert await gatherer.submit(1) == 1
        assert not first.done()
        go_on.set()
        assert await first == 0

    asyncio.run(play())
    assert batches == [[0], [1]]
