"""Copies of messages whose run is in flight, or that are picked twice, start nothing and are settled."""

from __future__ import annotations

import threading
from types import SimpleNamespace
from typing import Any
from uuid import UUID

from tests.unit.worker.hands import NOW, hand, record

from noonmark.attempts.running_attempt import Delivery
from noonmark.core.ids import uuid7
from noonmark.core.states import Lane
from noonmark.store.runs.starts import StartRequest
from noonmark.worker.engine.starter import Starter
from noonmark.worker.in_flight import RunsInFlight


class Consumer:
    """Remembers what was settled."""

    def __init__(self) -> None:
        self.settled: list[Any] = []

    def settle(self, records: list[Any]) -> None:
        self.settled += records


def delivery(run_id: UUID, fence: int = 1, offset: int = 0) -> Delivery:
    return Delivery(StartRequest(run_id, NOW, fence), record(offset), Lane.NORMAL)


def starter(in_flight: RunsInFlight, consumer: Consumer) -> Any:
    service = SimpleNamespace(
        settings=SimpleNamespace(pool="default"),
        log=SimpleNamespace(bind=lambda **_: None),
        stop=threading.Event(),
    )
    readers = [SimpleNamespace(lane=lane, buffer=[], consumer=consumer) for lane in Lane]
    parts: dict[str, Any] = {"readers": readers, "slots": None, "in_flight": in_flight, "topics": None}
    nothing: Any = None
    return Starter(service, nothing, nothing, **parts, shards=4)  # type: ignore[arg-type]


def test_without_copies_all_are_started_in_their_order() -> None:
    consumer = Consumer()
    picked = [delivery(uuid7()) for _ in range(3)]

    assert starter(RunsInFlight(), consumer)._without_duplicates(picked) == picked
    assert consumer.settled == []


def test_of_two_copies_the_first_is_started() -> None:
    consumer, run_id = Consumer(), uuid7()
    first, copy, other = delivery(run_id), delivery(run_id, offset=1), delivery(uuid7(), offset=2)

    assert starter(RunsInFlight(), consumer)._without_duplicates([first, copy, other]) == [first, other]
    assert consumer.settled == [copy.record]


def test_a_run_in_flight_is_not_started_again_but_under_another_fence() -> None:
    consumer, in_flight, attempt = Consumer(), RunsInFlight(), hand()
    in_flight.add([attempt])
    copy, later = delivery(attempt.run.id, attempt.fence), delivery(attempt.run.id, attempt.fence + 1, 1)

    assert starter(in_flight, consumer)._without_duplicates([copy, later]) == [later]
    assert consumer.settled == [copy.record]
