"""Creating topics. Every process may call this at every start."""

from __future__ import annotations

import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final

from confluent_kafka import KafkaError, KafkaException
from confluent_kafka.admin import AdminClient, NewTopic  # type: ignore[attr-defined]

from noonmark.kafka.config import KafkaConfig
from noonmark.kafka.refusals import refusal
from noonmark.kafka.rights import Operation
from noonmark.kafka.topics import TopicSpec

_HINTS: Final = {
    KafkaError.INVALID_REPLICATION_FACTOR: "lower the replication factor, or start more brokers",
    KafkaError.INVALID_PARTITIONS: "set a partition count of at least 1",
    KafkaError.TOPIC_EXCEPTION: "choose a topic prefix of letters, digits, '.', '_' and '-'",
    KafkaError.POLICY_VIOLATION: "the brokers' policy refused it; create it by hand as the policy requires",
}


class TopicError(Exception):
    """A topic could not be created or looked up; the message says which, why and what to do."""


@dataclass(frozen=True, slots=True)
class EnsuredTopics:
    """What `ensure_topics` found and created.

    Attributes:
        created: names of topics that this call created.
        existing: names that existed before, or that another process created meanwhile.
        narrower: existing topics with fewer partitions than requested: name to (actual, requested).
    """

    created: tuple[str, ...]
    existing: tuple[str, ...]
    narrower: dict[str, tuple[int, int]]


def ensure_topics(
    config: KafkaConfig, specs: Iterable[TopicSpec], *, timeout_seconds: float = 30.0
) -> EnsuredTopics:
    """Create the missing topics and wait until every partition has a leader.

    Existing topics are never changed. Several processes may do this at once.

    Raises:
        TopicError: no broker answered in time, or Kafka refused to create a topic.
    """
    deadline = time.monotonic() + timeout_seconds
    client = AdminClient(config.client(client_id="noonmark-admin"))
    wanted = {spec.name: spec for spec in specs}
    present = _partition_counts(client, config, timeout_seconds)
    missing = [spec for name, spec in wanted.items() if name not in present]
    created = _create(client, missing, deadline) if missing else ()
    if missing:
        present = _await_leaders(client, config, wanted, deadline)
    return EnsuredTopics(
        created=created,
        existing=tuple(name for name in wanted if name not in created),
        narrower={
            name: (present[name], spec.partitions)
            for name, spec in wanted.items()
            if 0 < present[name] < spec.partitions
        },
    )


def _partition_counts(client: AdminClient, config: KafkaConfig, timeout_seconds: float) -> dict[str, int]:
    """Return the number of partitions per topic; 0 while a partition has no leader."""
    try:
        # All topics: a request for one by name could create it if brokers create topics on demand.
        metadata = client.list_topics(timeout=max(timeout_seconds, 0.1))
    except KafkaException as error:
        raise TopicError(
            f"no Kafka broker answered at {config.bootstrap} within {timeout_seconds:.0f} s"
            f" ({error.args[0].str()}); check the address and that the broker is up"
        ) from error
    return {
        name: len(topic.partitions) if all(p.leader >= 0 for p in topic.partitions.values()) else 0
        for name, topic in metadata.topics.items()
    }


def _create(client: AdminClient, specs: Sequence[TopicSpec], deadline: float) -> tuple[str, ...]:
    remaining = max(deadline - time.monotonic(), 1.0)
    futures = client.create_topics(
        [
            NewTopic(
                spec.name,
                num_partitions=spec.partitions,
                replication_factor=spec.replication,
                config=spec.config,
            )
            for spec in specs
        ],
        operation_timeout=remaining,
        request_timeout=remaining,
    )
    created: list[str] = []
    refused: list[str] = []
    for name, future in futures.items():
        try:
            future.result()
        except KafkaException as error:
            reason: KafkaError = error.args[0]
            if reason.code() == KafkaError.TOPIC_ALREADY_EXISTS:
                continue
            hint = refusal(reason, Operation.CREATE, topic=name) or _HINTS.get(reason.code())
            refused.append(f"{name}: {reason.str()}" + (f" ({hint})" if hint else ""))
        else:
            created.append(name)
    if refused:
        raise TopicError("Kafka refused to create " + "; ".join(refused))
    return tuple(created)


def _await_leaders(
    client: AdminClient, config: KafkaConfig, wanted: Iterable[str], deadline: float
) -> dict[str, int]:
    names = tuple(wanted)
    while True:
        present = _partition_counts(client, config, max(deadline - time.monotonic(), 1.0))
        waiting = [name for name in names if not present.get(name)]
        if not waiting:
            return present
        if time.monotonic() >= deadline:
            raise TopicError(
                f"topics created, but still without a leader: {', '.join(waiting)}; check the brokers' state"
            )
        time.sleep(0.05)
