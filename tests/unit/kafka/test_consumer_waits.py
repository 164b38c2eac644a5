"""How a consumer waits for records: without a busy loop, and without waiting where it should not."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from noonmark.kafka.config import KafkaConfig
from noonmark.kafka.consumers import consumer
from noonmark.kafka.consumers.consumer import BatchConsumer


class NoRecords:
    """A client that receives nothing. It waits as the real one does, for whole milliseconds rounded down."""

    now = 1000.0

    def __init__(self, settings: object) -> None:
        self.waits: list[int] = []

    def subscribe(self, topics: list[str], **callbacks: object) -> None:
        pass

    def poll(self, timeout: float) -> None:
        self.waits.append(int(timeout * 1000))
        NoRecords.now += self.waits[-1] / 1000

    @classmethod
    def monotonic(cls) -> float:
        cls.now += 0.000_01
        return cls.now


@pytest.fixture
def waiting(monkeypatch: pytest.MonkeyPatch) -> BatchConsumer:
    monkeypatch.setattr(consumer, "Consumer", NoRecords)
    monkeypatch.setattr(consumer, "time", SimpleNamespace(monotonic=NoRecords.monotonic))
    return BatchConsumer(KafkaConfig("localhost:1"), "topic", "group", commit_interval_seconds=0.05)


@pytest.mark.parametrize("seconds", [0.02, 0.0199, 0.0037, 0.0004])
def test_a_wait_is_one_wait_of_the_client(waiting: BatchConsumer, seconds: float):
    began = NoRecords.now
    assert waiting.poll_batch(10, seconds) == []
    assert len(waiting._consumer.waits) == 1
    assert seconds <= NoRecords.now - began < seconds + 0.002


def test_a_long_wait_is_divided_so_that_commits_are_sent_meanwhile(waiting: BatchConsumer):
    waiting.poll_batch(10, 0.12)
    assert len(waiting._consumer.waits) == 3
    assert max(waiting._consumer.waits) <= 51


def test_a_poll_without_a_timeout_does_not_wait(waiting: BatchConsumer):
    assert waiting.poll_batch(10, 0.0) == []
    assert waiting._consumer.waits == [0]
