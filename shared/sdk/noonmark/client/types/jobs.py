"""Jobs in API responses, and request bodies other than job documents.

Generated from `noonmark.schemas.api.jobs` by `noonmark.schemas.client_types`; do not edit it by hand.
"""

from __future__ import annotations

from typing import Any, Literal, TypedDict

from noonmark.client.types.common import Problem, ProblemField


class Job(TypedDict):
    """A job: its state, and its document with all defaults filled in."""

    id: str

    namespace: str

    name: str | None

    state: Literal["active", "paused", "completed", "cancelled", "broken"]
    """A one-time job is completed as soon as its run is queued."""

    state_reason: str | None

    paused_by: Literal["job", "namespace"] | None
    """Whether the job or its namespace was paused."""

    paused_at: str | None

    version: int
    """Increases with every change of the document."""

    created_at: str

    updated_at: str

    next_run_at: str | None
    """The next instant; null: none is left, or the job is paused."""

    last_run_at: str | None
    """When a run last started."""

    held_instants: int | None
    """Number of instants that came due while the job is paused; null: none, not counted, or the job is
    part of a listing.
    """

    payload_hidden: bool
    """True if the payload is hidden: the credential lacks `payloads:read`, or the job is part of a
    listing.
    """

    document: dict[str, Any]
    """The job document with all defaults filled in; a PUT with it changes nothing."""


class ChangedJob(Job):
    """A job after a request to pause, resume, cancel or delete it."""

    changed: bool
    """False: the job was in this state already, for this reason, and nothing was changed."""


class JobMade(TypedDict):
    """A created job."""

    id: str

    namespace: str

    name: str | None

    version: int

    created: bool
    """False: a job with this `idempotency_key` already existed."""


class BulkItem(TypedDict):
    """Result for one job of a bulk request."""

    index: int
    """Index in the request, from 0."""

    status: int
    """Status that a separate request would have returned: 202, 200, 403, 409 or 422."""

    id: str | None
    """Id of the job; null if it was refused."""

    problem: Problem | None


class JobsMade(TypedDict):
    """Result of a bulk request."""

    items: list[BulkItem]

    accepted: int

    rejected: int


class JobTriggered(TypedDict):
    """A triggered run."""

    job_id: str

    run_id: str


class JobVersion(TypedDict):
    """One version of a job."""

    job_id: str

    version: int

    replaced_at: str | None
    """When the next version replaced it; null: it is the current one."""

    payload_hidden: bool

    document: dict[str, Any]


class JobVersions(TypedDict):
    """The last 200 versions of a job, newest first."""

    items: list[JobVersion]


class FieldChange(TypedDict):
    """One value that differs between two versions."""

    pointer: str
    """RFC 6901 pointer into the document."""

    before: Any
    """null also if the value was absent."""

    after: Any


class JobDiff(TypedDict):
    """What changed between two versions of a job, field by field."""

    job_id: str

    from_version: int

    to_version: int

    changes: list[FieldChange]

    payload_hidden: bool
    """True if values of the payload are hidden; a change of it is listed without them."""


class Fire(TypedDict):
    """One due instant."""

    at: str

    local: str
    """The instant as local time in the zone, with its offset."""

    note: str | None
    """How a clock change or a calendar affects it."""


class RemovedFire(TypedDict):
    """A local time that does not fire."""

    local: str

    note: str


class PreviewAnswer(TypedDict):
    """Preview of a schedule."""

    fires: list[Fire]

    complete: bool
    """True if no further instants follow."""

    removed: list[RemovedFire]

    document: dict[str, Any] | None
    """The given job document with all defaults filled in; null if none was given."""

    problems: list[ProblemField]
    """Objects that the document names but that do not exist, so that the job would be refused: its pool, a
    live worker that can run it, a limit. Only for credentials that can write jobs; pointers lead into
    the document.
    """
