"""What stands in a lane, as it is told to people who ask why a run has not begun."""

from concurrent.futures import ThreadPoolExecutor

import pytest

from noonmark.core.states import Lane
from noonmark.core.why.facts import KafkaAway, LaneBacklog
from noonmark.kafka.config import KafkaConfig
from noonmark.kafka.lag import backlog
from noonmark.kafka.lag.backlog import LaneBacklogs
from noonmark.kafka.topics import Topics

pytestmark = pytest.mark.kafka


def test_a_lane_is_measured_in_messages_and_age_and_only_once_however_many_ask(kafka, monkeypatch):
    asked = []
    monkeypatch.setattr(backlog, "FRESH_SECONDS", 60.0)
    ask = LaneBacklogs._measure
    monkeypatch.setattr(LaneBacklogs, "_measure", lambda self, *lane: asked.append(lane) or ask(self, *lane))
    topics = Topics(kafka.name)
    assert kafka.topic("runs.default.high", partitions=2) == topics.runs("default", Lane.HIGH)
    kafka.publish(topics.runs("default", Lane.HIGH), 30)
    backlogs = LaneBacklogs(kafka.config, topics)

    with ThreadPoolExecutor(4) as threads:
        found = list(threads.map(lambda _: backlogs.measure("default", Lane.HIGH), range(8)))

    assert isinstance(found[0], LaneBacklog)
    assert found[0].messages == 30
    assert found[0].oldest_seconds is not None
    assert found[0].oldest_seconds >= 0
    assert asked == [("default", Lane.HIGH)]


def test_a_topic_that_is_not_there_and_a_broker_that_is_away_are_told_with_their_reason(kafka, monkeypatch):
    monkeypatch.setattr(backlog, "TIMEOUT_SECONDS", 0.3)
    topics = Topics(kafka.name)

    found = LaneBacklogs(kafka.config, topics).measure("nowhere", Lane.LOW)
    assert isinstance(found, KafkaAway)
    assert topics.runs("nowhere", Lane.LOW) in found.reason

    gone = LaneBacklogs(KafkaConfig("127.0.0.1:1"), topics).measure("default", Lane.LOW)
    assert isinstance(gone, KafkaAway)
