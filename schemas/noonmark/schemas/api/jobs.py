"""Jobs as the API answers them, and what it takes besides job documents."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Any, Final, Literal
from uuid import UUID

from pydantic import Field, PlainValidator, WithJsonSchema

from noonmark.core.vocabulary import Lane
from noonmark.schemas.api.common import Answer, JsonObject, Problem, ProblemField
from noonmark.schemas.jobs.documents import PRIORITY_SCHEMA, optional_lane
from noonmark.schemas.jobs.requests import Reason
from noonmark.schemas.problems.pydantic_errors import Document, Expected

MOST_JOBS: Final = 10_000
"""Jobs of one bulk request."""


class Job(Answer):
    """A job: how it stands, and its document with every default spelt out."""

    id: UUID
    namespace: str
    name: str | None
    state: Annotated[
        Literal["active", "paused", "completed", "cancelled", "broken"],
        Field(description="A one-time job is completed when its run was queued."),
    ]
    state_reason: str | None
    paused_by: Annotated[
        Literal["job", "namespace"] | None, Field(description="What was paused: the job, or its namespace.")
    ]
    paused_at: datetime | None
    version: Annotated[int, Field(description="Rises with every change of the document.")]
    created_at: datetime
    updated_at: datetime
    next_run_at: Annotated[
        datetime | None, Field(description="The next instant; null: none comes, or a pause holds it.")
    ]
    last_run_at: Annotated[datetime | None, Field(description="When a run was last started.")]
    held_instants: Annotated[
        int | None,
        Field(
            description="Of a paused job that is read by itself: how many instants came due in the pause; "
            "null: it holds none, or they cannot be counted."
        ),
    ]
    payload_hidden: Annotated[
        bool,
        Field(
            description="The document's payload is not shown: the credential may not read payloads, or this "
            "is an item of a listing."
        ),
    ]
    document: Annotated[
        JsonObject,
        Field(description="The job document with every default spelt out; a PUT with it changes nothing."),
    ]


class JobMade(Answer):
    """A job that was asked for."""

    id: UUID
    namespace: str
    name: str | None
    version: int
    created: Annotated[bool, Field(description="False: there was a job with its `idempotency_key` already.")]


class BulkItem(Answer):
    """What became of one job of many."""

    index: Annotated[int, Field(description="Its place in the request.")]
    status: Annotated[
        int,
        Field(description="The status that a request of its own would have got: 202, 200, 403, 409, 422."),
    ]
    id: Annotated[UUID | None, Field(description="Of the job; null where it was not taken.")] = None
    problem: Problem | None = None


class JobsMade(Answer):
    """What became of many jobs."""

    items: list[BulkItem]
    accepted: int
    rejected: int


class JobTriggered(Answer):
    """A run that somebody asked for."""

    job_id: UUID
    run_id: UUID


class JobVersion(Answer):
    """A job as it was, or is, between two changes."""

    job_id: UUID
    version: int
    replaced_at: Annotated[
        datetime | None, Field(description="When the next version came; null: the current.")
    ]
    payload_hidden: bool
    document: JsonObject


class JobVersions(Answer):
    """The versions of a job, the newest first; the last 200."""

    items: list[JobVersion]


class FieldChange(Answer):
    """One value that two versions differ in."""

    pointer: Annotated[str, Field(description="RFC 6901 pointer into the document.")]
    before: Annotated[Any, Field(description="Null also where it was absent.")]
    after: Any


class JobDiff(Answer):
    """What changed between two versions of a job, field by field."""

    job_id: UUID
    from_version: int
    to_version: int
    changes: list[FieldChange]
    payload_hidden: Annotated[bool, Field(description="A change of the payload is told, without its values.")]


class Fire(Answer):
    """One due instant."""

    at: datetime
    local: Annotated[str, Field(description="The same on the wall clock of the zone, with its offset.")]
    note: Annotated[str | None, Field(description="What a change of the clocks or a calendar did to it.")]


class RemovedFire(Answer):
    """A time on the wall clock that fires nothing."""

    local: str
    note: str


class PreviewAnswer(Answer):
    """What a schedule will do."""

    fires: list[Fire]
    complete: Annotated[bool, Field(description="Nothing comes after these.")]
    removed: list[RemovedFire]
    document: Annotated[
        JsonObject | None,
        Field(description="The job document that was given, every default spelt out; else null."),
    ] = None
    problems: list[ProblemField] = Field(
        default_factory=list,
        description="What the document names and is not there, so that a job of it would be refused: its"
        " pool, a live worker that runs it, a limit. Told to those who may write jobs; pointers lead into the"
        " document.",
    )


class ReasonBody(Document):
    """Why."""

    reason: Reason = None


class ResumeBody(Document):
    """What becomes of the instants that came due in the pause."""

    missed: Annotated[
        Literal["skip", "latest", "all"],
        Field(description="None of them runs, the latest runs, or all run, oldest first."),
        Expected("skip, latest or all"),
    ]


class TriggerBody(Document):
    """What the run has in place of the job's own."""

    payload: Annotated[Any, Field(description="Left out: the job's own.")] = None
    priority: Annotated[
        Lane | None,
        PlainValidator(optional_lane),
        WithJsonSchema({"anyOf": [PRIORITY_SCHEMA, {"type": "null"}], "default": None}),
        Field(description="Left out: the job's own.", json_schema_extra={"default": None}),
        Expected("high, normal, low, or an integer from 1 (most urgent) to 10"),
    ] = None


class BulkBody(Document):
    """Many jobs."""

    jobs: Annotated[
        list[Any],
        Field(
            min_length=1, max_length=MOST_JOBS, description="Job documents; each is taken or not by itself."
        ),
        WithJsonSchema({"type": "array", "items": {"type": "object"}, "minItems": 1, "maxItems": MOST_JOBS}),
        Expected(f"a list of 1 to {MOST_JOBS} job documents"),
    ]


class PreviewBody(Document):
    """What is to be shown the fires of: a job document, or a schedule alone."""

    document: Annotated[
        dict[str, Any] | None, Field(description="A job document."), Expected("a job document")
    ] = None
    schedule: Annotated[Any, Field(description="A schedule, as a job document has it.")] = None
    namespace: Annotated[
        str | None, Field(description="Whose default zone and calendars hold for a schedule alone.")
    ] = None
    count: Annotated[
        int, Field(ge=1, le=1000, description="Fires at most."), Expected("an integer from 1 to 1000")
    ] = 10
    from_: Annotated[
        str | None,
        Field(alias="from", description="Fires after this instant; now by default. RFC 3339 with offset."),
        Expected("an RFC 3339 instant with its offset"),
    ] = None
    until: Annotated[
        str | None,
        Field(description="No fire is after this instant. RFC 3339 with offset."),
        Expected("an RFC 3339 instant with its offset"),
    ] = None
