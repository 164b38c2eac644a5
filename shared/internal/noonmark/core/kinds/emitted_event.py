"""The rules for events that jobs emit: topic, key, value and headers.

The intake refuses what can never be sent. The operator lists the topics that jobs may write to; workers know
the list, and check again before they send.
"""

from __future__ import annotations

import base64
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Final

import orjson

MAX_EVENTS: Final = 100
"""The most events of one attempt."""

MAX_EVENT_BYTES: Final = 256 * 1024
"""Keys, values and headers of all events of one attempt together."""

MAX_KEY_BYTES: Final = 1024
MAX_EVENT_HEADERS: Final = 50
MAX_EVENT_HEADER_BYTES: Final = 16 * 1024
"""Names and values of the headers of one event together."""

TOPIC: Final = r"^[A-Za-z0-9._-]{1,249}$"
"""Names that Kafka accepts, as a pattern of JSON Schema."""

EVENT_HEADER_NAME: Final = r"^[!-~]{1,200}$"

_DEFAULT_PREFIX: Final = "noonmark"
_TOPIC: Final = re.compile(TOPIC[1:-1])
_HEADER_NAME: Final = re.compile(EVENT_HEADER_NAME[1:-1])
_RESERVED_HEADERS: Final = ("ce_", "noonmark-")


class EmitRefusedError(ValueError):
    """The event cannot be emitted. Values are never quoted.

    Attributes:
        message: what is wrong and what to do.
        expected: what is allowed, if the field's general description does not say it.
    """

    def __init__(self, message: str, expected: str = "") -> None:
        super().__init__(message)
        self.message = message
        self.expected = expected


@dataclass(frozen=True, slots=True)
class Event:
    """An event as a job wrote it, each part checked separately.

    Attributes:
        topic: where it goes.
        value: as it is sent.
        content_type: of the value.
        key: None means the job's id.
        headers: the job's own.
    """

    topic: str
    value: bytes
    content_type: str
    key: bytes | None = None
    headers: Mapping[str, str] = field(default_factory=dict)

    @classmethod
    def of(cls, topic: object, value: object, key: object = None, headers: object = None) -> Event:
        """Check and encode the parts of an event.

        Args:
            topic: a name.
            value: a string or bytes, sent unchanged, or a value that is sent as JSON.
            key: a string or bytes.
            headers: names and text.

        Raises:
            EmitRefusedError: it can never be sent.
        """
        name = check_topic(topic)
        data, content_type = encode_event_value(value)
        if len(data) > MAX_EVENT_BYTES:
            raise EmitRefusedError(f"the events of an attempt may have {MAX_EVENT_BYTES} bytes together")
        return cls(name, data, content_type, encode_key(key), check_event_headers(headers))


def check_topic(topic: object, prefix: str = _DEFAULT_PREFIX) -> str:
    """Return the topic if jobs can write to it at all.

    Args:
        topic: a name.
        prefix: of noonmark's own topics, which jobs cannot write to.

    Raises:
        EmitRefusedError: it is not a topic name, or the topic is Kafka's or noonmark's own.
    """
    if not isinstance(topic, str) or _TOPIC.fullmatch(topic) is None or topic in {".", ".."}:
        raise EmitRefusedError(
            f"{str(topic)[:60]!r} is not a topic name", "1 to 249 of letters, digits, '.', '_' and '-'"
        )
    if topic.startswith("__"):
        raise EmitRefusedError(f"{topic!r} belongs to Kafka itself; jobs cannot write to it")
    # Kafka's metrics treat `.` and `_` in topic names as the same character, and so does this check.
    plain = topic.replace("_", ".")
    for own in {prefix, _DEFAULT_PREFIX}:
        if plain == own.replace("_", ".") or plain.startswith(f"{own.replace('_', '.')}."):
            raise EmitRefusedError(f"{topic!r} belongs to noonmark itself; jobs cannot write to it")
    return topic


def check_allowed(topic: str, allowed: Iterable[str]) -> None:
    """Check that the operator allows jobs to write to a topic.

    Args:
        topic: a name that `check_topic` has passed.
        allowed: names, or beginnings of names that end in `*`.

    Raises:
        EmitRefusedError: the topic is not in the list; the message names the setting.
    """
    for item in allowed:
        if topic == item or (item.endswith("*") and topic.startswith(item[:-1])):
            return
    raise EmitRefusedError(
        f"jobs may not write to the topic {topic!r}: the worker's setting NOONMARK_EMIT_TOPICS does not "
        "list it"
    )


