"""Nested documents of the job document: retries, misfires, limits."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, ClassVar, Final, Literal

from pydantic import BeforeValidator, Field, PlainValidator, WithJsonSchema

from noonmark.schemas.jobs.http_payload import Status
from noonmark.schemas.problems import other_names
from noonmark.schemas.problems.pydantic_errors import VISIBLE, Document, Expected, wrong
from noonmark.schemas.problems.refusal import FieldError

NAMESPACE_PATTERN: Final = r"^[a-z0-9][a-z0-9_-]{0,62}$"
NAMESPACE_RULE: Final = "1 to 63 of a-z, 0-9, '-' and '_', the first a letter or digit"
# One line of text without control characters and without spaces at its ends. Written so that pydantic's,
# Python's and JavaScript's expressions agree on it.
LINE_PATTERN: Final = r"^[^\s\x00-\x1f\x7f]([^\x00-\x1f\x7f]*[^\s\x00-\x1f\x7f])?$"
HANDLER_PATTERN: Final = r"^[A-Za-z_][A-Za-z0-9_]*(\.[A-Za-z_][A-Za-z0-9_]*)*$"

DAY_SECONDS: Final = 86_400
YEAR_SECONDS: Final = 366 * DAY_SECONDS

Line = Annotated[str, Field(max_length=200, pattern=LINE_PATTERN)]
VisibleLine = Annotated[str, Field(max_length=200, pattern=LINE_PATTERN), VISIBLE]
Seconds = Annotated[float, Field(ge=0, le=YEAR_SECONDS)]
LimitName = Annotated[
    str,
    Field(pattern=NAMESPACE_PATTERN, description="Name of a limit of the namespace.", examples=["stripe"]),
    Expected(NAMESPACE_RULE),
]
GrpcStatus = Literal[
    "CANCELLED",
    "UNKNOWN",
    "INVALID_ARGUMENT",
    "DEADLINE_EXCEEDED",
    "NOT_FOUND",
    "ALREADY_EXISTS",
    "PERMISSION_DENIED",
    "RESOURCE_EXHAUSTED",
    "FAILED_PRECONDITION",
    "ABORTED",
    "OUT_OF_RANGE",
    "UNIMPLEMENTED",
    "INTERNAL",
    "UNAVAILABLE",
    "DATA_LOSS",
    "UNAUTHENTICATED",
]
ExceptionName = Annotated[str, Field(max_length=200, pattern=HANDLER_PATTERN)]


def _exit_code(value: object) -> int | str:
    if isinstance(value, int) and not isinstance(value, bool) and 1 <= value <= 255:
        return value
    if isinstance(value, str):
        low, dash, high = value.partition("-")
        if dash and low.isdecimal() and high.isdecimal() and 1 <= int(low) <= int(high) <= 255:
            return value
    raise wrong("is neither an exit code nor a range of them", "an integer from 1 to 255 or '64-78'")


ExitCode = Annotated[
    int | str,
    PlainValidator(_exit_code),
    WithJsonSchema(
        {
            "anyOf": [
                {"type": "integer", "minimum": 1, "maximum": 255},
                {"type": "string", "pattern": "^[0-9]{1,3}-[0-9]{1,3}$"},
            ]
        }
    ),
]


class FailureRules(Document):
    """Kinds of failures: HTTP or gRPC statuses, exceptions of a handler, exit codes of a script."""

    status: Annotated[
        list[Status],
        Field(max_length=50, description="HTTP statuses: codes, or ranges such as '500-599'."),
        Expected("a list of status codes from 100 to 599 or ranges such as '500-599'"),
    ] = Field(default_factory=list)
    grpc: Annotated[
        list[GrpcStatus],
        Field(max_length=17, description="gRPC statuses by name, such as UNAVAILABLE."),
        Expected("a list of gRPC status names such as UNAVAILABLE"),
    ] = Field(default_factory=list)
    exceptions: Annotated[
        list[ExceptionName],
        Field(
            max_length=50,
            description="Exceptions by class name, with or without their module; subclasses count.",
            examples=[["ConnectionError", "billing.CardDeclined"]],
        ),
        Expected("a list of names of exception classes, such as ConnectionError"),
    ] = Field(default_factory=list)
    exit_codes: Annotated[
        list[ExitCode],
        Field(max_length=50, description="Exit codes of scripts: numbers, or ranges such as '64-78'."),
        Expected("a list of exit codes from 1 to 255 or ranges such as '64-78'"),
    ] = Field(default_factory=list)


class RetryDocument(Document):
    """Full retry policy. The job's `max_retries` and `retry_delay_seconds` are its short form."""

    synonyms: ClassVar[Mapping[str, str]] = other_names.RETRY

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
        Field(ge=1, le=100, description="Factor by which each further delay grows; 1: a fixed delay."),
        Expected("a number from 1 to 100"),
    ] = 2.0
    max_delay_seconds: Annotated[
        Seconds,
        Field(description="Longest delay in seconds. Default: 3600, or the first delay if that is longer."),
        Expected("a number of seconds from 0 to 366 days, not below the delay"),
    ] = 3600.0
    delays: Annotated[
        list[Seconds] | None,
        Field(
            min_length=1,
            max_length=100,
            description="List of delays in seconds, instead of delay_seconds and factor; the last one "
            "repeats. max_retries then defaults to their number.",
            examples=[[60, 300, 1800]],
        ),
        Expected("a list of 1 to 100 numbers of seconds from 0 to 366 days"),
    ] = None
    max_age_seconds: Annotated[
        float | None,
        Field(
            gt=0,
            le=YEAR_SECONDS,
            description="No attempt starts later than this many seconds after the run's instant.",
        ),
        Expected("a number of seconds above 0, at most 366 days"),
    ] = None
    only_on: Annotated[
        FailureRules | None,
        Field(
            description="Only these failures are retried. Default: all that count as temporary for the kind."
        ),
        Expected("an object with status, grpc, exceptions or exit_codes"),
    ] = None
    never_on: Annotated[
        FailureRules | None,
        Field(description="These failures are never retried; takes precedence over only_on."),
        Expected("an object with status, grpc, exceptions or exit_codes"),
    ] = None
    jitter: Annotated[
        Literal["full", "none"],
        Field(
            description="Random spread of delays, so that runs that failed together do not retry "
            "together: full or none."
        ),
        Expected("full or none"),
    ] = "full"


