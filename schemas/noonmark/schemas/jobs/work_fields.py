"""Fields that jobs and the tasks of workflows have in common: types, limits, descriptions, rules."""

from __future__ import annotations

from typing import Annotated, Any, Final, Literal

from pydantic import Field, PlainValidator, WithJsonSchema
from pydantic.config import JsonDict

from noonmark.core.states import Lane
from noonmark.schemas.jobs.payloads import PAYLOADS
from noonmark.schemas.jobs.policies import DAY_SECONDS, HANDLER_PATTERN, RetryDocument, Seconds
from noonmark.schemas.jobs.retry_rules import retry_rules
from noonmark.schemas.problems.pydantic_errors import Expected, PayloadDocument, any_case, wrong

POOL_PATTERN: Final = r"^[a-z0-9][a-z0-9_-]{0,47}$"

WORK_KINDS: Final = ("http", "grpc", "script", "python", "kafka")
"""Kinds of work that a worker does; each has its own payload."""

NO_TRANSACTION: Final = ("http", "grpc", "script")
"""Kinds whose work cannot commit together with its outcome. `kafka` can: it sends through the outbox."""

LATER: Final[frozenset[str]] = frozenset()
"""Marks a field that accepts no value yet."""

PRIORITY_SCHEMA: Final[JsonDict] = {
    "anyOf": [
        {"enum": ["high", "normal", "low"]},
        {"type": "integer", "minimum": 1, "maximum": 10},
        {"type": "string", "pattern": any_case("high", "normal", "low")},
    ]
}


def lower(value: object) -> object:
    """Return text in lower case; other values are refused later."""
    return value.lower() if isinstance(value, str) else value


def lane(value: object) -> Lane:
    """Read a priority."""
    if isinstance(value, bool) or not isinstance(value, str | int):
        raise wrong("is neither a lane nor an integer")
    if isinstance(value, int) and value.bit_length() > 8:
        raise wrong("is out of range")
    try:
        return Lane.from_priority(value if isinstance(value, int) else value[:20])
    except ValueError:
        raise wrong(f"{value!r:.40} is not a priority") from None


def optional_lane(value: object) -> Lane | None:
    """Read an optional priority."""
    return None if value is None else lane(value)


def work_rules() -> list[JsonDict]:
    """Return the rules between the fields that say what is done; `work.check_work` checks them, too."""
    return [
        *(_payload_rule(kind, model) for kind, model in PAYLOADS.items()),
        {
            "if": {"properties": {"type": {"pattern": any_case("python")}}, "required": ["type"]},
            "then": {"properties": {"handler": {"type": "string"}}, "required": ["handler"]},
            "else": {"properties": {"handler": {"type": "null"}}},
        },
        {
            "if": {
                "properties": {"type": {"pattern": any_case(*NO_TRANSACTION)}},
                "required": ["type"],
            },
            "then": {"properties": {"delivery": {"not": {"const": "exactly_once"}}}},
        },
        *retry_rules(),
    ]


def _payload_rule(kind: str, model: type[PayloadDocument]) -> JsonDict:
    return {
        "if": {"properties": {"type": {"pattern": any_case(kind)}}, "required": ["type"]},
        "then": {
            "properties": {"payload": {"$ref": f"#/$defs/{model.__name__}"}},
            "required": ["payload"],
        },
    }


HandlerName = Annotated[
    str | None,
    Field(
        max_length=200,
        pattern=HANDLER_PATTERN,
        description="Registered name of the Python handler; only for type python.",
        examples=["mails.send_welcome"],
    ),
    Expected("a dotted name of at most 200 characters, such as mails.send_welcome"),
]
Payload = Annotated[
    Any,
    Field(
        description="Input of the kind: the request of an HTTP job, the call of a gRPC job, the "
        "command of a script, the event of a Kafka job, any JSON for a Python handler."
    ),
]
MaxRetries = Annotated[
    int,
    Field(ge=0, le=100, description="Attempts after the first: 3 means at most four attempts."),
    Expected("an integer from 0 to 100"),
]
RetryDelay = Annotated[
    Seconds,
    Field(description="Delay after the first failed attempt, in seconds; further delays double, up to 1 h."),
    Expected("a number of seconds from 0 to 366 days"),
]
Retry = Annotated[
    RetryDocument | None,
    Field(description="Full retry policy."),
    Expected('an object such as {"max_retries": 5, "delay_seconds": 10}'),
]
Timeout = Annotated[
    float | None,
    Field(
        gt=0,
        le=DAY_SECONDS,
        description="Timeout of one attempt, in seconds. Default: 30 for http, grpc and kafka, 3600 "
        "for script and python.",
    ),
    Expected("a number of seconds above 0, at most 86400"),
]
Pool = Annotated[
    str,
    Field(pattern=POOL_PATTERN, description="Pool of workers that run the job."),
    Expected("1 to 48 of a-z, 0-9, '-' and '_', the first a letter or digit"),
]
Priority = Annotated[
    Lane,
    PlainValidator(lane),
    WithJsonSchema({**PRIORITY_SCHEMA, "default": "normal"}),
    Field(
        description="Lane of the runs: high, normal, low, or 1-10 (1-3 high, 4-7 normal, 8-10 low).",
        json_schema_extra={"default": "normal"},
    ),
    Expected("high, normal, low, or an integer from 1 (most urgent) to 10"),
]
Delivery = Annotated[
    Literal["at_least_once", "at_most_once", "exactly_once"],
    Field(
        description="Delivery semantics. at_most_once: an attempt with an unknown outcome is recorded "
        "as unknown and not retried. exactly_once, for Python handlers on threads: the writes of the "
        "handler's transaction commit together with the outcome."
    ),
    Expected("at_least_once, at_most_once or exactly_once"),
]
