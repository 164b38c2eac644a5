"""The job document as clients write it: fields with types, limits and descriptions."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, ClassVar, Final, Literal, get_args

from pydantic import BeforeValidator, ConfigDict, Field, PlainValidator, SkipValidation, WithJsonSchema
from pydantic.config import JsonDict

from noonmark.core.states import Lane
from noonmark.schemas.jobs.http_payload import wrong
from noonmark.schemas.jobs.payloads import PAYLOADS
from noonmark.schemas.jobs.policies import (
    DAY_SECONDS,
    HANDLER_PATTERN,
    MOST_LIMITS,
    NAMESPACE_PATTERN,
    NAMESPACE_RULE,
    YEAR_SECONDS,
    LimitItem,
    Line,
    MisfireDocument,
    RetryDocument,
    Seconds,
    VisibleLine,
)
from noonmark.schemas.jobs.retry_rules import retry_rules
from noonmark.schemas.jobs.schedule_documents import CronText, ScheduleDocument, ScheduleList
from noonmark.schemas.problems import other_names
from noonmark.schemas.problems.pydantic_errors import (
    VISIBLE,
    Document,
    Expected,
    PayloadDocument,
    any_case,
    any_case_schema,
)

POOL_PATTERN: Final = r"^[a-z0-9][a-z0-9_-]{0,47}$"
LABEL_KEY_PATTERN: Final = r"^[A-Za-z0-9]([A-Za-z0-9._/-]{0,61}[A-Za-z0-9])?$"
LABEL_VALUE_PATTERN: Final = r"^[^\x00-\x1f\x7f]{0,200}$"

JobType = Literal["http", "grpc", "script", "python", "kafka"]
KINDS: Final[tuple[str, ...]] = get_args(JobType)
NO_TRANSACTION: Final = ("http", "grpc", "script")
"""Kinds whose work cannot commit together with its outcome. `kafka` can: it sends through the outbox."""
_LATER: Final[frozenset[str]] = frozenset()
"""Marks a field that accepts no value yet."""


def _lower(value: object) -> object:
    return value.lower() if isinstance(value, str) else value


def _lane(value: object) -> Lane:
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
    return None if value is None else _lane(value)


PRIORITY_SCHEMA: Final[JsonDict] = {
    "anyOf": [
        {"enum": ["high", "normal", "low"]},
        {"type": "integer", "minimum": 1, "maximum": 10},
        {"type": "string", "pattern": any_case("high", "normal", "low")},
    ]
}

LabelKey = Annotated[str, Field(pattern=LABEL_KEY_PATTERN)]
LabelValue = Annotated[str, Field(pattern=LABEL_VALUE_PATTERN), VISIBLE]
Namespace = Annotated[
    str,
    Field(pattern=NAMESPACE_PATTERN, description="Namespace of the job."),
    Expected(NAMESPACE_RULE),
]


def _payload_rule(kind: str, model: type[PayloadDocument]) -> JsonDict:
    return {
        "if": {"properties": {"type": {"pattern": any_case(kind)}}, "required": ["type"]},
        "then": {
            "properties": {"payload": {"$ref": f"#/$defs/{model.__name__}"}},
            "required": ["payload"],
        },
    }


def field_rules(*, name_required: bool) -> JsonDict:
    """Return the rules between fields as JSON Schema; `job.parse_job` checks the same rules."""
    recurring: JsonDict = {"properties": {"run_at": {"type": "null"}}}
    if name_required:
        recurring = {
            "properties": {"run_at": {"type": "null"}, "name": {"type": "string"}},
            "required": ["name"],
        }
    return {
        "allOf": [
            *(_payload_rule(kind, model) for kind, model in PAYLOADS.items()),
            {
                "if": {"properties": {"type": {"pattern": any_case("python")}}, "required": ["type"]},
                "then": {"properties": {"handler": {"type": "string"}}, "required": ["handler"]},
                "else": {"properties": {"handler": {"type": "null"}}},
            },
            {
                "if": {
                    "properties": {"schedule": {"type": ["string", "object", "array"]}},
                    "required": ["schedule"],
                },
                "then": recurring,
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
    }


class JobDocument(Document):
    """What to run and when. Events, REST and files use the same document; only `type` is required."""

    synonyms: ClassVar[Mapping[str, str]] = other_names.JOB

    model_config = ConfigDict(
        title="noonmark job document", json_schema_extra=field_rules(name_required=True)
    )
    unavailable: ClassVar[Mapping[str, frozenset[str]]] = {
        **dict.fromkeys(("depends_on", "secrets"), _LATER),
    }
    elsewhere: ClassVar[Mapping[str, str]] = dict.fromkeys(ScheduleDocument.model_fields, "schedule")

    name: Annotated[
        VisibleLine | None,
        Field(
            description="Name of the job; recurring jobs need one that is unique in the namespace.",
            examples=["send-invoice"],
        ),
        Expected("1 to 200 characters on one line, without spaces at the ends"),
    ] = None
    type: Annotated[
        JobType,
        BeforeValidator(_lower),
        WithJsonSchema(any_case_schema(*KINDS)),
        Field(
            description="Kind of work, in upper or lower case: an HTTP request, a gRPC call, a script on "
            "the worker's machine, a registered Python handler, or a Kafka event."
        ),
        Expected("http, grpc, script, python or kafka"),
    ]
    handler: Annotated[
        str | None,
        Field(
            max_length=200,
            pattern=HANDLER_PATTERN,
            description="Registered name of the Python handler; only for type python.",
            examples=["mails.send_welcome"],
        ),
        Expected("a dotted name of at most 200 characters, such as mails.send_welcome"),
    ] = None
    payload: Annotated[
        Any,
        Field(
            description="Input of the kind: the request of an HTTP job, the call of a gRPC job, the "
            "command of a script, the event of a Kafka job, any JSON for a Python handler."
        ),
    ] = Field(default_factory=dict)
    schedule: Annotated[
        SkipValidation[CronText | ScheduleDocument | ScheduleList | None],
        Field(
            description="When a recurring job is due: a cron expression, an object, or a list of these "
            "(short for an object with `any`).",
            examples=[
                "0 9 * * 1",
                {"cron": "30 2 * * *", "timezone": "America/New_York"},
                {"rrule": "FREQ=MONTHLY;BYDAY=-1FR", "dtstart": "2026-01-05T09:00:00"},
                {"every": "PT15M"},
                ["0 9 * * MON-FRI", "0 12 * * SAT"],
            ],
        ),
    ] = None
    run_at: Annotated[
        SkipValidation[str | None],
        Field(
            description="When a one-time job is due: RFC 3339 with offset. Without this and `schedule`: now.",
            examples=["2026-06-01T09:00:00Z"],
            json_schema_extra={"format": "date-time"},
        ),
    ] = None
    max_retries: Annotated[
        int,
        Field(ge=0, le=100, description="Attempts after the first: 3 means at most four attempts."),
        Expected("an integer from 0 to 100"),
    ] = 3
    retry_delay_seconds: Annotated[
        Seconds,
        Field(
            description="Delay after the first failed attempt, in seconds; further delays double, up to 1 h."
        ),
        Expected("a number of seconds from 0 to 366 days"),
    ] = 60.0
    retry: Annotated[
        RetryDocument | None,
        Field(description="Full retry policy."),
        Expected('an object such as {"max_retries": 5, "delay_seconds": 10}'),
    ] = None
    timeout_seconds: Annotated[
        float | None,
        Field(
            gt=0,
            le=DAY_SECONDS,
            description="Timeout of one attempt, in seconds. Default: 30 for http, grpc and kafka, 3600 "
            "for script and python.",
        ),
        Expected("a number of seconds above 0, at most 86400"),
    ] = None
    deadline_seconds: Annotated[
        float | None,
        Field(
            gt=0,
            le=YEAR_SECONDS,
            description="Seconds after its instant at which a run must be finished, including retries.",
        ),
        Expected("a number of seconds above 0, at most 366 days"),
    ] = None
    priority: Annotated[
        Lane,
        PlainValidator(_lane),
        WithJsonSchema({**PRIORITY_SCHEMA, "default": "normal"}),
        Field(
            description="Lane of the runs: high, normal, low, or 1-10 (1-3 high, 4-7 normal, 8-10 low).",
            json_schema_extra={"default": "normal"},
        ),
        Expected("high, normal, low, or an integer from 1 (most urgent) to 10"),
    ] = Lane.NORMAL
    pool: Annotated[
        str,
        Field(pattern=POOL_PATTERN, description="Pool of workers that run the job."),
        Expected("1 to 48 of a-z, 0-9, '-' and '_', the first a letter or digit"),
    ] = "default"
    namespace: Namespace = "default"
    labels: Annotated[
        dict[LabelKey, LabelValue],
        Field(
            max_length=32,
            description="Key-value pairs to filter jobs by.",
            examples=[{"team": "billing"}],
        ),
        Expected(
            "at most 32 pairs; keys of 1 to 63 letters, digits and . _ / -, values of at most 200 "
            "characters on one line"
        ),
    ] = Field(default_factory=dict)
    misfire: Annotated[
        SkipValidation[Literal["fire_all", "fire_latest", "skip"] | MisfireDocument],
        Field(description="What to do with due instants that were missed: a policy, or an object."),
    ] = "fire_latest"
    overlap: Annotated[
        Literal["allow", "skip", "queue_one", "cancel_running"] | None,
        Field(
            description="What happens when an instant is due while the previous run is unfinished. allow: "
            "both run; skip: the instant is skipped; queue_one: it waits (at most one); cancel_running: "
            "the previous run is cancelled. Default: skip for recurring jobs, allow for others."
        ),
        Expected("allow, skip, queue_one or cancel_running"),
    ] = None
    delivery: Annotated[
        Literal["at_least_once", "at_most_once", "exactly_once"],
        Field(
            description="Delivery semantics. at_most_once: an attempt with an unknown outcome is recorded "
            "as unknown and not retried. exactly_once, for Python handlers on threads: the writes of the "
            "handler's transaction commit together with the outcome."
        ),
        Expected("at_least_once, at_most_once or exactly_once"),
    ] = "at_least_once"
    limits: Annotated[
        list[LimitItem],
        Field(
            max_length=MOST_LIMITS,
            description="Limits of the namespace that apply to the runs: names, or objects with a key that "
            "is counted separately.",
            examples=[["stripe"], [{"name": "per-customer", "key": "42"}]],
        ),
        Expected(f"a list of at most {MOST_LIMITS} names of limits, or objects with name and key"),
    ] = Field(default_factory=list)
    pause_after_failures: Annotated[
        int | None,
        Field(
            ge=1,
            le=1000,
            description="Number of dead runs in a row with the same reason after which the job is paused. "
            "Default: never.",
        ),
        Expected("an integer from 1 to 1000"),
    ] = None
    start_deadline_seconds: Annotated[
        float | None,
        Field(
            gt=0,
            le=YEAR_SECONDS,
            description="A run that has not started this many seconds after its instant is skipped.",
        ),
        Expected("a number of seconds above 0, at most 366 days"),
    ] = None
    late_after_seconds: Annotated[
        float | None,
        Field(
            ge=1,
            le=86_400,
            description="A run that has not started this many seconds after its instant raises an alert. "
            "Default: the setting of the installation.",
        ),
        Expected("a number of seconds from 1 to 86400"),
    ] = None
    idempotency_key: Annotated[
        Line | None,
        Field(description="A repeated submission with the same key in the namespace creates no second job."),
        Expected("1 to 200 characters on one line, without spaces at the ends"),
    ] = None
    description: Annotated[
        str | None,
        Field(max_length=2000, description="Free text for people."),
        Expected("at most 2000 characters"),
    ] = None
    owner: Annotated[
        VisibleLine | None,
        Field(description="Person or team responsible for the job."),
        Expected("1 to 200 characters on one line, without spaces at the ends"),
    ] = None
