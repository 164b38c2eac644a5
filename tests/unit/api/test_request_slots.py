"""The slots of a credential: a burst waits, what waits too long or in too great a number is refused."""

from __future__ import annotations

import asyncio

import pytest

from noonmark.api.backend.request_slots import RequestSlots, TooManyRequestsError


class Requests:
    """Requests that hold a slot until the test ends them."""

    def __init__(self, slots: RequestSlots) -> None:
        self._slots = slots
        self.served: list[str] = []
        self._ends: dict[str, asyncio.Event] = {}
        self.tasks: dict[str, asyncio.Task[None]] = {}

    async def send(self, *names: str) -> None:
        """Send requests of the credentials that the first letters name, and let each go as far as it can."""
        for name in names:
            self._ends[name] = asyncio.Event()
            self.tasks[name] = asyncio.create_task(self._serve(name))
            await self.settle()

    async def end(self, *names: str) -> None:
        """End requests, and let others take their slots."""
        for name in names:
            self._ends[name].set()
            await self.tasks[name]
            await self.settle()

    async def settle(self) -> None:
        for _ in range(5):
            await asyncio.wait([asyncio.ensure_future(asyncio.sleep(0))])

    async def _serve(self, name: str) -> None:
        async with self._slots.slot(name[0]):
            self.served.append(name)
            await self._ends[name].wait()


def test_requests_of_one_credential_wait_in_order_and_those_of_another_do_not():
    async def scene() -> None:
        requests = Requests(RequestSlots(2))
        await requests.send("a1", "a2", "a3", "a4", "b1")
        assert requests.served == ["a1", "a2", "b1"]
        await requests.end("a2")
        assert requests.served == ["a1", "a2", "b1", "a3"]
        await requests.end("a1", "a3", "a4", "b1")
        assert requests.served[-1] == "a4"
        assert requests._slots._slots == {}

    asyncio.run(scene())


def test_more_waiting_requests_than_allowed_are_refused_at_once():
    async def scene() -> None:
        requests = Requests(RequestSlots(1, max_waiting=2))
        await requests.send("a1", "a2", "a3", "a4", "b1")
        assert requests.served == ["a1", "b1"]
        with pytest.raises(TooManyRequestsError, match="serves 1 of one credential at once"):
            await requests.tasks["a4"]
        await requests.end("a1", "a2", "a3", "b1")
        assert requests.served == ["a1", "b1", "a2", "a3"]

    asyncio.run(scene())


def test_a_request_that_waits_too_long_is_refused_and_takes_no_slot():
    async def scene() -> None:
        requests = Requests(RequestSlots(1, wait_seconds=0.01))
        await requests.send("a1", "a2")
        with pytest.raises(TooManyRequestsError):
            await requests.tasks["a2"]
        await requests.end("a1")
        await requests.send("a3")
        assert requests.served == ["a1", "a3"]
        await requests.end("a3")
        assert requests._slots._slots == {}

    asyncio.run(scene())


def test_a_request_whose_client_left_gives_up_its_place():
    async def scene() -> None:
        requests = Requests(RequestSlots(1))
        await requests.send("a1", "a2", "a3")
        requests.tasks["a2"].cancel()
        await requests.settle()
        await requests.end("a1")
        assert requests.served == ["a1", "a3"]
        await requests.end("a3")
        assert requests._slots._slots == {}

    asyncio.run(scene())


@pytest.mark.parametrize(("connections", "most"), [(2, 1), (4, 3), (16, 12), (40, 30), (500, 30)])
def test_a_quarter_of_connections_and_threads_is_left_to_others(connections, most):
    assert RequestSlots.for_connections(connections)._most == most
