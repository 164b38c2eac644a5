"""What consumer groups have committed, as the brokers keep it."""

from __future__ import annotations

from collections.abc import Iterable

from confluent_kafka import Consumer, TopicPartition

Place = tuple[str, int]
"""A topic and a partition."""


class Commits:
    """Reads the commits of groups with a client for each, which joins nothing.

    Not with an admin client: librdkafka ends the process when a broker answers such a one that it does
    not coordinate the group.
    """

    def __init__(self, bootstrap: str) -> None:
        self._bootstrap = bootstrap
        self._clients: dict[str, Consumer] = {}

    def of(self, group: str, places: Iterable[Place]) -> dict[Place, TopicPartition]:
        """The commits of a group, where there are any."""
        if group not in self._clients:
            self._clients[group] = Consumer(
                {"bootstrap.servers": self._bootstrap, "group.id": group, "enable.auto.commit": False}
            )
        asked = [TopicPartition(*place) for place in places]
        found = self._clients[group].committed(asked, timeout=20)
        assert not [held.error for held in found if held.error]
        return {(held.topic, held.partition): held for held in found if held.offset >= 0}

    def close(self) -> None:
        """Release the clients."""
        for client in self._clients.values():
            client.close()
        self._clients.clear()
