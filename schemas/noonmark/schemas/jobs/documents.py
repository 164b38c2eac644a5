"""The job document as clients write it: fields with types, limits and descriptions."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, ClassVar, Final, Literal, get_args

from pydantic import BeforeValidator, ConfigDict, Field, SkipValidation, WithJsonSchema
from pydantic.config import JsonDict

from noonmark.core.states import Lane
from noonmark.core.workflows.compile import MOST_TASKS
from noonmark.schemas.jobs.policies import (
    MOST_LIMITS,
    NAMESPACE_PATTERN,
    NAMESPACE_RULE,
    YEAR_SECONDS,
    LimitItem,
    Line,
    MisfireDocument,
    VisibleLine,
)
from noonmark.schemas.jobs.schedule_documents import CronText, ScheduleDocument, ScheduleList
from noonmark.schemas.jobs.task_documents import ResultDocument, TaskDefaults, TaskDocument, TaskKey
from noonmark.schemas.jobs.work_fields import (
    LATER,
    Delivery,
    HandlerName,
    MaxRetries,
    Payload,
    Pool,
    Priority,
    Retry,
    RetryDelay,
    Timeout,
    lower,
    work_rules,
)
from noonmark.schemas.problems import other_names
from noonmark.schemas.problems.pydantic_errors import (
    VISIBLE,
    Document,
    Expected,
    any_case,
    any_case_schema,
)

LABEL_KEY_PATTERN: Final = r"^[A-Za-z0-9]([A-Za-z0-9._/-]{0,61}[A-Za-z0-9])?$"
LABEL_VALUE_PATTERN: Final = r"^[^\x00-\x1f\x7f]{0,200}$"

WORKFLOW: Final = "workflow"
"""The type of jobs that run tasks."""

JobType = Literal["http", "grpc", "script", "python", "kafka", "workflow"]
KINDS: Final[tuple[str, ...]] = get_args(JobType)

OF_WORKFLOWS: Final = ("tasks", "finally", "defaults", "result")
"""Fields that only workflows have."""

OF_TASKS: Final = (
    *(
        "handler",
        "payload",
        "max_retries",
        "retry_delay_seconds",
        "retry",
        "timeout_seconds",
        "pool",
        "delivery",
    ),
)
"""Fields that a workflow itself does not have: its tasks have them."""

_NOT_GIVEN: Final[JsonDict] = {"type": "null"}

LabelKey = Annotated[str, Field(pattern=LABEL_KEY_PATTERN)]
LabelValue = Annotated[str, Field(pattern=LABEL_VALUE_PATTERN), VISIBLE]
Namespace = Annotated[
    str,
    Field(pattern=NAMESPACE_PATTERN, description="Namespace of the job."),
    Expected(NAMESPACE_RULE),
]


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
            *work_rules(),
            {
                "if": {
                    "properties": {"schedule": {"type": ["string", "object", "array"]}},
                    "required": ["schedule"],
                },
                "then": recurring,
            },
            {
                "if": {"properties": {"type": {"pattern": any_case(WORKFLOW)}}, "required": ["type"]},
                "then": {
                    "properties": {"tasks": {"type": "object"}, **dict.fromkeys(OF_TASKS, _NOT_GIVEN)},
                    "required": ["tasks"],
                },
                "else": {"properties": dict.fromkeys(OF_WORKFLOWS, _NOT_GIVEN)},
            },
        ]
    }


class JobDocument(Document):
    """What to run and when. Events, REST and files use the same document; only `type` is required."""

    synonyms: ClassVar[Mapping[str, str]] = other_names.JOB

    model_config = ConfigDict(
        title="noonmark job document", json_schema_extra=field_rules(name_required=True)
    )
    unavailable: ClassVar[Mapping[str, frozenset[str]]] = {
        **dict.fromkeys(("depends_on", "secrets", "max_parallel"), LATER),
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
        BeforeValidator(lower),
        WithJsonSchema(any_case_schema(*KINDS)),
        Field(
            description="Kind of work, in upper or lower case: an HTTP request, a gRPC call, a script on "
            "the worker's machine, a registered Python handler, a Kafka event, or a workflow of such tasks."
        ),
        Expected("http, grpc, script, python, kafka or workflow"),
    ]
    handler: HandlerName = None
    payload: Payload = Field(default_factory=dict)
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
    max_retries: MaxRetries = 3
    retry_delay_seconds: RetryDelay = 60.0
    retry: Retry = None
    timeout_seconds: Timeout = None
    deadline_seconds: Annotated[
        float | None,
        Field(
            gt=0,
            le=YEAR_SECONDS,
            description="Seconds after its instant at which a run must be finished, including retries.",
        ),
        Expected("a number of seconds above 0, at most 366 days"),
    ] = None
    priority: Priority = Lane.NORMAL
    pool: Pool = "default"
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
    delivery: Delivery = "at_least_once"
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
    tasks: Annotated[
        SkipValidation[dict[TaskKey, TaskDocument] | None],
        Field(
            description="Tasks of a workflow by their keys; only for type workflow.",
            json_schema_extra={"minProperties": 1, "maxProperties": MOST_TASKS},
        ),
    ] = None
    finally_: Annotated[
        SkipValidation[dict[TaskKey, TaskDocument] | None],
        Field(
            alias="finally",
            description="Tasks that run when all others have ended, also after a failure or a cancel.",
            json_schema_extra={"maxProperties": MOST_TASKS},
        ),
    ] = None
    defaults: Annotated[
        SkipValidation[TaskDefaults | None],
        Field(description="Values of fields that the tasks of a workflow do not set themselves."),
    ] = None
    result: Annotated[
        SkipValidation[ResultDocument | None],
        Field(description="What the result of a run of a workflow is. Default: it has none."),
    ] = None
