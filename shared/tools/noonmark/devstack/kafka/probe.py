"""Checks that a broker is ready by producing and consuming a record, not by an open port."""

from __future__ import annotations

import contextlib
import time
import uuid
from collections.abc import Callable, Iterator
from typing import Any

from confluent_kafka import Consumer, KafkaException, Producer, TopicPartition
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic

from noonmark.devstack.processes.errors import DevStackError
from noonmark.devstack.processes.patience import Wait

_REQUEST_SECONDS = 5.0
_PREFIX = "noonmark-readiness-"


def _client_config(bootstrap: str) -> dict[str, Any]:
    # A broker that is still starting refuses connections: expected here, so not worth a log line.
    # The short intervals keep the library from sleeping through the moment the broker is ready.
    return {
        "bootstrap.servers": bootstrap,
        "log_level": 0,
        "error_cb": lambda _error: None,
        "retry.backoff.ms": 20,
        "reconnect.backoff.ms": 20,
        "topic.metadata.refresh.fast.interval.ms": 20,
    }


def wait_ready(bootstrap: str, *, alive: Callable[[], bool], wait: Wait) -> bool:
    """Waits until an idempotent record can be produced and consumed through a group.

    The throwaway topic and group are deleted again.

    Args:
        bootstrap: Address of the broker.
        alive: Returns whether the broker's process still runs.
        wait: How long it may take.

    Returns:
        False if the process has stopped instead.

    Raises:
        DevStackError: It runs but did not become ready in time.
    """
    admin = AdminClient(_client_config(bootstrap))
    while alive():
        try:
            _round_trip(admin, bootstrap, alive, wait)
        except (KafkaException, TimeoutError) as error:
            wait.check(f"it accepts no record: {error}")
        else:
            return True
        time.sleep(0.05)
    return False


def require_reachable(bootstrap: str) -> None:
    """Checks a broker that the environment names, without leaving a trace on it.

    Raises:
        DevStackError: It does not answer.
    """
    try:
        AdminClient(_client_config(bootstrap)).list_topics(timeout=2 * _REQUEST_SECONDS)
    except KafkaException as error:
        raise DevStackError(
            f"No Kafka answers at {bootstrap}, given by NOONMARK_KAFKA_BOOTSTRAP: {error.args[0].str()}.",
            remedy="Start it, correct the address, or unset the variable so that the stack starts its own.",
        ) from error


def _round_trip(admin: AdminClient, bootstrap: str, alive: Callable[[], bool], wait: Wait) -> None:
    # The consumer first: it makes the broker create its offsets topic and load its group
    # coordinator, the last parts to come up, while the producer waits for its id.
    with _topic(admin) as topic, _consumer(bootstrap, topic) as consumer:
        _produce(bootstrap, topic, alive, wait)
        _consume(consumer, alive, wait)
        with contextlib.suppress(KafkaException):
            # It is empty, and an older broker may not delete it yet.
            admin.delete_consumer_groups([topic])[topic].result(_REQUEST_SECONDS)


def _produce(bootstrap: str, topic: str, alive: Callable[[], bool], wait: Wait) -> None:
    failures: list[Any] = []
    producer = Producer({**_client_config(bootstrap), "enable.idempotence": True, "linger.ms": 0})
    producer.produce(topic, b"ready", on_delivery=lambda error, _message: failures.append(error))
    # In short calls: one long call would delay Ctrl-C.
    while producer.flush(0.2) and alive():
        wait.check("a record is not acknowledged")
    if failures != [None]:
        raise TimeoutError(f"a record was not acknowledged ({failures or 'no reply'})")


@contextlib.contextmanager
def _consumer(bootstrap: str, topic: str) -> Iterator[Consumer]:
    group = {"group.id": topic, "enable.auto.commit": False, "auto.offset.reset": "earliest"}
    consumer = Consumer({**_client_config(bootstrap), **group})
    try:
        # Assigned, not subscribed: a join would cost seconds.
        consumer.assign([TopicPartition(topic, 0, 0)])
        yield consumer
    finally:
        consumer.close()


def _consume(consumer: Consumer, alive: Callable[[], bool], wait: Wait) -> None:
    while alive():
        message = consumer.poll(0.2)
        if message is not None and message.error() is None:
            consumer.commit(message=message, asynchronous=False)
            return
        wait.check("a record was produced but is not consumed")
    raise TimeoutError("a record was produced but could not be consumed")


@contextlib.contextmanager
def _topic(admin: AdminClient) -> Iterator[str]:
    name = f"{_PREFIX}{uuid.uuid4().hex[:12]}"
    created = admin.create_topics([NewTopic(name, num_partitions=1)], request_timeout=_REQUEST_SECONDS)
    created[name].result(_REQUEST_SECONDS)
    try:
        yield name
    finally:
        admin.delete_topics([name], request_timeout=_REQUEST_SECONDS)[name].result(_REQUEST_SECONDS)
