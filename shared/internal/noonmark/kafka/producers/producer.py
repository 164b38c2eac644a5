"""The relay's producer: sends a batch; returns for each message that it was acknowledged, or why not."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, Final

from confluent_kafka import KafkaError, KafkaException, Producer

from noonmark.kafka.config import KafkaConfig
from noonmark.kafka.fatal import fatal_error
from noonmark.kafka.producers.delivery import (
    UNKNOWN_TOPIC_CODES,
    WHOLE_BATCH_CODES,
    DeliveryFailure,
    OutboundMessage,
    absent_topic,
    classify,
    restore_order,
    unacknowledged_topic,
    unconfirmed_topic,
    unknown_outcome,
)
from noonmark.kafka.producers.topic_directory import Presence, TopicDirectory

_log = logging.getLogger(__name__)

_STEP_SECONDS: Final = 0.25
_METADATA_SECONDS: Final = 2.0
_LOG_EVERY_SECONDS: Final = 10.0

Errors = dict[int, KafkaError]
Callback = Callable[[KafkaError | None, Any], None]


def _never() -> bool:
    return False


def _ignore(_seconds: float) -> None:
    return None


@dataclass(frozen=True, slots=True)
class BatchResult:
    """The outcome of one `send_batch`, by the messages' positions in the batch.

    Attributes:
        count: messages in the batch.
        failed: position to failure. All other messages were acknowledged by the brokers.
    """

    count: int
    failed: Mapping[int, DeliveryFailure]

    @property
    def all_acknowledged(self) -> bool:
        """Whether nothing failed: the hot path, which needs no check of single positions."""
        return not self.failed

    def acknowledged(self) -> Iterator[int]:
        """Yield the positions of the acknowledged messages, in order."""
        failed = self.failed
        return (index for index in range(self.count) if index not in failed)


class RelayProducer:
    """Sends batches with the idempotent producer and waits for their acknowledgements.

    One thread owns it. Messages of one topic and key are acknowledged in the order of the batch. If one of
    them fails for a transient reason, those after it are reported as failed too, even if a broker has written
    them: sent again they are duplicates, which consumers drop, instead of a silent change of order.

    Args:
        config: the cluster.
        delivery_timeout_seconds: a message without acknowledgement for this long has failed (transient).
        linger_seconds: how long librdkafka gathers messages while a batch is enqueued; the wait for the
            acknowledgements sends at once.
        should_stop: called at every step of a wait; True ends the wait, and messages that were not
            acknowledged are reported as transient failures.
        on_wait: called at every step of a wait with the seconds waited in this `send_batch`, so that the
            caller can report that it is alive, and how long the brokers have been away.
        hold_unseen: a batch with a message for a topic that the cluster does not list waits a moment, in
            case the topic was just created. If False, that message fails as transient at once, and the rest
            of the batch does not wait.
        blame_topics: ask the cluster after a timeout, so that the failure tells a topic that acknowledges
            nothing from a cluster that does not answer.
        properties: additional librdkafka properties.
    """

    def __init__(
        self,
        config: KafkaConfig,
        *,
        delivery_timeout_seconds: float = 30.0,
        linger_seconds: float = 0.002,
        should_stop: Callable[[], bool] = _never,
        on_wait: Callable[[float], None] = _ignore,
        hold_unseen: bool = True,
        blame_topics: bool = False,
        properties: Mapping[str, Any] | None = None,
    ) -> None:
        self._bootstrap = config.bootstrap
        self._should_stop = should_stop
        self._on_wait = on_wait
        self._hold_unseen = hold_unseen
        self._blame_topics = blame_topics
        self._properties = config.client(client_id="noonmark-relay", error_cb=self._client_error) | {
            "enable.idempotence": True,
            "acks": "all",
            "compression.type": "lz4",
            "linger.ms": linger_seconds * 1000,
            "message.timeout.ms": round(delivery_timeout_seconds * 1000),
            # Keys go to the same partitions as with the Java clients, so that both kinds of tools agree.
            "partitioner": "murmur2_random",
            "queue.buffering.max.messages": 100_000,
            "queue.buffering.max.kbytes": 131_072,
            # The topic directory detects missing topics sooner; this bounds the case of a topic deleted
            # while it was in use.
            "topic.metadata.propagation.max.ms": 3_000,
            # Acknowledgements then cost no callback: after a complete flush, all messages without an
            # error were acknowledged.
            "delivery.report.only.error": True,
            **(properties or {}),
        }
        self._producer = Producer(self._properties)
        self._directory = TopicDirectory(self._list_topics)
        self._metadata_seconds = min(_METADATA_SECONDS, delivery_timeout_seconds)
        self._errors: Errors = {}
        self._callbacks: list[Callback] = []
        self._fatal = False
        self._stopped = False
        self._unresolved = False
        self._last_error: KafkaError | None = None
        self._started_at = 0.0
        self._logged_at: dict[int, float] = {}

    def send_batch(self, messages: Sequence[OutboundMessage]) -> BatchResult:
        """Send a batch and wait until every message is acknowledged or has failed.

        Bounded by the delivery timeout (twice, if single messages must be tried again) and by `should_stop`.
        Failures of messages are returned, not raised.
        """
        self._started_at = time.monotonic()
        self._errors.clear()
        self._stopped = self._unresolved = False
        # One callback per position, used again in every batch: `produce` then allocates none.
        for index in range(len(self._callbacks), len(messages)):
            self._callbacks.append(_recorder(self._errors, index))
        failed: dict[int, DeliveryFailure] = {}
        held = self._hold_back(messages, failed)
        if held or failed:
            self._enqueue(messages, (i for i in range(len(messages)) if i not in held and i not in failed))
        else:
            self._enqueue_all(messages)
        self._await_acknowledgements()
        if held:
            self._send_held(messages, held, failed)
        if self._errors:
            self._resolve_errors(messages, failed)
        if self._unresolved:
            # Some delivery reports are missing: without an error nothing is known, so all are sent again.
            failed.update(
                (index, unknown_outcome(message.topic))
                for index, message in enumerate(messages)
                if index not in failed
            )
        if self._stopped or self._fatal:
            self._replace()
        return BatchResult(len(messages), failed)

    def partitions(self, topic: str) -> int:
        """Return the number of a topic's partitions; 0 if it is not known."""
        return self._directory.partitions(topic)

    def close(self, timeout_seconds: float = 5.0) -> None:
        """Wait briefly for messages in flight and release the client. Between batches there are none."""
        if self._serve(self._producer.flush, timeout_seconds):
            self._producer.purge()
        self._close()

    # -- enqueueing --------------------------------------------------------------------------------

    def _enqueue_all(self, messages: Sequence[OutboundMessage]) -> None:
        """The hot path: no test per message beyond the exceptions librdkafka raises."""
        index = 0
        for index, (message, callback) in enumerate(zip(messages, self._callbacks, strict=False)):  # noqa: B007
            try:
                self._produce(message, callback)
            except (BufferError, KafkaException):
                break
        else:
            return
        self._enqueue(messages, range(index, len(messages)))

    def _enqueue(self, messages: Sequence[OutboundMessage], indexes: Iterable[int]) -> None:
        for index in indexes:
            message, callback = messages[index], self._callbacks[index]
            while True:
                try:
                    self._produce(message, callback)
                except BufferError:
                    if self._step_polling():
                        continue
                    self._errors[index] = KafkaError(KafkaError._QUEUE_FULL)  # noqa: SLF001
                except KafkaException as error:
                    self._errors[index] = error.args[0]
                break

    def _produce(self, message: OutboundMessage, callback: Callback) -> None:
        self._producer.produce(
            message.topic,
            message.value,
            message.key,
            message.partition,
            callback,
            None,
            message.timestamp_ms,
            message.headers,
        )

    def _hold_back(
        self, messages: Sequence[OutboundMessage], failed: dict[int, DeliveryFailure]
    ) -> dict[int, str]:
        """Return the messages whose topic was not found at first; fail those whose topic is absent."""
        unseen = {message.topic for message in messages} - self._directory.present.keys()
        if not unseen:
            return {}
        presence = self._directory.lookup(unseen)
        held: dict[int, str] = {}
        for index, message in enumerate(messages):
            match presence.get(message.topic):
                case Presence.ABSENT:
                    failed[index] = absent_topic(message.topic, self._bootstrap)
                case Presence.SUSPECT if self._hold_unseen:
                    held[index] = message.topic
                case Presence.SUSPECT:
                    failed[index] = unconfirmed_topic(message.topic, self._bootstrap)
        return held

    def _send_held(
        self, messages: Sequence[OutboundMessage], held: dict[int, str], failed: dict[int, DeliveryFailure]
    ) -> None:
        """Look up topics that were absent once more, after the grace period; the other messages are sent."""
        topics = frozenset(held.values())
        while (left := self._directory.wait_seconds(topics)) > 0 and not self._stopping():
            self._on_wait(time.monotonic() - self._started_at)
            time.sleep(min(left, _STEP_SECONDS))
        presence = self._directory.lookup(topics)
        sending = []
        for index, topic in held.items():
            if presence[topic] is Presence.ABSENT:
                failed[index] = absent_topic(topic, self._bootstrap)
            elif presence[topic] is Presence.SUSPECT:
                failed[index] = unconfirmed_topic(topic, self._bootstrap)
            else:
                sending.append(index)
        self._enqueue(messages, sending)
        self._await_acknowledgements()

    # -- waiting -----------------------------------------------------------------------------------

    def _await_acknowledgements(self) -> None:
        while self._serve(self._producer.flush, _STEP_SECONDS):
            self._on_wait(time.monotonic() - self._started_at)
            if self._stopping():
                self._producer.purge()
                self._unresolved = self._serve(self._producer.flush, 1.0) > 0 or self._unresolved
                return

    def _step_polling(self) -> bool:
        """Free space in the local queue; False if the caller should give up."""
        self._serve(self._producer.poll, _STEP_SECONDS)
        self._on_wait(time.monotonic() - self._started_at)
        return not self._stopping()

    def _stopping(self) -> bool:
        if not self._stopped and self._should_stop():
            self._stopped = True
        return self._stopped

    # -- errors ------------------------------------------------------------------------------------

    def _serve(self, call: Callable[[float], int], seconds: float) -> int:
        """Poll or flush; return what it returned, or the messages left when the producer ended."""
        try:
            return call(seconds)
        except (KafkaException, SystemError) as error:
            self._client_error(fatal_error(error))
            self._unresolved = True
            return len(self._producer)

    def _resolve_errors(
        self, messages: Sequence[OutboundMessage], failed: dict[int, DeliveryFailure]
    ) -> None:
        # A message that failed at first loses its place in its key's order, even if a second try succeeds.
        displaced = sorted(self._errors)
        self._retry_unknown_topics(messages, failed)
        self._isolate(messages)
        blamed = self._timed_out() if self._blame_topics else frozenset()
        for index, error in self._errors.items():
            self._fatal = self._fatal or error.fatal() or error.code() == KafkaError._FATAL  # noqa: SLF001
            topic = messages[index].topic
            failed[index] = (
                unacknowledged_topic(topic, error.str())
                if index in blamed
                else classify(error, topic, self._last_error)
            )
        restore_order(messages, displaced, failed)

    def _timed_out(self) -> frozenset[int]:
        """Return the messages that were not acknowledged in time, if the cluster answers; otherwise none."""
        late = frozenset(i for i, e in self._errors.items() if e.code() == KafkaError._MSG_TIMED_OUT)  # noqa: SLF001
        return late if late and not self._stopping() and self._list_topics() is not None else frozenset()

    def _retry_unknown_topics(
        self, messages: Sequence[OutboundMessage], failed: dict[int, DeliveryFailure]
    ) -> None:
        """Send once more if the cluster has the topic: librdkafka may have forgotten one created again."""
        again = {
            i: messages[i].topic for i, e in sorted(self._errors.items()) if e.code() in UNKNOWN_TOPIC_CODES
        }
        if not again or self._stopping():
            return
        for topic in set(again.values()):
            self._directory.doubt(topic)
        presence = self._directory.lookup(set(again.values()))
        if Presence.SUSPECT in presence.values():
            for index in again:
                del self._errors[index]
            self._send_held(messages, again, failed)
            return
        sending = [index for index, topic in again.items() if presence[topic] is Presence.PRESENT]
        for index, topic in again.items():
            if presence[topic] is Presence.ABSENT:
                del self._errors[index]
                failed[index] = absent_topic(topic, self._bootstrap)
        for index in sending:
            del self._errors[index]
        self._enqueue(messages, sending)
        self._await_acknowledgements()

    def _isolate(self, messages: Sequence[OutboundMessage]) -> None:
        """Find the invalid message of a request refused as a whole, by sending its messages one by one."""
        suspects = sorted(i for i, e in self._errors.items() if e.code() in WHOLE_BATCH_CODES)
        if len(suspects) < 2:
            return
        for index in suspects:
            if self._stopping():
                self._errors[index] = KafkaError(KafkaError._INVALID_DIFFERENT_RECORD)  # noqa: SLF001
                continue
            del self._errors[index]
            self._enqueue(messages, (index,))
            self._await_acknowledgements()

    def _client_error(self, error: KafkaError) -> None:
        now = time.monotonic()
        if now - self._logged_at.get(error.code(), -_LOG_EVERY_SECONDS) >= _LOG_EVERY_SECONDS:
            self._logged_at[error.code()] = now
            _log.warning("producer: %s (%s)", error.str(), error.name())
        self._fatal = self._fatal or error.fatal()
        self._last_error = error

    def _close(self) -> None:
        with suppress(KafkaException, SystemError):
            # Its fatal error, if it was not raised before.
            self._producer.close()

    def _replace(self) -> None:
        """Create a new producer: after a fatal error, or if a batch was abandoned while in flight."""
        if self._fatal:
            _log.error(
                "producer: fatal error; creating a new producer, unacknowledged messages are sent again"
            )
        self._producer.purge()
        self._close()
        self._producer = Producer(self._properties)
        self._fatal = False

    # -- helpers -----------------------------------------------------------------------------------

    def _list_topics(self) -> Mapping[str, int] | None:
        try:
            metadata = self._producer.list_topics(timeout=self._metadata_seconds)
        except KafkaException:
            return None
        return {name: len(topic.partitions) for name, topic in metadata.topics.items() if topic.error is None}


def _recorder(errors: Errors, index: int) -> Callback:
    def record(error: KafkaError | None, _message: Any) -> None:
        if error is not None:
            errors[index] = error

    return record
