import pytest

from noonmark.kafka.admin import TopicError, ensure_topics
from noonmark.kafka.config import KafkaConfig
from noonmark.kafka.topics import Topics, TopicSpec

pytestmark = pytest.mark.kafka


def test_topics_are_made_once_with_their_settings(kafka):
    specs = Topics(kafka.name).topic_specs(["default"])
    first = ensure_topics(kafka.config, specs)
    assert set(first.created) == {spec.name for spec in specs}
    assert first.existing == ()
    second = ensure_topics(kafka.config, specs)
    assert second.created == ()
    assert set(second.existing) == set(first.created)
    assert second.narrower == {}


def test_a_topic_with_fewer_partitions_than_wanted_is_reported_and_left_alone(kafka):
    name = kafka.topic(partitions=2)
    again = ensure_topics(kafka.config, [TopicSpec(name, 6, 1)])
    assert again.narrower == {name: (2, 6)}


def test_a_topic_that_cannot_be_made_is_refused_with_a_reason(kafka):
    wrong = [TopicSpec(f"{kafka.name}.wide", 1, 9), TopicSpec("no spaces please", 1, 1)]
    with pytest.raises(TopicError, match="lower the replication factor") as refused:
        ensure_topics(kafka.config, wrong)
    assert "no spaces please" in str(refused.value)


def test_a_broker_that_does_not_answer_is_named():
    with pytest.raises(TopicError, match=r"127\.0\.0\.1:1 within 1 s"):
        ensure_topics(KafkaConfig("127.0.0.1:1"), [TopicSpec("any", 1, 1)], timeout_seconds=1)
