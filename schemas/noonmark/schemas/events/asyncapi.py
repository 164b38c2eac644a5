"""The AsyncAPI 3.0 document of all topics, from noonmark's view: it receives submissions, sends the rest."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Final

import orjson

from noonmark.core.access.submission_signature import JWT_HEADER, SIGNATURE_HEADER, SIGNATURE_PATTERN
from noonmark.schemas.events import alerts, lifecycle, run_message, submissions
from noonmark.schemas.events.envelope import STRUCTURED_TYPE
from noonmark.schemas.jobs.work_fields import POOL_PATTERN

_SCHEMA_FORMAT: Final = "application/schema+json;version=draft-2020-12"

_REFERENCE: Final = re.compile(r'"#/\$defs/([^"/]+)"')
_COMPONENT: Final = r'"#/components/schemas/\1/schema"'

_CHANNELS: Final[dict[str, tuple[str, str, tuple[str, ...]]]] = {
    "submissions": (
        "noonmark.submissions",
        "Submissions of clients. Key: any value that is equal for all events of one job.",
        submissions.TYPES,
    ),
    "submissionsBulk": (
        "noonmark.submissions.bulk",
        "Submissions with lower priority, such as bulk loads: read after noonmark.submissions.",
        submissions.TYPES,
    ),
    "runs": (
        "noonmark.runs.{pool}.{lane}",
        "Queued runs for the workers of a pool. Only noonmark writes to it.",
        (run_message.QUEUED, run_message.SEVERAL_QUEUED),
    ),
    "lifecycle": (
        "noonmark.lifecycle",
        "Outcomes of runs, several in one event. Key: the namespace.",
        (lifecycle.SETTLED,),
    ),
    "rejections": (
        "noonmark.rejections",
        "Refused submissions, with all reasons.",
        (lifecycle.REJECTED,),
    ),
    "dead": ("noonmark.dead", "Runs that failed permanently.", (lifecycle.DEAD,)),
    "alerts": ("noonmark.alerts", "Alerts raised and resolved.", (alerts.RAISED, alerts.RESOLVED)),
}
_RECEIVED: Final = ("submissions", "submissionsBulk", "runs")
_SUBMITTED: Final = ("submissions", "submissionsBulk")

_HEADERS: Final[dict[str, Any]] = {
    "type": "object",
    "properties": {
        SIGNATURE_HEADER: {
            "type": "string",
            "pattern": SIGNATURE_PATTERN,
            "description": "v1.KEY_ID.NAMESPACE.EXPIRES.MAC: HMAC-SHA256 of the event by a publisher's key.",
        },
        JWT_HEADER: {
            "type": "string",
            "description": "A token of the identity provider, instead of a signature.",
        },
    },
    "not": {"required": [SIGNATURE_HEADER, JWT_HEADER]},
}
_SECURITY: Final[dict[str, Any]] = {
    "signature": {
        "type": "httpApiKey",
        "in": "header",
        "name": SIGNATURE_HEADER,
        "description": "Header of the Kafka record: the signature of a publisher's key, for one namespace.",
    },
    "token": {
        "type": "httpApiKey",
        "in": "header",
        "name": JWT_HEADER,
        "description": "Header of the Kafka record: a token of the identity provider.",
    },
}
"""AsyncAPI has no security scheme for record headers; this one describes request headers."""


def document(schemas: Mapping[str, Mapping[str, Any]]) -> dict[str, Any]:
    """Return the AsyncAPI document. It refers to nothing outside itself.

    Args:
        schemas: the JSON Schema of each event type, with the models that it refers to in `$defs`.

    Raises:
        ValueError: if two different models have the same name.
    """
    bundled: dict[str, Any] = {}
    for name, schema in schemas.items():
        for part, content in {name: schema, **schema.get("$defs", {})}.items():
            made = _bundled(content)
            if bundled.setdefault(part, made) != made:
                raise ValueError(f"two different models have the name {part}")
    return {
        "asyncapi": "3.0.0",
        "info": {
            "title": "noonmark",
            "version": "1.0.0",
            "description": (
                "CloudEvents 1.0 on Kafka. Submissions are read in structured and in binary content mode; "
                "noonmark writes structured mode. The type of an event contains its major version. A "
                "header of the record authorises a submission, or the operator binds its topic to a "
                "namespace."
            ),
            "license": {"name": "Apache-2.0"},
        },
        "defaultContentType": STRUCTURED_TYPE,
        "channels": {name: _channel(name) for name in _CHANNELS},
        "operations": _operations(),
        "components": {
            "messages": {name: _message(name) for name in schemas},
            "schemas": bundled,
            "messageTraits": {
                "authorised": {"headers": {"schemaFormat": _SCHEMA_FORMAT, "schema": _HEADERS}}
            },
            "securitySchemes": _SECURITY,
        },
    }


def _channel(name: str) -> dict[str, Any]:
    address, description, types = _CHANNELS[name]
    channel: dict[str, Any] = {
        "address": address,
        "description": description,
        "messages": {kind: {"$ref": f"#/components/messages/{kind}"} for kind in types},
    }
    if name == "runs":
        channel["parameters"] = {
            "pool": {"description": f"Name of the pool: {POOL_PATTERN}", "default": "default"},
            "lane": {"description": "Lane of the runs.", "enum": ["high", "normal", "low"]},
        }
    return channel


def _operations() -> dict[str, Any]:
    operations: dict[str, Any] = {}
    for name in _CHANNELS:
        title = name[0].upper() + name[1:]
        channel = {"$ref": f"#/channels/{name}"}
        if name in _RECEIVED:
            operations[f"receive{title}"] = {"action": "receive", "channel": channel}
        if name in _SUBMITTED:
            operations[f"receive{title}"]["security"] = [
                {"$ref": f"#/components/securitySchemes/{scheme}"} for scheme in _SECURITY
            ]
        if name not in _RECEIVED or name == "runs":
            operations[f"send{title}"] = {"action": "send", "channel": channel}
    return operations


def _bundled(schema: Mapping[str, Any]) -> dict[str, Any]:
    """Return a schema as a component, whose references lead to other components.

    An `$id` would make them lead into the schema itself.
    """
    kept = {key: value for key, value in schema.items() if key not in {"$id", "$schema", "$defs"}}
    text = orjson.dumps(kept).decode()
    return {"schemaFormat": _SCHEMA_FORMAT, "schema": orjson.loads(_REFERENCE.sub(_COMPONENT, text))}


def _message(name: str) -> dict[str, Any]:
    message: dict[str, Any] = {
        "name": name,
        "contentType": STRUCTURED_TYPE,
        "payload": {"$ref": f"#/components/schemas/{name}"},
    }
    if name in submissions.TYPES:
        message["traits"] = [{"$ref": "#/components/messageTraits/authorised"}]
    return message
