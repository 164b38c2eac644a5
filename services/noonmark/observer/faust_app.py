"""The Faust application: one agent that reads outcomes from the offsets stored in Postgres.

Faust stores nothing here: no table, no changelog, no web server. The offsets that it commits to Kafka only
serve monitoring of the group: on every assignment of partitions, the consumer seeks to the stored offsets.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any, Final, cast

import faust
from faust.app.base import BootStrategy
from faust.transport.drivers import aiokafka as driver
from faust.types import TP

from noonmark.kafka.config import KafkaConfig
from noonmark.kafka.topics import Topics
from noonmark.observer.credentials import broker_urls, credentials
from noonmark.observer.records import Record
from noonmark.store.alerts.statistics import Place

BATCH: Final = 1000
WITHIN_SECONDS: Final = 0.25


Places = Callable[[Sequence[Place]], Awaitable[Mapping[int, int]]]
"""Returns the offset from which to read each partition."""

Take = Callable[[Sequence[Record]], Awaitable[Sequence[int]]]
"""Stores a batch; returns the partitions that must seek to the stored offset again."""


class TopicMissingError(Exception):
    """The topic does not exist; the message names it."""


class _Boot(BootStrategy):
    """Starts no producer, because the observer writes to Kafka only through the outbox."""

    enable_kafka_producer = False
    enable_web = False


class _App(faust.App):
    BootStrategy = _Boot

    async def on_first_start(self) -> None:
        """Create no folders, because nothing is stored in files."""


class _Consumer(driver.Consumer):
    """Seeks to the stored offsets instead of the committed ones."""

    places: Places
    topic: str

    async def on_partitions_assigned(self, assigned: set[TP], generation_id: int = 0) -> None:
        """Accept an assignment. If other members own all partitions, report that there is nothing to seek."""
        await super().on_partitions_assigned(assigned, generation_id)
        # Use the client's metadata: only on the group's leader does Faust know the topic's partitions.
        known = self._thread._ensure_consumer().partitions_for_topic(self.topic)  # noqa: SLF001
        if not assigned and not known:
            # Nothing would report that the topic exists again.
            missing = f"topic {self.topic} does not exist; create it with `noonmark db migrate`"
            await self.crash(TopicMissingError(missing))
        elif not assigned:
            await self.places([])

    async def perform_seek(self) -> None:
        """Seek in all assigned partitions."""
        await super().perform_seek()
        await self.seek_stored(self.assignment())

    async def seek_stored(self, assigned: Any) -> None:
        """Seek partitions to the offsets stored in Postgres."""
        mine = [tp for tp in assigned if tp.topic == self.topic]
        if not mine:
            return
        firsts, ends = await self.earliest_offsets(*mine), await self.highwaters(*mine)
        places = [Place(tp.partition, firsts[tp] or 0, ends[tp] or 0) for tp in mine]
        for partition, offset in (await self.places(places)).items():
            await self.seek(TP(self.topic, partition), offset)


class _Transport(driver.Transport):
    Consumer = _Consumer


def make_app(config: KafkaConfig, topics: Topics, places: Places, take: Take) -> faust.App:
    """Create the application; the caller starts and stops it in its own event loop.

    Raises:
        CredentialsError: Faust's client does not support the settings.
    """
    app = _App(
        topics.group_observer,
        broker=broker_urls(config.bootstrap),
        broker_credentials=credentials(config),
        broker_client_id="noonmark",
        consumer_auto_offset_reset="earliest",
        broker_session_timeout=10.0,
        broker_heartbeat_interval=3.0,
        broker_request_timeout=30.0,
        stream_wait_empty=False,
        stream_buffer_maxsize=2 * BATCH,
        topic_allow_declare=False,
        topic_disable_leader=True,
        web_enabled=False,
        key_serializer="raw",
        value_serializer="raw",
        autodiscover=False,
    )
    app.transport = _Transport(app.conf.broker_consumer, app)
    consumer = cast("_Consumer", app.consumer)
    consumer.places, consumer.topic = places, topics.lifecycle
    # Faust loses records if several tasks of one process read from a partition, so there is only one task.
    app.agent(app.topic(topics.lifecycle, value_serializer="raw"), name="outcomes", concurrency=1)(
        _agent(app, topics.lifecycle, take)
    )
    return app


def _agent(app: faust.App, topic: str, take: Take) -> Callable[[Any], Awaitable[None]]:
    async def outcomes(stream: Any) -> None:
        async for events in stream.take_events(BATCH, within=WITHIN_SECONDS):
            consumer = cast("_Consumer", app.consumer)
            to_seek = await take([_record(event.message, consumer) for event in events])
            if to_seek:
                await consumer.seek_stored([TP(topic, partition) for partition in to_seek])

    return outcomes


def _record(message: Any, consumer: Any) -> Record:
    return Record(
        message.partition, message.offset, message.timestamp, message.value, consumer.highwater(message.tp)
    )
