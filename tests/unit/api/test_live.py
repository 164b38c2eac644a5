"""Listeners of live events: places, what a record tells whom, and who is cut off."""

from __future__ import annotations

import asyncio
from typing import Any
from uuid import UUID

import orjson
import pytest
from confluent_kafka import KafkaError, KafkaException

from noonmark.api.backend import live_events
from noonmark.api.backend.live_events import Listener, LiveEvent, events_of, format_position, parse_position
from noonmark.kafka.config import KafkaConfig

JOB = UUID(int=7)


class Record:
    """A record as the consumer hands it over."""

    def __init__(
        self,
        offset: int,
        value: Any,
        *,
        key: str = "shop",
        partition: int = 0,
        error: KafkaError | None = None,
    ) -> None:
        self._error = error
        self._fields = (
            partition,
            offset,
            key.encode(),
            value if isinstance(value, bytes) else orjson.dumps(value),
        )

    def error(self) -> KafkaError | None:
        return self._error

    def partition(self) -> int:
        return self._fields[0]

    def offset(self) -> int:
        return self._fields[1]

    def key(self) -> bytes:
        return self._fields[2]

    def value(self) -> bytes:
        return self._fields[3]


def event(*jobs: UUID) -> dict[str, Any]:
    return {"data": {"outcomes": [{"job_id": str(job), "state": "dead"} for job in jobs]}}


def test_a_place_is_read_back() -> None:
    assert format_position({1: 5, 0: 12}) == "0:12,1:5"
    assert parse_position("0:12,1:5") == {0: 12, 1: 5}


@pytest.mark.parametrize(
    "text", [None, "", "0", "0:", ":1", "0:1,", "0:-1", "a:1", "0:1\n", "0:" + "9" * 19, "0:1;1:2"]
)
def test_what_is_no_place_is_none(text: str | None) -> None:
    assert parse_position(text) is None


def test_a_record_tells_those_whose_it_is_and_moves_all_places() -> None:
    async def check() -> None:
        listener = Listener("shop", JOB, None)
        listener.position = {0: 3, 1: 0}
        records: list[Any] = [
            Record(2, event(JOB)),  # had before
            Record(3, event(UUID(int=1))),  # another job
            Record(4, event(JOB, UUID(int=1), JOB)),
            Record(0, event(JOB), key="others", partition=1),
            Record(5, b"no json"),
            Record(6, {"data": []}),
        ]
        told = events_of(listener, records)
        assert [(len(one.outcomes), one.position) for one in told] == [(2, "0:5,1:0")]
        assert listener.position == {0: 7, 1: 1}

    asyncio.run(check())


def test_who_reads_too_slowly_is_cut_off(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(live_events, "MOST_WAITING", 3)

    async def check() -> None:
        listener = Listener("shop", None, None)
        for n in range(3):
            listener.deliver([LiveEvent([{"n": n}], f"0:{n}")], f"0:{n}")
        await listener.news(1)
        assert listener.next().outcomes == [{"n": 0}]
        assert listener.end is None
        listener.deliver([LiveEvent([{"n": 3}, {"n": 4}], "0:3")], "0:3")
        await listener.news(1)
        assert listener.end == "slow"

    asyncio.run(check())


def test_a_listener_whose_loop_is_gone_stops_nobody() -> None:
    async def make() -> Listener:
        return Listener("shop", None, None)

    listener = asyncio.run(make())
    listener.deliver([], "", note="x")
    assert listener.end == "gone"


def test_records_beside_an_error_are_handed_on_before_it_is_told() -> None:
    class Consumer:
        """Hands over an error between records, as librdkafka does when one partition fails."""

        def consume(self, _most: int, timeout: float) -> list[Any]:
            assert timeout
            error = KafkaError(KafkaError._ALL_BROKERS_DOWN)
            return [Record(5, event(JOB)), Record(0, event(), error=error), Record(6, event(JOB))]

    reader = live_events._Reader(KafkaConfig("127.0.0.1:1"), "topic")
    reader._consumer = Consumer()  # type: ignore[assignment]
    assert [record.offset() for record in reader.read()] == [5, 6]
    assert reader._position == {0: 7}
    with pytest.raises(KafkaException):
        reader.read()
    assert len(reader.read()) == 2, "once it was told, it goes on"


def test_whoever_comes_back_again_and_again_keeps_nobody_from_what_is_new() -> None:
    class Reader(live_events._Reader):
        """Stands at record 100 of one partition, where the next one comes."""

        seen: list[int]

        def open(self) -> None:
            self._position = self._position or {0: 100}

        def read(self) -> list[Any]:
            at = self._position[0]
            self.seen.append(at)
            self._position = {0: at + 1}
            return [Record(at, event(JOB))]

        def _bounds(self, partition: int) -> tuple[int, int]:
            return 0, 101

        def _assign(self) -> None:
            pass

    async def check() -> None:
        reader = Reader(KafkaConfig("127.0.0.1:1"), "topic")
        reader.seen = []
        runs = live_events.LiveRuns(KafkaConfig("127.0.0.1:1"), "topic", most=10)
        steady = Listener("shop", None, None)
        again: list[Listener] = []
        for _ in range(4):
            again.append(Listener("shop", None, {0: 98}))
            runs._step(reader, [steady, *again])
        await steady.news(1)
        # Once it went back, and then on to what is new, past what is asked for meanwhile.
        assert reader.seen == [98, 99, 100, 101]
        assert [told.position for told in steady.waiting] == ["0:101", "0:102"]
        assert [bool(one.position) for one in again] == [True, False, False, False]

    asyncio.run(check())
