"""Jobs in API responses, and request bodies other than job documents."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Annotated, Any, ClassVar, Final, Literal
from uuid import UUID

from pydantic import Field, PlainValidator, WithJsonSchema

from noonmark.core.states import Lane, ResumeChoice
from noonmark.schemas.api.common import Answer, JsonObject, Problem, ProblemField
from noonmark.schemas.jobs.requests import Reason
from noonmark.schemas.jobs.work_fields import PRIORITY_SCHEMA, optional_lane
from noonmark.schemas.problems import other_names
from noonmark.schemas.problems.pydantic_errors import Document, Expected

MOST_JOBS: Final = 10_000
"""Most jobs of one bulk request."""


class Job(Answer):
    """A job: its state, and its document with all defaults filled in."""

    id: UUID
    namespace: str
    name: str | None
    state: Annotated[
        Literal["active", "paused", "completed", "cancelled", "broken"],
        Field(description="A one-time job is completed as soon as its run is queued."),
    ]
    state_reason: str | None
    paused_by: Annotated[
        Literal["job", "namespace"] | None, Field(description="Whether the job or its namespace was paused.")
    ]
    paused_at: datetime | None
    version: Annotated[int, Field(description="Increases with every change of the document.")]
    created_at: datetime
    updated_at: datetime
    next_run_at: Annotated[
        datetime | None, Field(description="The next instant; null: none is left, or the job is paused.")
    ]
    last_run_at: Annotated[datetime | None, Field(description="When a run last started.")]
    held_instants: Annotated[
        int | None,
        Field(
            description="Number of instants that came due while the job is paused; null: none, not "
            "counted, or the job is part of a listing."
        ),
    ]
    payload_hidden: Annotated[
        bool,
        Field(
            description="True if the payload is hidden: the credential lacks `payloads:read`, or the job "
            "is part of a listing."
        ),
    ]
    document: Annotated[
        JsonObject,
        Field(description="The job document with all defaults filled in; a PUT with it changes nothing."),
    ]


class ChangedJob(Job):
    """A job after a request to pause, resume, cancel or delete it."""

    changed: Annotated[
        bool,
        Field(
            description="False: the job was in this state already, for this reason, and nothing was changed."
        ),
    ]


class JobMade(Answer):
    """A created job."""

    id: UUID
    namespace: str
    name: str | None
    version: int
    created: Annotated[bool, Field(description="False: a job with this `idempotency_key` already existed.")]


class BulkItem(Answer):
    """Result for one job of a bulk request."""

    index: Annotated[int, Field(description="Index in the request, from 0.")]
    status: Annotated[
        int,
        Field(description="Status that a separate request would have returned: 202, 200, 403, 409 or 422."),
    ]
    id: Annotated[UUID | None, Field(description="Id of the job; null if it was refused.")] = None
    problem: Problem | None = None


class JobsMade(Answer):
    """Result of a bulk request."""

    items: list[BulkItem]
    accepted: int
    rejected: int


class JobTriggered(Answer):
    """A triggered run."""

    job_id: UUID
    run_id: UUID


class JobVersion(Answer):
    """One version of a job."""

    job_id: UUID
    version: int
    replaced_at: Annotated[
        datetime | None, Field(description="When the next version replaced it; null: it is the current one.")
    ]
    payload_hidden: bool
    document: JsonObject


class JobVersions(Answer):
    """The last 200 versions of a job, newest first."""

    items: list[JobVersion]


class FieldChange(Answer):
    """One value that differs between two versions."""

    pointer: Annotated[str, Field(description="RFC 6901 pointer into the document.")]
    before: Annotated[Any, Field(description="null also if the value was absent.")]
    after: Any


class JobDiff(Answer):
    """What changed between two versions of a job, field by field."""

    job_id: UUID
    from_version: int
    to_version: int
    changes: list[FieldChange]
    payload_hidden: Annotated[
        bool,
        Field(description="True if values of the payload are hidden; a change of it is listed without them."),
    ]


class Fire(Answer):
    """One due instant."""

    at: datetime
    local: Annotated[str, Field(description="The instant as local time in the zone, with its offset.")]
    note: Annotated[str | None, Field(description="How a clock change or a calendar affects it.")]


class RemovedFire(Answer):
    """A local time that does not fire."""

    local: str
    note: str


class PreviewAnswer(Answer):
    """Preview of a schedule."""

    fires: list[Fire]
    complete: Annotated[bool, Field(description="True if no further instants follow.")]
    removed: list[RemovedFire]
    document: Annotated[
        JsonObject | None,
        Field(description="The given job document with all defaults filled in; null if none was given."),
    ] = None
    problems: list[ProblemField] = Field(
        default_factory=list,
        description="Objects that the document names but that do not exist, so that the job would be "
        "refused: its pool, a live worker that can run it, a limit. Only for credentials that can write "
        "jobs; pointers lead into the document.",
    )


class ReasonBody(Document):
    """The reason of a request."""

    reason: Reason = None


class ResumeBody(Document):
    """What to do with instants that came due during the pause."""

    missed: Annotated[
        Literal["skip", "latest", "all"],
        Field(description="skip: none runs; latest: the latest runs; all: all run, oldest first."),
        Expected("skip, latest or all"),
    ] = ResumeChoice.SKIP.value


class TriggerBody(Document):
    """Values that replace the job's own for this run."""

    synonyms: ClassVar[Mapping[str, str]] = other_names.REFERENCE

    payload: Annotated[Any, Field(description="Default: the job's own.")] = None
    priority: Annotated[
        Lane | None,
        PlainValidator(optional_lane),
        WithJsonSchema({"anyOf": [PRIORITY_SCHEMA, {"type": "null"}], "default": None}),
        Field(description="Default: the job's own.", json_schema_extra={"default": None}),
        Expected("high, normal, low, or an integer from 1 (most urgent) to 10"),
    ] = None


class BulkBody(Document):
    """Many jobs."""

    jobs: Annotated[
        list[Any],
        Field(
            min_length=1,
            max_length=MOST_JOBS,
            description="Job documents; each one is accepted or refused separately.",
        ),
        WithJsonSchema({"type": "array", "items": {"type": "object"}, "minItems": 1, "maxItems": MOST_JOBS}),
        Expected(f"a list of 1 to {MOST_JOBS} job documents"),
    ]


class PreviewBody(Document):
    """What to preview: a job document or a schedule."""

    document: Annotated[
        dict[str, Any] | None, Field(description="A job document."), Expected("a job document")
    ] = None
    schedule: Annotated[Any, Field(description="A schedule, in the form that job documents use.")] = None
    namespace: Annotated[
        str | None, Field(description="Namespace whose default zone and calendars apply to `schedule`.")
    ] = None
    count: Annotated[
        int,
        Field(ge=1, le=1000, description="Most instants to return."),
        Expected("an integer from 1 to 1000"),
    ] = 10
    from_: Annotated[
        str | None,
        Field(
            alias="from", description="Return instants after this one. RFC 3339 with offset. Default: now."
        ),
        Expected("an RFC 3339 instant with its offset"),
    ] = None
    until: Annotated[
        str | None,
        Field(description="Return no instants after this one. RFC 3339 with offset."),
        Expected("an RFC 3339 instant with its offset"),
    ] = None
