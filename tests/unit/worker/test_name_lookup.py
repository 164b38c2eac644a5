"""Lookups of names: one that nobody answers takes nothing from the others."""

from __future__ import annotations

import asyncio
import threading

import pytest

from noonmark.worker.http.name_lookup import NameLookup

PATIENCE = 60


class Names:
    """A resolver that answers nothing below `slow.test` until the end, and everything else at once."""

    def __init__(self) -> None:
        self.answers = threading.Event()
        self.asked: list[str] = []
        self.lookup = NameLookup(self._addresses)

    def _addresses(self, host: str) -> list[str]:
        self.asked.append(host)
        if host.endswith("slow.test"):
            assert self.answers.wait(PATIENCE)
        if host.startswith("none."):
            raise OSError("no such name")
        return [f"address of {host}"]


@pytest.fixture
def names():
    names = Names()
    yield names
    names.answers.set()


def play(scenario):
    async def bounded():
        async with asyncio.timeout(PATIENCE):
            return await scenario

    return asyncio.run(bounded())


def test_names_that_nobody_answers_delay_no_other_name(names):
    async def scenario():
        slow = [asyncio.create_task(names.lookup(f"n{n}.slow.test")) for n in range(500)]
        await asyncio.sleep(0)
        found = [await names.lookup(f"n{n}.fast.test") for n in range(20)]
        # Also lookups whose callers have given up go on; they count against their own domain only.
        for task in slow:
            task.cancel()
        await asyncio.gather(*slow, return_exceptions=True)
        found.append(await names.lookup("late.test"))
        asked = sum(host.endswith("slow.test") for host in names.asked)
        names.answers.set()
        names.lookup.close()
        return found, asked

    found, asked = play(scenario())
    assert found == [[f"address of n{n}.fast.test"] for n in range(20)] + [["address of late.test"]]
    assert asked == 8


def test_a_name_is_looked_up_once_for_all_who_ask_meanwhile(names):
    async def scenario():
        both = [asyncio.create_task(names.lookup("one.slow.test")) for _ in range(50)]
        await asyncio.sleep(0)
        both[0].cancel()
        names.answers.set()
        return await asyncio.gather(*both, return_exceptions=True)

    first, *others = play(scenario())
    assert isinstance(first, asyncio.CancelledError)
    assert others == [["address of one.slow.test"]] * 49
    assert names.asked == ["one.slow.test"]


def test_an_error_reaches_all_callers_and_is_not_kept(names):
    async def scenario():
        for _ in range(2):
            with pytest.raises(OSError, match="no such name"):
                await names.lookup("none.fast.test")
        return names.lookup._domains, names.lookup._running

    assert play(scenario()) == ({}, {})
    assert names.asked == ["none.fast.test"] * 2
