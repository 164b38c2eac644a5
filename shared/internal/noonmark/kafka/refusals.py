"""What to do when the brokers refuse a client because a right is missing."""

from __future__ import annotations

from typing import Final

from confluent_kafka import KafkaError

from noonmark.kafka.rights import Operation, Resource

__all__ = ["WHERE_RIGHTS_ARE", "is_refusal", "refusal"]

WHERE_RIGHTS_ARE: Final = "`noonmark rights kafka` prints the commands that grant it"

_RESOURCES: Final = {
    KafkaError.TOPIC_AUTHORIZATION_FAILED: Resource.TOPIC,
    KafkaError.GROUP_AUTHORIZATION_FAILED: Resource.GROUP,
}
_CODES: Final = frozenset({*_RESOURCES, KafkaError.CLUSTER_AUTHORIZATION_FAILED})


def is_refusal(error: object) -> bool:
    """Return whether an error of the client reports a missing right."""
    return isinstance(error, KafkaError) and error.code() in _CODES


def refusal(
    error: KafkaError, operation: Operation, *, topic: str | None = None, group: str | None = None
) -> str | None:
    """Return which right is missing and how to grant it; None if the error has another cause.

    Args:
        error: what the client reported.
        operation: what the client did.
        topic: the topic that it did this to, or several, comma-separated.
        group: the consumer group that it did this to.
    """
    if error.code() not in _CODES:
        return None
    resource = _RESOURCES.get(error.code())
    if operation is Operation.WRITE and topic:
        # A principal that may write to no topic is refused the id of a producer: a right of the cluster.
        resource = Resource.TOPIC
    name = {Resource.TOPIC: topic, Resource.GROUP: group, None: None}[resource]
    what = f"{resource} {name}" if resource and name else f"the {resource or 'cluster'}"
    return (
        f"this client may not {operation.upper()} {what}: grant its principal that right, {WHERE_RIGHTS_ARE}"
    )
