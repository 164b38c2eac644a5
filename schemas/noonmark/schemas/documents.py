"""The job document as clients write it: fields, types, limits and what each means."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, ClassVar, Final, Literal

from pydantic import BeforeValidator, ConfigDict, Field, PlainValidator, SkipValidation, WithJsonSchema
from pydantic.config import JsonDict

from noonmark.core.words import Lane
from noonmark.schemas.http_payload import wrong
from noonmark.schemas.problems import Document, Expected, any_case, any_case_schema
from noonmark.schemas.schedules import CronText, ScheduleDocument, ScheduleList

NAMESPACE_PATTERN: Final = r"^[a-z0-9][a-z0-9_-]{0,62}$"
POOL_PATTERN: Final = r"^[a-z0-9][a-z0-9_-]{0,47}$"
# One line of text without control characters and without space at its ends. Written so that pydantic's,
# Python's and JavaScript's expressions agree on it.
LINE_PATTERN: Final = r"^[^\s\x00-\x1f\x7f]([^\x00-\x1f\x7f]*[^\s\x00-\x1f\x7f])?$"
HANDLER_PATTERN: Final = r"^[A-Za-z_][A-Za-z0-9_]*(\.[A-Za-z_][A-Za-z0-9_]*)*$"
LABEL_KEY_PATTERN: Final = r"^[A-Za-z0-9]([A-Za-z0-9._/-]{0,61}[A-Za-z0-9])?$"
LABEL_VALUE_PATTERN: Final = r"^[^\x00-\x1f\x7f]{0,200}$"

DAY_SECONDS: Final = 86_400
YEAR_SECONDS: Final = 366 * DAY_SECONDS

JobType = Literal["http", "python"]
_LATER: Final[frozenset[str]] = frozenset()
"""Marks a field that no value is taken for yet."""


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
        raise wrong(f"{value!r:.40} is no priority") from None


Line = Annotated[str, Field(max_length=200, pattern=LINE_PATTERN)]
LabelKey = Annotated[str, Field(pattern=LABEL_KEY_PATTERN)]
LabelValue = Annotated[str, Field(pattern=LABEL_VALUE_PATTERN)]
Namespace = Annotated[
    str,
    Field(pattern=NAMESPACE_PATTERN, description="Namespace of the job."),
    Expected("1 to 63 of a-z, 0-9, _ and -, not starting with _ or -"),
]
Seconds = Annotated[float, Field(ge=0, le=YEAR_SECONDS)]


class RetryDocument(Document):
    """The retry policy in full. `max_retries` and `retry_delay_seconds` beside it are its short form."""

    max_retries: Annotated[
        int,
        Field(ge=0, le=100, description="Attempts after the first: 3 means at most four attempts."),
        Expected("an integer from 0 to 100"),
    ] = 3
    delay_seconds: Annotated[
        Seconds,
        Field(description="Delay after the first failed attempt, in seconds."),
        Expected("a number of seconds from 0 to 366 days"),
    ] = 60.0
    factor: Annotated[
        float,
        Field(ge=1, le=100, description="What each further delay is multiplied by; 1 is a fixed delay."),
        Expected("a number from 1 to 100"),
    ] = 2.0
    max_delay_seconds: Annotated[
        Seconds,
        Field(description="No delay is longer, in seconds. Default: 3600, or the delay if that is longer."),
        Expected("a number of seconds from 0 to 366 days, not below the delay"),
    ] = 3600.0
    jitter: Annotated[
        Literal["full", "none"],
        Field(description="How delays are spread so that runs that failed together part: full or none."),
        Expected("full or none"),
    ] = "full"


class MisfireDocument(Document):
    """What is done with due instants that passed unserved."""

    policy: Annotated[
        Literal["fire_all", "fire_latest", "skip"],
        Field(description="Run each missed instant, the latest of them, or none."),
        Expected("fire_all, fire_latest or skip"),
    ] = "fire_latest"
    grace_seconds: Annotated[
        Seconds,
        Field(description="An instant up to this late counts as on time, in seconds."),
        Expected("a number of seconds from 0 to 366 days"),
    ] = 60.0
    look_back_seconds: Annotated[
        Seconds | None,
        Field(
            description="An older instant never runs, in seconds. Default: the longest of one hour, the "
            "grace and one period."
        ),
        Expected("a number of seconds from the grace to 366 days"),
    ] = None


def _given_once(short: str, full: str) -> JsonDict:
    retry: JsonDict = {"type": "object", "required": [full]}
    return {"not": {"required": [short, "retry"], "properties": {"retry": retry}}}


SHORT_FORMS: Final = {"max_retries": "max_retries", "retry_delay_seconds": "delay_seconds"}
"""Fields of the document that stand for one of `retry`, by name."""


def field_rules(*, name_required: bool) -> JsonDict:
    """Return what one field says about another, as JSON Schema; `job.parse_job` checks the same."""
    recurring: JsonDict = {"properties": {"run_at": {"type": "null"}}}
    if name_required:
        recurring = {
            "properties": {"run_at": {"type": "null"}, "name": {"type": "string"}},
            "required": ["name"],
        }
    return {
        "allOf": [
            {
                "if": {"properties": {"type": {"pattern": any_case("http")}}, "required": ["type"]},
                "then": {
                    "properties": {"payload": {"$ref": "#/$defs/HttpPayload"}, "handler": {"type": "null"}},
                    "required": ["payload"],
                },
                "else": {"properties": {"handler": {"type": "string"}}, "required": ["handler"]},
            },
            {
                "if": {
                    "properties": {"schedule": {"type": ["string", "object", "array"]}},
                    "required": ["schedule"],
                },
                "then": recurring,
            },
            *(_given_once(short, full) for short, full in SHORT_FORMS.items()),
        ]
    }


class JobDocument(Document):
    """What to run and when. The same for events, REST and files; every field but `type` has a default."""

    model_config = ConfigDict(
        title="noonmark job document", json_schema_extra=field_rules(name_required=True)
    )
    unavailable: ClassVar[Mapping[str, frozenset[str]]] = {
        "type": frozenset({"grpc", "script", "kafka"}),
        "overlap": frozenset({"queue_one", "cancel_running"}),
        "delivery": frozenset({"at_most_once", "exactly_once"}),
        **dict.fromkeys(("depends_on", "limits", "secrets"), _LATER),
    }
    elsewhere: ClassVar[Mapping[str, str]] = dict.fromkeys(ScheduleDocument.model_fields, "schedule")

    name: Annotated[
        Line | None,
        Field(
            description="Unique in the namespace for recurring jobs, which must have one.",
            examples=["send-invoice"],
        ),
        Expected("1 to 200 characters on one line, without space at the ends"),
    ] = None
    type: Annotated[
        JobType,
        BeforeValidator(_lower),
        WithJsonSchema(any_case_schema("http", "python")),
        Field(description="Kind of work, in any case: an HTTP request, or a registered Python handler."),
        Expected("http or python"),
    ]
    handler: Annotated[
        str | None,
        Field(
            max_length=200,
            pattern=HANDLER_PATTERN,
            description="Registered name of the Python handler; only with type python.",
            examples=["mails.send_welcome"],
        ),
        Expected("a dotted name of at most 200 characters, such as mails.send_welcome"),
    ] = None
    payload: Annotated[
        Any,
        Field(description="What the kind needs: the request of an HTTP job, any JSON for Python."),
    ] = Field(default_factory=dict)
    schedule: Annotated[
        SkipValidation[CronText | ScheduleDocument | ScheduleList | None],
        Field(
            description="When a recurring job is due: a cron expression, an object, or a list of both, which "
            "is short for an object with `any`.",
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
            description="When a one-time job is due: RFC 3339 with offset. Neither this nor `schedule`: now.",
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
        Field(description="Delay after the first failed attempt, in seconds; later ones double up to 1 h."),
        Expected("a number of seconds from 0 to 366 days"),
    ] = 60.0
    retry: Annotated[
        RetryDocument | None,
        Field(description="The retry policy in full."),
        Expected("an object with max_retries, delay_seconds, factor, max_delay_seconds, jitter"),
    ] = None
    timeout_seconds: Annotated[
        float | None,
        Field(
            gt=0,
            le=DAY_SECONDS,
            description="Longest time of one attempt, in seconds. Default: 30 for http, 3600 for python.",
        ),
        Expected("a number of seconds above 0, at most 86400"),
    ] = None
    priority: Annotated[
        Lane,
        PlainValidator(_lane),
        WithJsonSchema(
            {
                "anyOf": [
                    {"enum": ["high", "normal", "low"]},
                    {"type": "integer", "minimum": 1, "maximum": 10},
                    {
                        "type": "string",
                        "pattern": any_case("high", "normal", "low"),
                    },
                ],
                "default": "normal",
            }
        ),
        Field(
            description="Lane of the runs: high, normal, low, or 1-10 (1-3 high, 4-7 normal, 8-10 low).",
            json_schema_extra={"default": "normal"},
        ),
        Expected("high, normal, low, or an integer from 1 (most urgent) to 10"),
    ] = Lane.NORMAL
    pool: Annotated[
        str,
        Field(pattern=POOL_PATTERN, description="Which workers can run it."),
        Expected("1 to 48 of a-z, 0-9, _ and -, not starting with _ or -"),
    ] = "default"
    namespace: Namespace = "default"
    labels: Annotated[
        dict[LabelKey, LabelValue],
        Field(
            max_length=32,
            description="Free key-value pairs to select jobs by.",
            examples=[{"team": "billing"}],
        ),
        Expected(
            "at most 32 pairs; keys of 1 to 63 letters, digits and . _ / -, values of at most 200 characters "
            "on one line"
        ),
    ] = Field(default_factory=dict)
    misfire: Annotated[
        SkipValidation[Literal["fire_all", "fire_latest", "skip"] | MisfireDocument],
        Field(description="What is done with due instants that passed unserved: a policy, or an object."),
    ] = "fire_latest"
    overlap: Annotated[
        Literal["allow", "skip"] | None,
        Field(
            description="What a due instant does while the previous run is unfinished. Default: skip for "
            "recurring jobs, allow for others."
        ),
        Expected("allow or skip"),
    ] = None
    delivery: Annotated[
        Literal["at_least_once"],
        Field(description="Promise about attempts of a run whose worker was lost."),
        Expected("at_least_once"),
    ] = "at_least_once"
    start_deadline_seconds: Annotated[
        float | None,
        Field(
            gt=0,
            le=YEAR_SECONDS,
            description="A run that has not started so long after its instant is skipped.",
        ),
        Expected("a number of seconds above 0, at most 366 days"),
    ] = None
    idempotency_key: Annotated[
        Line | None,
        Field(description="A second submission of a namespace with this key makes no second job."),
        Expected("1 to 200 characters on one line, without space at the ends"),
    ] = None
    description: Annotated[
        str | None,
        Field(max_length=2000, description="Free text for people."),
        Expected("at most 2000 characters"),
    ] = None
    owner: Annotated[
        Line | None,
        Field(description="Who answers for the job."),
        Expected("1 to 200 characters on one line, without space at the ends"),
    ] = None
