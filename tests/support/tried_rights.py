"""What a user of a broker may do, found by trying it: every operation on every topic and group."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import Future
from typing import Any

from confluent_kafka import (
    Consumer,
    ConsumerGroupTopicPartitions,
    KafkaError,
    KafkaException,
    Producer,
    TopicCollection,
    TopicPartition,
)
from confluent_kafka.admin import (
    AclBinding,
    AclOperation,
    AclPermissionType,
    AdminClient,
    AlterConfigOpType,
    ConfigEntry,
    ConfigResource,
    NewPartitions,
    NewTopic,
    ResourcePatternType,
    ResourceType,
)

DENIED = {
    KafkaError.TOPIC_AUTHORIZATION_FAILED,
    KafkaError.GROUP_AUTHORIZATION_FAILED,
    KafkaError.CLUSTER_AUTHORIZATION_FAILED,
}
Client = Callable[..., dict[str, Any]]
"""Gives the properties of a client that connects as the user."""

_SECONDS = 60.0


def tried_on_topics(client: Client, topics: Sequence[str], absent: Sequence[str]) -> dict[str, set[str]]:
    """Return for each operation the topics on which it was not refused. Every topic has a record at offset 0.

    Args:
        client: of the user.
        topics: topics that exist.
        absent: names for `create`, of topics that do not exist and are not created.
    """
    admin = AdminClient(client())
    resources = {name: ConfigResource(ResourceType.TOPIC, name) for name in topics}
    short = ConfigEntry("retention.ms", "1", incremental_operation=AlterConfigOpType.SET)
    altered = [ConfigResource(ResourceType.TOPIC, n, incremental_configs=[short]) for n in topics]
    futures: dict[str, Mapping[Any, Future[Any]]] = {
        "describe": admin.describe_topics(TopicCollection(list(topics)), request_timeout=_SECONDS),
        "create": admin.create_topics([NewTopic(name, 1, 1) for name in absent], validate_only=True),
        "delete": admin.delete_topics(list(topics)),
        "add partitions": admin.create_partitions([NewPartitions(name, 64) for name in topics]),
        "describe configs": admin.describe_configs(list(resources.values())),
        "alter configs": admin.incremental_alter_configs(altered),
    }
    tried = {operation: _allowed(found) for operation, found in futures.items()}
    # A client cannot find the leader of a topic that it may not see.
    seen = [TopicPartition(name, 0, 1) for name in sorted(tried["describe"])]
    tried["delete records"] = _allowed(admin.delete_records(seen)) if seen else set()
    tried["read"] = _readable(client, topics)
    tried["write"] = _writable(client, topics)
    return tried


def tried_on_groups(client: Client, groups: Iterable[str], topic: str) -> dict[str, set[str]]:
    """Return for each operation the groups on which it was not refused."""
    names = list(groups)
    admin = AdminClient(client())
    return {
        "describe": _allowed(admin.describe_consumer_groups(names, request_timeout=_SECONDS)),
        "delete": _allowed(admin.delete_consumer_groups(names, request_timeout=_SECONDS)),
        "read": {name for name in names if _may_commit(admin, name, topic)},
    }


def tried_on_cluster(client: Client) -> set[str]:
    """Return the operations on the whole cluster that were not refused."""
    admin = AdminClient(client())
    right = AclBinding(
        ResourceType.TOPIC,
        "granted",
        ResourcePatternType.LITERAL,
        "User:granted",
        "*",
        AclOperation.READ,
        AclPermissionType.ALLOW,
    )
    broker = ConfigResource(ResourceType.BROKER, "1")
    threads = ConfigEntry("num.io.threads", "9", incremental_operation=AlterConfigOpType.SET)
    altered = ConfigResource(ResourceType.BROKER, "1", incremental_configs=[threads])
    found: dict[str, Future[Any]] = {
        "grant rights": admin.create_acls([right])[right],
        "describe configs of a broker": admin.describe_configs([broker])[broker],
        "alter configs of a broker": admin.incremental_alter_configs([altered])[altered],
    }
    return _allowed(found)


def _allowed(futures: Mapping[Any, Future[Any]]) -> set[str]:
    return {
        key.topic if isinstance(key, TopicPartition) else getattr(key, "name", key)
        for key, future in futures.items()
        if not _refused(future)
    }


def _refused(future: Future[Any]) -> bool:
    try:
        future.result(_SECONDS)
    except KafkaException as error:
        return _denied(error.args[0])
    return False


def _denied(error: KafkaError) -> bool:
    """Whether an error refuses for want of a right; any other error says that the request was let through."""
    assert error.code() not in {KafkaError._TIMED_OUT, KafkaError._TRANSPORT}, error
    return error.code() in DENIED


def _readable(client: Client, topics: Sequence[str]) -> set[str]:
    consumer = Consumer(
        client() | {"group.id": "tried", "enable.auto.commit": False, "fetch.wait.max.ms": 20}
    )
    read: set[str] = set()
    refused: set[str] = set()
    give_up_at = time.monotonic() + _SECONDS
    try:
        for name in topics:
            # A client that may not see a topic waits for it without an end.
            described = consumer.list_topics(name, timeout=_SECONDS).topics[name].error
            if described is not None:
                assert _denied(described), described
                refused.add(name)
        consumer.assign([TopicPartition(name, 0, 0) for name in topics if name not in refused])
        while read | refused != set(topics):
            assert time.monotonic() < give_up_at, set(topics) - read - refused
            message = consumer.poll(1)
            if message is None:
                continue
            error = message.error()
            if error is None:
                read.add(message.topic())
            elif error.code() != KafkaError.GROUP_AUTHORIZATION_FAILED:
                # The client asks for the group's coordinator, too, though it joins no group.
                assert _denied(error), error
                refused.add(message.topic())
    finally:
        consumer.close()
    return read


def _writable(client: Client, topics: Sequence[str]) -> set[str]:
    # An idempotent producer that may write to no topic at all is refused before it tries one.
    producer = Producer(client() | {"acks": "all", "message.timeout.ms": int(_SECONDS * 1000)})
    written: set[str] = set()

    def note(error: KafkaError | None, message: Any) -> None:
        if error is None:
            written.add(message.topic())
        else:
            assert _denied(error), error

    for name in topics:
        producer.produce(name, b"tried", partition=0, on_delivery=note)
    assert producer.flush(_SECONDS) == 0
    return written


def _may_commit(admin: AdminClient, group: str, topic: str) -> bool:
    """Whether an offset can be committed, as members and administrators do; the group is checked before the topic."""
    wanted = ConsumerGroupTopicPartitions(group, [TopicPartition(topic, 0, 0)])
    (future,) = admin.alter_consumer_group_offsets([wanted], request_timeout=_SECONDS).values()
    try:
        errors = [place.error for place in future.result(_SECONDS).topic_partitions]
    except KafkaException as error:
        errors = [error.args[0]]
    return not any(error and error.code() == KafkaError.GROUP_AUTHORIZATION_FAILED for error in errors)