class LimitDocument(Document):
    """A limit that applies to the job's runs, counted by a key."""

    synonyms: ClassVar[Mapping[str, str]] = other_names.LIMIT

    name: LimitName
    key: Annotated[
        Line | None,
        Field(
            description="Runs with the same key are counted together. Default: all runs without a key are."
        ),
        Expected("1 to 200 characters on one line, without space at the ends"),
    ] = None


def _named(value: object) -> object:
    return {"name": value} if isinstance(value, str) else value


MOST_LIMITS: Final = 8
"""Most limits that a job can name."""

LimitItem = Annotated[
    LimitDocument, BeforeValidator(_named, json_schema_input_type=LimitName | LimitDocument)
]
"""A limit by name only, or with a key."""


class MisfireDocument(Document):
    """What to do with due instants that were missed."""

    synonyms: ClassVar[Mapping[str, str]] = other_names.MISFIRE

    policy: Annotated[
        Literal["fire_all", "fire_latest", "skip"],
        Field(description="Which missed instants run: each, the latest, or none."),
        Expected("fire_all, fire_latest or skip"),
    ] = "fire_latest"
    grace_seconds: Annotated[
        Seconds,
        Field(description="Seconds by which an instant can be late and still count as on time."),
        Expected("a number of seconds from 0 to 366 days"),
    ] = 60.0
    look_back_seconds: Annotated[
        Seconds | None,
        Field(
            description="Instants older than this many seconds never run. Default: the longest of one "
            "hour, the grace and one period."
        ),
        Expected("a number of seconds from the grace to 366 days"),
    ] = None


def check_limits(limits: object, problems: list[FieldError]) -> None:
    """Refuse a limit that is named twice: a run takes one slot of each limit."""
    if not isinstance(limits, list) or len(limits) > MOST_LIMITS:
        return
    seen: list[tuple[object, object]] = []
    for index, limit in enumerate(limits):
        one = (limit.get("name"), limit.get("key")) if isinstance(limit, dict) else (limit, None)
        if one in seen and isinstance(one[0], str):
            message = "is listed twice with the same key" if one[1] is not None else "is listed twice"
            problems.append(
                FieldError(f"/limits/{index}", message, "each limit once, or with different keys")
            )
        seen.append(one)
