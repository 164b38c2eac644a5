"""Attributes of spans, named as in OpenTelemetry's semantic conventions."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, Literal

SCHEMA_URL: Final = "https://opentelemetry.io/schemas/1.36.0"
"""The version of the conventions; a test compares the names with those that the library knows."""

ERROR_TYPE: Final = "error.type"

Attributes = Mapping[str, str | int | float | bool]


def of_message(
    operation: Literal["send", "process"],
    topic: str,
    *,
    partition: int | None = None,
    offset: int | None = None,
    group: str | None = None,
) -> dict[str, str | int | float | bool]:
    """Return the attributes of a span that sends or processes a message.

    Args:
        operation: what happens to the message.
        topic: name of its topic.
        partition: its partition, if known.
        offset: its offset, if known.
        group: the consumer group, if the message was received.
    """
    found: dict[str, str | int | float | bool] = {
        "messaging.system": "kafka",
        "messaging.operation.name": operation,
        "messaging.operation.type": operation,
        "messaging.destination.name": topic,
    }
    if partition is not None:
        found["messaging.destination.partition.id"] = str(partition)
    if offset is not None:
        found["messaging.kafka.offset"] = offset
    if group is not None:
        found["messaging.consumer.group.name"] = group
    return found


def of_request(
    *, method: str, route: str, path: str, scheme: str, status: int
) -> dict[str, str | int | float | bool]:
    """Return the attributes of a span that serves an HTTP request.

    Args:
        method: of the request.
        route: the pattern of its route.
        path: its path, without the query.
        scheme: `http` or `https`.
        status: HTTP status of the response.
    """
    return {
        "http.request.method": method,
        "http.route": route,
        "url.path": path,
        "url.scheme": scheme,
        "http.response.status_code": status,
    }