def encode_key(key: object) -> bytes | None:
    """Return an event's key as bytes; None if it has no key.

    Raises:
        EmitRefusedError: neither text nor bytes, or too long.
    """
    if key is None:
        return None
    encoded = key if isinstance(key, bytes) else _utf8(key, "key") if isinstance(key, str) else None
    if encoded is None:
        raise EmitRefusedError(f"the key of an event is a {type(key).__name__}; use a string")
    if not 1 <= len(encoded) <= MAX_KEY_BYTES:
        raise EmitRefusedError(f"the key of an event has {len(encoded)} bytes; use 1 to {MAX_KEY_BYTES}")
    return encoded


def encode_event_value(value: object) -> tuple[bytes, str]:
    """Return an event's value as bytes, and its content type: a string unchanged, any other value as JSON.

    Raises:
        EmitRefusedError: it is missing or not JSON.
    """
    if value is None:
        raise EmitRefusedError("the value of an event is missing; tombstones cannot be emitted")
    if isinstance(value, bytes):
        return value, "application/octet-stream"
    if isinstance(value, str):
        return _utf8(value, "value"), "text/plain; charset=utf-8"
    try:
        return orjson.dumps(value), "application/json"
    except TypeError as error:
        raise EmitRefusedError(f"the value of an event is not JSON: {error}") from None


def check_event_headers(headers: object) -> dict[str, str]:
    """Return a copy of an event's headers if all may be sent.

    Raises:
        EmitRefusedError: naming the header; its value is not shown.
    """
    if headers is None:
        return {}
    if not isinstance(headers, Mapping):
        raise EmitRefusedError("the headers of an event must be an object of names and values")
    if len(headers) > MAX_EVENT_HEADERS:
        raise EmitRefusedError(f"{len(headers)} headers are too many; {MAX_EVENT_HEADERS} are allowed")
    size = 0
    for name, value in headers.items():
        if not isinstance(name, str) or _HEADER_NAME.fullmatch(name) is None:
            raise EmitRefusedError(f"the header name {name!r} is not 1 to 200 printable ASCII characters")
        if name.lower().startswith(_RESERVED_HEADERS):
            raise EmitRefusedError(
                f"header {name} is set by noonmark and cannot be given",
                "other names than ce_… and noonmark-…",
            )
        if not isinstance(value, str):
            raise EmitRefusedError(f"the value of header {name} must be a string")
        size += len(name) + len(_utf8(value, f"value of header {name}"))
    if size > MAX_EVENT_HEADER_BYTES:
        raise EmitRefusedError(
            f"the headers are longer than {MAX_EVENT_HEADER_BYTES} bytes",
            f"names and values of at most {MAX_EVENT_HEADER_BYTES} bytes together",
        )
    return dict(headers)


def check_allow_list(items: Iterable[str]) -> None:
    """Check that an operator's list of topics is valid.

    Raises:
        ValueError: an item is neither a topic's name nor a prefix that ends in `*`.
    """
    for item in items:
        name = item.removesuffix("*")
        if (name or item != "*") and _TOPIC.fullmatch(name) is None:
            raise ValueError(f"{item!r} is neither a topic nor a topic prefix that ends in *")


def _utf8(text: str, what: str) -> bytes:
    try:
        return text.encode()
    except UnicodeEncodeError:
        raise EmitRefusedError(
            f"the {what} of an event holds half a surrogate pair, which is not text"
        ) from None


def event_to_wire(event: Event) -> dict[str, Any]:
    """Convert an event to JSON values for another process of the worker."""
    return {
        "topic": event.topic,
        "value": base64.b64encode(event.value).decode(),
        "content_type": event.content_type,
        "key": base64.b64encode(event.key).decode() if event.key is not None else None,
        "headers": dict(event.headers),
    }


def event_from_wire(said: Mapping[str, Any]) -> Event:
    """Read what `event_to_wire` wrote, and check it again: the handler's process is not trusted.

    Raises:
        EmitRefusedError: it can never be sent.
    """
    try:
        value = base64.b64decode(said["value"])
        key = base64.b64decode(said["key"]) if said["key"] is not None else None
    except (KeyError, TypeError, ValueError):
        raise EmitRefusedError("the event did not arrive complete from the handler's process") from None
    event = Event.of(said.get("topic"), value, key, said.get("headers"))
    return replace(event, content_type=str(said.get("content_type"))[:200])
