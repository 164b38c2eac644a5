"""The committed offsets of consumer groups, read from outside."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Final

from confluent_kafka import Consumer, KafkaError, KafkaException, TopicPartition

from noonmark.kafka.config import KafkaConfig
from noonmark.kafka.refusals import refusal
from noonmark.kafka.rights import Operation

__all__ = ["Committed", "GroupOffsets"]

_AT_ONCE: Final = 8
_LEAST_SECONDS: Final = 0.5
_KEEP_SECONDS: Final = 60.0
_EVENTS_AT_ONCE: Final = 1000


@dataclass(frozen=True, slots=True)
class Committed:
    """The committed offsets of several groups.

    Attributes:
        offsets: (group, topic, partition) to the commit; partitions without a commit are left out.
        errors: group to a sentence that says why it could not be read.
    """

    offsets: Mapping[tuple[str, str, int], TopicPartition]
    errors: Mapping[str, str]


class GroupOffsets:
    """Reads committed offsets; joins no group and commits nothing. One thread owns it.

    Every group has its own client, which is kept while the group is read. One `AdminClient` could serve all,
    but its `list_consumer_group_offsets` must not be used: when a broker answers that it does not coordinate
    the group (any more), as it may after every restart or move of a coordinator, librdkafka dereferences the
    consumer group that an admin client does not have, and the process ends by SIGSEGV (`rd_kafka_cgrp_op`,
    called by `rd_kafka_handle_OffsetFetch`; 2.16 still does).

    Args:
        config: the cluster.
        timeout_seconds: the timeout of each group; `read` bounds the total, too.
    """

    def __init__(self, config: KafkaConfig, *, timeout_seconds: float = 5.0) -> None:
        self._config = config
        self._timeout = timeout_seconds
        self._clients: dict[str, Consumer] = {}
        self._read_at: dict[str, float] = {}

    def read(self, wanted: Mapping[str, Sequence[TopicPartition]]) -> Committed:
        """Read some partitions of each group. A group that fails stops no other.

        Groups that do not answer cost the timeout once, and half a second for every eight of them after
        the first ones.
        """
        started_at = time.monotonic()
        for group in wanted:
            if group not in self._clients:
                self._clients[group] = self._new_client(group)
            self._read_at[group] = started_at
        offsets: dict[tuple[str, str, int], TopicPartition] = {}
        errors: dict[str, str] = {}
        least = min(_LEAST_SECONDS, self._timeout)

        def fetch(group: str) -> list[TopicPartition] | str:
            left = started_at + self._timeout - time.monotonic()
            return _committed(self._clients[group], group, wanted[group], max(left, least))

        with ThreadPoolExecutor(_AT_ONCE, thread_name_prefix="group-offsets") as pool:
            for group, answer in zip(wanted, pool.map(fetch, wanted), strict=True):
                if isinstance(answer, str):
                    errors[group] = f"group {group}: {answer}"
                    continue
                for tp in answer:
                    if tp.error is not None:
                        errors[group] = f"group {group}: {_reported(tp.error, group)}"
                    elif tp.offset >= 0:
                        offsets[group, tp.topic, tp.partition] = tp
        self._release([group for group, at in self._read_at.items() if at < started_at - _KEEP_SECONDS])
        return Committed(offsets, errors)

    def close(self) -> None:
        """Release the clients."""
        self._release(list(self._clients))

    def _release(self, groups: Sequence[str]) -> None:
        for group in groups:
            self._read_at.pop(group, None)
            self._clients.pop(group).close()

    def _new_client(self, group: str) -> Consumer:
        return Consumer(
            self._config.client(client_id="noonmark-lag-offsets")
            | {"group.id": group, "enable.auto.commit": False, "enable.auto.offset.store": False}
        )


def _committed(
    client: Consumer, group: str, partitions: Sequence[TopicPartition], timeout_seconds: float
) -> list[TopicPartition] | str:
    """Return the commits of a client's group, or the reason why they could not be read."""
    try:
        return client.committed(list(partitions), timeout=timeout_seconds)
    except KafkaException as error:
        return _reported(error.args[0], group)
    finally:
        # Log lines and errors wait for a poll; without one an outage would fill memory with them.
        for _ in range(_EVENTS_AT_ONCE):
            if client.poll(0) is None:
                break


def _reported(error: KafkaError, group: str) -> str:
    return refusal(error, Operation.DESCRIBE, group=group) or error.str()
