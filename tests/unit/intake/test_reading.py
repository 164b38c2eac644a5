"""Which topic is read when: bulk only when the other gave nothing, and none without room."""

from __future__ import annotations

import threading
from datetime import UTC, datetime
from typing import Any, cast

import psycopg
import pytest

from noonmark.core.schedules.time_facts import TimeFacts
from noonmark.intake.authorization import Authorizer, CredentialStore
from noonmark.intake.read_loop import ReadLoop
from noonmark.intake.write_loop import BatchQueue
from noonmark.kafka.consumers.consumer import BatchConsumer
from noonmark.kafka.consumers.records import Record
from noonmark.kafka.topics import Topics
from noonmark.schemas.events.envelope import render_structured
from noonmark.schemas.events.submissions import CREATE
from noonmark.service.health import Health
from noonmark.service.runner import Service
from noonmark.settings import Settings
from noonmark.store.schedules.time_facts import DatabaseClock, Moment
from noonmark.telemetry.logs import get_logger

SIGNED = (
    render_structured(id="e", source="/s", type=CREATE, data={}),
    [("noonmark-signature", b"v1.abcdefghijkl.acme.1800000000." + b"A" * 43 + b"=")],
)


class Clock(DatabaseClock):
    def moment(self) -> Moment | None:
        return Moment(datetime.now(UTC), datetime(2020, 1, 1, tzinfo=UTC), TimeFacts())


class Source:
    """Hands out so many records, and notes how it was polled."""

    def __init__(self, topic: str, records: int, record: tuple[bytes, Any] = (b"{}", None)) -> None:
        self.topic = topic
        self.value, self.headers = record
        self.left = records
        self.polls: list[int] = []

    def poll_batch(self, most: int, _timeout_seconds: float) -> list[Record]:
        self.polls.append(most)
        count = min(most, self.left)
        self.left -= count
        return [Record(self.topic, 0, i, 1, None, self.value, 0, self.headers) for i in range(count)]


@pytest.fixture
def handover() -> BatchQueue:
    return BatchQueue(threading.Event())


@pytest.fixture
def loop(handover: BatchQueue) -> ReadLoop:
    service = Service("intake", Settings(intake_batch=10), Health(), threading.Event(), get_logger())
    return ReadLoop(service, Topics("t"), handover, Clock(), Authorizer({}, cast("CredentialStore", None)))


def turn(loop: ReadLoop, main: Source, bulk: Source) -> None:
    loop._turn(cast("BatchConsumer", main), cast("BatchConsumer", bulk))


def offered(handover: BatchQueue) -> Any:
    batch = handover.begin()
    handover.done()
    return batch and batch.consumer


def test_bulk_is_taken_only_when_the_other_topic_gave_nothing(loop: ReadLoop, handover: BatchQueue) -> None:
    main, bulk = Source("t.submissions", 15), Source("t.submissions.bulk", 15)
    seen = []
    for _ in range(5):
        turn(loop, main, bulk)
        seen.append(offered(handover))
    assert seen == [main, main, bulk, bulk, None]


def test_without_room_nothing_is_taken_but_both_stay_in_their_group(
    loop: ReadLoop, handover: BatchQueue
) -> None:
    main, bulk = Source("t.submissions", 15), Source("t.submissions.bulk", 15)
    turn(loop, main, bulk)
    main.polls.clear()
    bulk.polls.clear()
    turn(loop, main, bulk)
    assert (main.polls, bulk.polls) == ([0], [0])
    assert main.left == 5


class Away:
    """A database that answers again after so many questions about keys."""

    def __init__(self, times: int) -> None:
        self.times = times

    def principal_of_key(self, _key_id: str) -> None:
        if self.times:
            self.times -= 1
            raise psycopg.OperationalError("the server is away")

    def authenticate_jwt(self, _token: str) -> Any:
        raise AssertionError


def test_a_batch_whose_keys_cannot_be_read_is_kept_until_they_can(handover: BatchQueue) -> None:
    service = Service("intake", Settings(intake_batch=10), Health(), threading.Event(), get_logger())
    loop = ReadLoop(service, Topics("t"), handover, Clock(), Authorizer({}, Away(2)))
    main, bulk = Source("t.submissions", 1, SIGNED), Source("t.submissions.bulk", 0)
    for _ in range(2):
        turn(loop, main, bulk)
        assert offered(handover) is None
    turn(loop, main, bulk)
    batch = handover.begin()
    assert batch is not None
    assert [(one.offset, one.reason) for one, _ in batch.refused] == [(0, "unauthorised")]
    assert main.polls == [10, 0, 0], "nothing else is taken meanwhile, but it stays in its group"
