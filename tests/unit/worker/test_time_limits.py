"""Time limits of one event loop: they cancel what asyncio's own would, with one timer for all."""

import asyncio

import pytest
import uvloop

from noonmark.worker.time_limits import TimeLimits

PATIENCE = 10.0


def run(scenario):
    return uvloop.run(asyncio.wait_for(scenario, PATIENCE))


async def never():
    await asyncio.Event().wait()


def limits():
    return TimeLimits(asyncio.get_running_loop())


@pytest.mark.parametrize("seconds", [-1.0, 0.0, 0.01])
def test_what_takes_longer_is_cancelled_and_timed_out(seconds):
    async def scenario():
        with pytest.raises(TimeoutError), limits().limit(seconds) as limit:
            await never()
        assert limit.expired()
        assert asyncio.current_task().cancelling() == 0

    run(scenario())


def test_what_ends_in_time_is_not_cancelled_later():
    async def scenario():
        shared = limits()
        with shared.limit(0.01) as limit:
            await asyncio.sleep(0)
        # Due later than the first, so that it has been passed when this one ends.
        with pytest.raises(TimeoutError), shared.limit(0.02):
            await never()
        assert not limit.expired()

    run(scenario())


def test_each_limit_ends_its_own_block_in_the_order_in_which_they_are_due():
    async def scenario():
        shared, ended = limits(), []

        async def one(seconds):
            try:
                with shared.limit(seconds):
                    await never()
            except TimeoutError:
                ended.append(seconds)

        await asyncio.gather(*map(one, [0.09, 0.03, 0.06, 0.0]))
        assert ended == [0.0, 0.03, 0.06, 0.09]

    run(scenario())


def test_the_inner_of_two_limits_leaves_the_outer_running():
    async def scenario():
        shared, ended = limits(), []

        async def both():
            with shared.limit(0.02):
                with pytest.raises(TimeoutError), shared.limit(0.01):
                    await never()
                ended.append("inner")
                await never()

        with pytest.raises(TimeoutError):
            await both()
        assert ended == ["inner"]

    run(scenario())


def test_a_cancel_of_the_task_is_not_taken_for_a_timeout():
    async def scenario():
        async def limited():
            with limits().limit(0.0):
                await never()

        task = asyncio.create_task(limited())
        await asyncio.sleep(0)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    run(scenario())


def test_an_exception_of_the_block_takes_precedence_over_its_timeout():
    async def scenario():
        async def fail():
            try:
                await never()
            except asyncio.CancelledError:
                raise ValueError("own") from None

        with pytest.raises(ValueError, match="own"), limits().limit(0.0):
            await fail()
        assert asyncio.current_task().cancelling() == 0

    run(scenario())


def test_a_limit_can_be_postponed_held_and_started_again():
    async def scenario():
        shared, loop = limits(), asyncio.get_running_loop()

        async def changed(limit):
            limit.reschedule(loop.time() + PATIENCE)
            assert limit.when() > loop.time()
            with pytest.raises(TimeoutError), shared.limit(0.02):
                await never()
            limit.reschedule(None)
            assert limit.when() is None
            with pytest.raises(TimeoutError), shared.limit(0.02):
                await never()
            assert not limit.expired()
            limit.reschedule(loop.time())
            await never()

        with pytest.raises(TimeoutError), shared.limit(0.01) as limit:
            await changed(limit)

    run(scenario())


def test_a_limit_that_is_over_stays_over():
    async def scenario():
        shared, loop = limits(), asyncio.get_running_loop()
        with shared.limit(PATIENCE) as left:
            pass
        left.reschedule(loop.time())

        async def changed(limit):
            try:
                await never()
            finally:
                limit.reschedule(loop.time() + PATIENCE)

        with pytest.raises(TimeoutError), shared.limit(0.0) as expired:
            await changed(expired)
        with pytest.raises(TimeoutError), shared.limit(0.01):
            await never()
        assert not left.expired()
        assert expired.expired()

    run(scenario())


def test_ends_of_limits_that_are_over_do_not_collect():
    async def scenario():
        shared = limits()
        with shared.limit(PATIENCE) as first:
            for _ in range(10_000):
                with shared.limit(PATIENCE):
                    pass
            assert len(shared._ends) < 1000
            assert first.when() is not None
        with pytest.raises(TimeoutError), shared.limit(0.01):
            await never()

    run(scenario())
