"""The tasks of a workflow as clients write them: fields with types, limits and descriptions."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, ClassVar, Final, Literal

from pydantic import AfterValidator, BeforeValidator, ConfigDict, Field, SkipValidation, WithJsonSchema
from pydantic.config import JsonDict

from noonmark.core.kinds.json_values import MAX_POINTER_LENGTH, pointer_path
from noonmark.core.states import Lane
from noonmark.core.workflows import KEY_PATTERN
from noonmark.core.workflows.conditions import MOST_NODES, MOST_VALUES, TESTS
from noonmark.core.workflows.definition import Rule
from noonmark.schemas.jobs.policies import YEAR_SECONDS
from noonmark.schemas.jobs.retry_rules import retry_rules
from noonmark.schemas.jobs.work_fields import (
    LATER,
    WORK_KINDS,
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
from noonmark.schemas.problems.pydantic_errors import Document, Expected, any_case_schema, wrong

KEY_RULE: Final = "1 to 63 of a-z, 0-9, '-' and '_', the first a letter"

TaskType = Literal["http", "grpc", "script", "python", "kafka"]
TaskKey = Annotated[str, Field(pattern=KEY_PATTERN), Expected(KEY_RULE)]

_FORMS: Final[list[JsonDict]] = [
    {"required": [name]} for name in ("all", "any", "not", "verdict", *TESTS) if name != "in"
]
_CONDITION_FORMS: Final[JsonDict] = {
    "oneOf": [*_FORMS, {"required": ["in"], "not": {"required": ["verdict"]}}],
    "dependentRequired": {"verdict": ["in"]},
}


def _pointer(text: str) -> str:
    try:
        pointer_path(text)
    except ValueError as error:
        raise wrong(f"is not a JSON pointer: {error}") from None
    return text


Place = Annotated[
    str,
    Field(
        json_schema_extra={"maxLength": MAX_POINTER_LENGTH},
        description="JSON pointer into the result (RFC 6901); empty: the whole result.",
        examples=["/total"],
    ),
    AfterValidator(_pointer),
    Expected("a JSON pointer such as /total"),
]


class TaskCondition(Document):
    """A condition on results and verdicts of tasks. `core.workflows.conditions` reads and checks it."""

    model_config = ConfigDict(json_schema_extra=_CONDITION_FORMS)

    all_of: Annotated[
        list[TaskCondition] | None,
        Field(alias="all", min_length=1, max_length=MOST_NODES, description="All of these hold."),
    ] = None
    any_of: Annotated[
        list[TaskCondition] | None,
        Field(alias="any", min_length=1, max_length=MOST_NODES, description="At least one of these holds."),
    ] = None
    negated: Annotated[TaskCondition | None, Field(alias="not", description="This does not hold.")] = None
    verdict: Annotated[TaskKey | None, Field(description="Task whose verdict is one of `in`.")] = None
    result: Annotated[
        TaskKey | None,
        Field(
            description="Task whose result is compared. A condition of a dependency that names none compares "
            "the result of the task that is depended on."
        ),
    ] = None
    at: Place = ""
    eq: Annotated[Any, Field(description="The value equals this; types are not converted.")] = None
    ne: Annotated[Any, Field(description="The value exists and does not equal this.")] = None
    lt: Annotated[
        float | str | None, Field(description="The value is less than this; both numbers or both text.")
    ] = None
    le: Annotated[float | str | None, Field(description="The value is at most this.")] = None
    gt: Annotated[float | str | None, Field(description="The value is greater than this.")] = None
    ge: Annotated[float | str | None, Field(description="The value is at least this.")] = None
    is_in: Annotated[
        list[Any] | None,
        Field(
            alias="in",
            min_length=1,
            max_length=MOST_VALUES,
            description="The value equals one of these; of a verdict: succeeded, failed, skipped.",
        ),
    ] = None
    exists: Annotated[bool | None, Field(description="Whether there is a value.")] = None


Condition = Annotated[SkipValidation[TaskCondition | None], Expected("a condition")]


class DependencyDocument(Document):
    """A task that is depended on, with a condition on its result."""

    synonyms: ClassVar[Mapping[str, str]] = other_names.DEPENDENCY

    task: Annotated[TaskKey, Field(description="Key of the task."), Expected(KEY_RULE)]
    condition: Annotated[
        Condition,
        Field(
            alias="if",
            description="Condition on the task's result. If it does not hold, the task counts as skipped.",
        ),
    ] = None


def _keyed(value: object) -> object:
    return {"task": value} if isinstance(value, str) else value


DependencyItem = Annotated[
    DependencyDocument, BeforeValidator(_keyed, json_schema_input_type=TaskKey | DependencyDocument)
]
"""A dependency by the key only, or with a condition."""


class TaskDocument(Document):
    """A task of a workflow: what it does, as of a job, and when it runs. Only `type` is required."""

    synonyms: ClassVar[Mapping[str, str]] = other_names.TASK

    model_config = ConfigDict(json_schema_extra={"allOf": [*work_rules()]})
    unavailable: ClassVar[Mapping[str, frozenset[str]]] = {
        **dict.fromkeys(
            ("map", "limits", "late_after_seconds", "for_seconds", "until", "signal", "on_deadline", "who"),
            LATER,
        ),
        "type": frozenset({"wait", "event", "approval", "workflow"}),
    }

    type: Annotated[
        TaskType,
        BeforeValidator(lower),
        WithJsonSchema(any_case_schema(*WORK_KINDS)),
        Field(description="Kind of work, in upper or lower case, as of a job."),
        Expected("http, grpc, script, python or kafka"),
    ]
    handler: HandlerName = None
    payload: Payload = Field(default_factory=dict)
    depends_on: Annotated[
        list[DependencyItem],
        Field(
            description="Tasks that this one waits for: keys, or objects with a condition.",
            examples=[["extract", {"task": "check", "if": {"at": "/complete", "eq": True}}]],
        ),
        Expected("a list of keys of tasks, or of objects with task and if"),
    ] = Field(default_factory=list)
    rule: Annotated[
        Literal["all_succeeded", "none_failed", "all_done", "one_succeeded", "one_failed"],
        Field(
            description="When it runs, by the tasks that it depends on. none_failed: some may be skipped, "
            "but not all; one_succeeded and one_failed do not wait for the others."
        ),
        Expected(", ".join(list(Rule)[:-1]) + f" or {list(Rule)[-1]}"),
    ] = "all_succeeded"
    when: Annotated[
        Condition,
        Field(
            description="Condition on results and verdicts of tasks upstream, evaluated when the rule is "
            "met. If it does not hold, the task is skipped."
        ),
    ] = None
    may_fail: Annotated[
        bool, Field(description="Its failure does not fail the workflow."), Expected("true or false")
    ] = False
    handles: Annotated[
        list[TaskKey],
        Field(
            description="Tasks upstream whose failure does not fail the workflow if this task succeeds.",
        ),
        Expected("a list of keys of tasks"),
    ] = Field(default_factory=list)
    max_retries: MaxRetries = 3
    retry_delay_seconds: RetryDelay = 60.0
    retry: Retry = None
    timeout_seconds: Timeout = None
    priority: Priority = Lane.NORMAL
    pool: Pool = "default"
    delivery: Delivery = "at_least_once"
    start_deadline_seconds: Annotated[
        float | None,
        Field(
            gt=0,
            le=YEAR_SECONDS,
            description="It is skipped if it has not started this many seconds after it was due.",
        ),
        Expected("a number of seconds above 0, at most 366 days"),
    ] = None


class TaskDefaults(Document):
    """Values of fields that the tasks of a workflow do not set themselves."""

    synonyms: ClassVar[Mapping[str, str]] = other_names.TASK_DEFAULTS

    model_config = ConfigDict(json_schema_extra={"allOf": [*retry_rules()]})
    unavailable: ClassVar[Mapping[str, frozenset[str]]] = dict.fromkeys(
        ("limits", "late_after_seconds"), LATER
    )

    max_retries: MaxRetries = 3
    retry_delay_seconds: RetryDelay = 60.0
    retry: Retry = None
    timeout_seconds: Timeout = None
    priority: Priority = Lane.NORMAL
    pool: Pool = "default"
    delivery: Delivery = "at_least_once"
    start_deadline_seconds: Annotated[
        float | None,
        Field(
            gt=0,
            le=YEAR_SECONDS,
            description="A task is skipped if it has not started this many seconds after it was due.",
        ),
        Expected("a number of seconds above 0, at most 366 days"),
    ] = None


class ResultDocument(Document):
    """Where the result of a workflow is: in the result of one of its tasks."""

    result: Annotated[TaskKey, Field(description="Key of the task."), Expected(KEY_RULE)]
    at: Place = ""
