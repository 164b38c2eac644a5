"""Which topic is read when: bulk only when the other gave nothing, and none without room."""

from __future__ import annotations

import threading
from datetime import UTC, datetime
from typing import Any, cast

import pytest

from noonmark.core.time_facts import TimeFacts
from noonmark.intake.clock import DatabaseClock, Moment
from noonmark.intake.handover import Handover
from noonmark.intake.reading import ReadLoop
from noonmark.kafka.consumer import LaneConsumer
from noonmark.kafka.records import Record
from noonmark.kafka.topics import Topics
from noonmark.service.health import Health
from noonmark.service.runner import Service
from noonmark.settings import Settings
from noonmark.telemetry.logs import get_logger


class Clock(DatabaseClock):
    def moment(self) -> Moment | None:
        return Moment(datetime.now(UTC), datetime(2020, 1, 1, tzinfo=UTC), TimeFacts())


class Source:
    """Hands out so many records, and notes how it was polled."""

    def __init__(self, topic: str, records: int) -> None:
        self.topic = topic
        self.left = records
        self.polls: list[int] = []

    def poll_batch(self, most: int, _timeout_seconds: float) -> list[Record]:
        self.polls.append(most)
        count = min(most, self.left)
        self.left -= count
        return [Record(self.topic, 0, i, 1, None, b"{}", 0) for i in range(count)]


@pytest.fixture
def handover() -> Handover:
    return Handover(threading.Event())


@pytest.fixture
def loop(handover: Handover) -> ReadLoop:
    service = Service("intake", Settings(intake_batch=10), Health(), threading.Event(), get_logger())
    return ReadLoop(service, Topics("t"), handover, Clock())


def turn(loop: ReadLoop, main: Source, bulk: Source) -> None:
    loop._turn(cast("LaneConsumer", main), cast("LaneConsumer", bulk))


def offered(handover: Handover) -> Any:
    batch = handover.begin()
    handover.done()
    return batch and batch.consumer


def test_bulk_is_taken_only_when_the_other_topic_gave_nothing(loop: ReadLoop, handover: Handover) -> None:
    main, bulk = Source("t.submissions", 15), Source("t.submissions.bulk", 15)
    seen = []
    for _ in range(5):
        turn(loop, main, bulk)
        seen.append(offered(handover))
    assert seen == [main, main, bulk, bulk, None]


def test_without_room_nothing_is_taken_but_both_stay_in_their_group(
    loop: ReadLoop, handover: Handover
) -> None:
    main, bulk = Source("t.submissions", 15), Source("t.submissions.bulk", 15)
    turn(loop, main, bulk)
    main.polls.clear()
    bulk.polls.clear()
    turn(loop, main, bulk)
    assert (main.polls, bulk.polls) == ([0], [0])
    assert main.left == 5
