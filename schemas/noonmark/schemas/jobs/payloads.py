"""The payload model of each kind. Python handlers accept any JSON."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from noonmark.schemas.jobs.grpc_payload import GrpcPayload
from noonmark.schemas.jobs.http_payload import HttpPayload
from noonmark.schemas.jobs.kafka_payload import KafkaPayload
from noonmark.schemas.jobs.script_payload import ScriptPayload
from noonmark.schemas.problems.pydantic_errors import PayloadDocument

PAYLOADS: Final[Mapping[str, type[PayloadDocument]]] = {
    "http": HttpPayload,
    "grpc": GrpcPayload,
    "kafka": KafkaPayload,
    "script": ScriptPayload,
}
