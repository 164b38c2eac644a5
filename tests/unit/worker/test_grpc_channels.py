"""Channels to targets: a name is resolved once for all calls that wait for it."""

from __future__ import annotations

import asyncio

import pytest

from noonmark.core.kinds.grpc_call import parse_target
from noonmark.worker.grpc.channels import GrpcChannels

PATIENCE = 60
TARGET = parse_target("grpc://billing.test:8080")


class Names:
    """A resolver whose answer comes when the test says so."""

    def __init__(self) -> None:
        self.answer = asyncio.Event()
        self.asked = 0
        self.error: OSError | None = None

    async def __call__(self, host: str) -> list[str]:
        self.asked += 1
        await self.answer.wait()
        if self.error is not None:
            raise self.error
        return ["127.0.0.1"]


def play(scenario) -> None:
    async def bounded() -> None:
        names = Names()
        channels = GrpcChannels(["127.0.0.1/32"], lookup=names)
        async with asyncio.timeout(PATIENCE):
            await scenario(names, channels)
            await channels.close()

    asyncio.run(bounded())


async def used(channels: GrpcChannels) -> object:
    async with channels.use(TARGET, None) as channel:
        await asyncio.sleep(0)
        return channel


def test_calls_that_wait_for_a_name_fail_together_and_the_next_one_asks_again() -> None:
    async def scenario(names: Names, channels: GrpcChannels) -> None:
        calls = [asyncio.create_task(used(channels)) for _ in range(20)]
        await asyncio.sleep(0)
        names.error = OSError("nobody answers")
        names.answer.set()
        ends = await asyncio.gather(*calls, return_exceptions=True)
        assert [str(end) for end in ends] == ["nobody answers"] * 20
        assert names.asked == 1
        with pytest.raises(OSError, match="nobody answers"):
            await used(channels)
        assert names.asked == 2

    play(scenario)


def test_calls_share_a_channel_though_the_first_of_them_was_cancelled() -> None:
    async def scenario(names: Names, channels: GrpcChannels) -> None:
        calls = [asyncio.create_task(used(channels)) for _ in range(5)]
        await asyncio.sleep(0)
        calls[0].cancel()
        names.answer.set()
        first, *others = await asyncio.gather(*calls, return_exceptions=True)
        assert isinstance(first, asyncio.CancelledError)
        assert len(set(map(id, others))) == 1
        assert names.asked == 1
        assert await used(channels) is others[0]

    play(scenario)
