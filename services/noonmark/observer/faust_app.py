"""The Faust application: one agent on the outcomes, which begins where Postgres says and nowhere else.

Faust keeps nothing here: no table, no changelog, no web server. The offsets it commits to Kafka are for those
who look at the group; on every assignment of partitions the stored place is sought, whatever was committed.
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
"""Tells from which offset each partition is to be read."""

Take = Callable[[Sequence[Record]], Awaitable[Sequence[int]]]
"""Stores a batch; returns the partitions that must be sought again."""


class TopicMissingError(Exception):
    """The topic is not there; the message names it."""


class _Boot(BootStrategy):
    """Starts no producer: the observer writes to Kafka through the outbox alone."""

    enable_kafka_producer = False
    enable_web = False


class _App(faust.App):
    BootStrategy = _Boot

    async def on_first_start(self) -> None:
        """Make no folders: nothing is kept in files."""


class _Consumer(driver.Consumer):
    """Seeks the stored places instead of the committed ones."""

    places: Places
    topic: str

    async def on_partitions_assigned(self, assigned: set[TP], generation_id: int = 0) -> None:
        """Take partitions; where others have them all, nothing is to be sought, and that is said."""
        await super().on_partitions_assigned(assigned, generation_id)
        # The client's own view: what Faust says of a topic is known to the leader of the group alone.
        known = self._thread._ensure_consumer().partitions_for_topic(self.topic)  # noqa: SLF001
        if not assigned and not known:
            # Nothing would tell of its return.
            missing = f"there is no topic {self.topic}: `noonmark db migrate` makes it"
            await self.crash(TopicMissingError(missing))
        elif not assigned:
            await self.places([])

    async def perform_seek(self) -> None:
        """Seek what is assigned."""
        await super().perform_seek()
        await self.seek_stored(self.assignment())

    async def seek_stored(self, assigned: Any) -> None:
        """Seek partitions to where Postgres says."""
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
    """Make the application; the caller starts and stops it in an event loop of its own.

    Raises:
        CredentialsError: Faust's client cannot do what the settings ask for.
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
    # Faust loses records where several tasks of one process take from a partition: there is one.
    app.agent(app.topic(topics.lifecycle, value_serializer="raw"), name="outcomes", concurrency=1)(
        _agent(app, topics.lifecycle, take)
    )
    return app


def _agent(app: faust.App, topic: str, take: Take) -> Callable[[Any], Awaitable[None]]:
    async def outcomes(stream: Any) -> None:
        async for events in stream.take_events(BATCH, within=WITHIN_SECONDS):
            consumer = cast("_Consumer", app.consumer)
            again = await take([_record(event.message, consumer) for event in events])
            if again:
                await consumer.seek_stored([TP(topic, partition) for partition in again])

    return outcomes


def _record(message: Any, consumer: Any) -> Record:
    return Record(
        message.partition, message.offset, message.timestamp, message.value, consumer.highwater(message.tp)
    )
