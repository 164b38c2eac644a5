"""Whether the coordinator of a group answers a member that has no partition."""

from __future__ import annotations

from typing import Final

from confluent_kafka import KafkaException, TopicPartition

from noonmark.kafka.consumers.consumer import BatchConsumer

_ANSWER_SECONDS: Final = 1.0


def coordinator_answers(consumer: BatchConsumer) -> bool:
    """Return whether the coordinator of the group and the leaders of the topics answer the consumer.

    They do not if the cluster is away, a topic does not exist, a right is missing, or, with the protocol
    `consumer`, the client is not a member of the group. Only the thread that owns the consumer may call it;
    it takes up to two seconds if something does not answer.
    """
    client = consumer._consumer  # noqa: SLF001 - a part of the consumer, in a module of its own
    firsts = [TopicPartition(topic, 0) for topic in consumer.topics]
    try:
        committed = client.committed(firsts, _ANSWER_SECONDS)
        # The coordinator also answers for topics that do not exist.
        return all(one.error is None for one in committed) and all(
            client.get_watermark_offsets(first, _ANSWER_SECONDS) is not None for first in firsts
        )
    except KafkaException:
        return False
