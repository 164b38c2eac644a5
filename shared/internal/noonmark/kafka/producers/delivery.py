"""Messages to publish, and why one was not acknowledged."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

import msgspec
from confluent_kafka import KafkaError

from noonmark.kafka.refusals import WHERE_RIGHTS_ARE, refusal
from noonmark.kafka.rights import Operation

Header = tuple[str, str | bytes | None]


class OutboundMessage(msgspec.Struct, frozen=True, gc=False):
    """One message to publish. Messages with the same place keep their order.

    Attributes:
        topic: its topic.
        key: its key, if any; it selects the partition unless one is given.
        value: its body.
        headers: its headers, if any.
        partition: its partition; -1 if the key selects it.
        timestamp_ms: its time, milliseconds since 1970, unless the topic has that of the brokers; 0 for the
            client's clock.
    """

    topic: str
    key: bytes | None
    value: bytes
    headers: list[Header] | None = None
    partition: int = -1
    timestamp_ms: int = 0

    @property
    def place(self) -> tuple[str, bytes | int | None]:
        """Messages with the same place keep their order; None in it if no order is kept."""
        return self.topic, self.key if self.partition < 0 else self.partition


class FailureKind(StrEnum):
    """Whether sending the same message again can help."""

    PERMANENT = "permanent"
    TRANSIENT = "transient"


@dataclass(frozen=True, slots=True)
class DeliveryFailure:
    """Why a message was not acknowledged.

    Attributes:
        kind: permanent failures will fail again; messages with transient ones are to be sent again.
        code: the short name of the cause, from a fixed set (usable as a metric label).
        reason: a sentence for people.
    """

    kind: FailureKind
    code: str
    reason: str

    @property
    def is_permanent(self) -> bool:
        """Whether sending the message again is pointless."""
        return self.kind is FailureKind.PERMANENT


UNCONFIRMED_TOPIC: Final = "UNCONFIRMED_TOPIC"
"""Code of a message whose topic was not found, but may be new. The brokers are not at fault."""

UNACKNOWLEDGED_TOPIC: Final = "UNACKNOWLEDGED_TOPIC"
"""Code of a message that was not acknowledged in time although the cluster answers: its topic is at fault."""

UNKNOWN_TOPIC_CODES: Final = frozenset(
    {
        KafkaError._UNKNOWN_TOPIC,  # noqa: SLF001 - librdkafka's own codes are public names with an underscore
        KafkaError._UNKNOWN_PARTITION,  # noqa: SLF001
        KafkaError.UNKNOWN_TOPIC_OR_PART,
    }
)
"""What a client reports if it does not know the topic; its metadata may be out of date."""

INVALID_TIMESTAMP: Final = "INVALID_TIMESTAMP"
"""Code of a message whose time the topic refuses, because it is too far from the broker's clock."""

WHOLE_BATCH_CODES: Final = frozenset(
    {
        KafkaError.MSG_SIZE_TOO_LARGE,
        KafkaError.INVALID_RECORD,
        KafkaError._INVALID_DIFFERENT_RECORD,  # noqa: SLF001
    }
)
"""What a broker reports for every message of a request if one of them is invalid."""

_PERMANENT: Final = {
    KafkaError.MSG_SIZE_TOO_LARGE: "larger than the topic or this client allows",
    KafkaError.INVALID_RECORD: "refused by the broker's validation",
    KafkaError.TOPIC_EXCEPTION: "the topic's name is not valid",
}

_CLOCKS: Final = (
    "the message's time is too far from the broker's clock: correct the clock of the database's host or of"
    " the brokers, or set message.timestamp.type=LogAppendTime on the topic"
)


