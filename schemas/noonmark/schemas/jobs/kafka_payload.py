"""The payload of a Kafka job: one event."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, ClassVar, Final

from pydantic import AfterValidator, Field

from noonmark.core.kinds.emitted_event import (
    EVENT_HEADER_NAME,
    MAX_EVENT_HEADER_BYTES,
    MAX_EVENT_HEADERS,
    MAX_KEY_BYTES,
    TOPIC,
    EmitRefusedError,
    check_event_headers,
    check_topic,
    encode_event_value,
    encode_key,
)
from noonmark.schemas.problems import other_names
from noonmark.schemas.problems.pydantic_errors import Expected, PayloadDocument, without_secrets, wrong

_VALUE: Final = "a string, or any JSON except null"
_NO_SECRETS: Final = "no secret://: events are stored, and all consumers can read them"


def _check_topic(topic: str) -> str:
    try:
        return check_topic(topic)
    except EmitRefusedError as error:
        raise wrong(error.message, error.expected) from None


def _check_key(key: str | None) -> str | None:
    try:
        encode_key(key)
    except EmitRefusedError as error:
        raise wrong(error.message, error.expected) from None
    return key


def _check_value(value: Any) -> Any:
    try:
        encode_event_value(value)
    except EmitRefusedError as error:
        raise wrong(error.message, error.expected) from None
    return value


def _check_headers(headers: dict[str, str]) -> dict[str, str]:
    try:
        return check_event_headers(headers)
    except EmitRefusedError as error:
        raise wrong(error.message, error.expected) from None


class KafkaPayload(PayloadDocument):
    """The event that a Kafka job sends."""

    synonyms: ClassVar[Mapping[str, str]] = other_names.KAFKA

    purpose: ClassVar[str] = "an object with topic and value"

    topic: Annotated[
        str,
        Field(
            json_schema_extra={"pattern": TOPIC},
            description="Topic of the event; the operator configures the topics that jobs can write to.",
            examples=["billing.invoices"],
        ),
        AfterValidator(_check_topic),
        Expected("a topic that does not belong to Kafka or noonmark"),
    ]
    value: Annotated[
        Any,
        Field(
            description="Value of the event: a string is sent unchanged, any other value as JSON. null "
            "is not possible."
        ),
        AfterValidator(_check_value),
        without_secrets(_NO_SECRETS),
        Expected(_VALUE),
    ]
    key: Annotated[
        str | None,
        Field(
            min_length=1,
            max_length=MAX_KEY_BYTES,
            description="Key of the event: events with the same key keep their order. Default: the job's id.",
        ),
        AfterValidator(_check_key),
        without_secrets(_NO_SECRETS),
        Expected(f"a string of 1 to {MAX_KEY_BYTES} bytes"),
    ] = None
    headers: Annotated[
        dict[Annotated[str, Field(pattern=EVENT_HEADER_NAME)], str],
        Field(
            max_length=MAX_EVENT_HEADERS,
            description="Headers of the event: printable ASCII names, at most "
            f"{MAX_EVENT_HEADER_BYTES} bytes together; names cannot start with ce_ or noonmark-.",
        ),
        AfterValidator(_check_headers),
        without_secrets(_NO_SECRETS),
        Expected(f"an object of at most {MAX_EVENT_HEADERS} headers with string values"),
    ] = Field(default_factory=dict)

    def request(self) -> Mapping[str, object]:
        """Return the payload with all defaults filled in, as workers read it."""
        written: dict[str, object] = {"topic": self.topic, "value": self.value, "headers": self.headers}
        if self.key is not None:
            written["key"] = self.key
        return written
