"""Which model checks the payload of which kind. Python handlers take any JSON."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from noonmark.schemas.grpc_payload import GrpcPayload
from noonmark.schemas.http_payload import HttpPayload
from noonmark.schemas.kafka_payload import KafkaPayload
from noonmark.schemas.problems import PayloadDocument
from noonmark.schemas.script_payload import ScriptPayload

PAYLOADS: Final[Mapping[str, type[PayloadDocument]]] = {
    "http": HttpPayload,
    "grpc": GrpcPayload,
    "kafka": KafkaPayload,
    "script": ScriptPayload,
}