def classify(error: KafkaError, topic: str, client_error: KafkaError | None = None) -> DeliveryFailure:
    """Return what an error means for a message to this topic; `client_error` is the client's last error."""
    code = error.code()
    missing = refusal(error, Operation.WRITE, topic=topic)
    if missing is not None and code == KafkaError.TOPIC_AUTHORIZATION_FAILED:
        return DeliveryFailure(FailureKind.PERMANENT, error.name(), f"{topic}: {missing}")
    if code in _PERMANENT:
        return DeliveryFailure(
            FailureKind.PERMANENT, error.name(), f"{topic}: {_PERMANENT[code]} ({error.str()})"
        )
    if code == KafkaError.INVALID_TIMESTAMP:
        return DeliveryFailure(
            FailureKind.TRANSIENT, INVALID_TIMESTAMP, f"{topic}: {_CLOCKS} ({error.str()})"
        )
    cause = f"; the client's last error: {client_error.str()}" if client_error is not None else ""
    return DeliveryFailure(
        FailureKind.TRANSIENT, error.name(), f"{topic}: not acknowledged ({error.str()}){cause}"
    )


def absent_topic(topic: str, bootstrap: str) -> DeliveryFailure:
    """Return the failure of a message to a topic that the cluster does not have."""
    return DeliveryFailure(
        FailureKind.PERMANENT,
        "UNKNOWN_TOPIC_OR_PART",
        f"{topic}: topic does not exist at {bootstrap}, or this client may not see it; create it"
        f" (`noonmark db migrate`) or grant DESCRIBE: {WHERE_RIGHTS_ARE}",
    )


def unconfirmed_topic(topic: str, bootstrap: str) -> DeliveryFailure:
    """Return the failure of a message to a topic that has been missing too briefly to be sure."""
    return DeliveryFailure(
        FailureKind.TRANSIENT,
        UNCONFIRMED_TOPIC,
        f"{topic}: topic not found at {bootstrap} yet, it may be new; it is looked up again",
    )


def unacknowledged_topic(topic: str, why: str) -> DeliveryFailure:
    """Return the failure of a message that its topic did not acknowledge, though the cluster answers."""
    return DeliveryFailure(
        FailureKind.TRANSIENT,
        UNACKNOWLEDGED_TOPIC,
        f"{topic}: not acknowledged in time ({why}), although the cluster answers; check that its partitions"
        " have a leader and at least min.insync.replicas replicas in sync",
    )


def unknown_outcome(topic: str) -> DeliveryFailure:
    """Return the failure of a message that was given up before its acknowledgement came."""
    return DeliveryFailure(
        FailureKind.TRANSIENT,
        "UNKNOWN_OUTCOME",
        f"{topic}: given up before a broker answered; it may have been written, and is sent again",
    )


def out_of_turn(topic: str) -> DeliveryFailure:
    """Return the failure of a message that was written before an earlier one of its key."""
    return DeliveryFailure(
        FailureKind.TRANSIENT,
        "OUT_OF_TURN",
        f"{topic}: sent again because an earlier message of its key was not acknowledged in turn",
    )


def restore_order(
    messages: Sequence[OutboundMessage], displaced: Sequence[int], failed: dict[int, DeliveryFailure]
) -> None:
    """Report messages that follow a displaced one of the same place as to be sent again.

    A message that failed permanently is out of the order; it displaces nothing.
    """
    displaced_first: dict[tuple[str, bytes | int | None], int] = {}
    failed_first: dict[tuple[str, bytes | int | None], int] = {}
    for index in displaced:
        failure, place = failed.get(index), messages[index].place
        if place[1] is None or (failure is not None and failure.is_permanent):
            continue
        displaced_first.setdefault(place, index)
        if failure is not None:
            failed_first.setdefault(place, index)
    if not displaced_first:
        return
    second_round = frozenset(displaced)
    for index, message in enumerate(messages):
        if message.place[1] is None or index in failed:
            continue
        # Displaced messages were sent again in their own order: among them only a failure breaks it.
        first = failed_first if index in second_round else displaced_first
        start = first.get(message.place)
        if start is not None and index > start:
            failed[index] = out_of_turn(message.topic)
