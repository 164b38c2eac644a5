"""Errors that stop a Kafka client permanently."""

from __future__ import annotations

from confluent_kafka import KafkaError, KafkaException

from noonmark.core.causes import cause_of

__all__ = ["fatal_error"]


def fatal_error(raised: KafkaException | SystemError) -> KafkaError:
    """Return the fatal error that a poll, consume or flush of a client raised; raise any other again.

    confluent_kafka raises it in the next such call and reports it to no error callback. Callbacks that are
    served in the same call fail with a SystemError, of which it is the cause: what they report may be lost.
    """
    found = cause_of(raised, KafkaException)
    if found is None or not found.args[0].fatal():
        raise raised
    error: KafkaError = found.args[0]
    return error
