"""Jobs as the API answers them, and what it takes besides job documents.

Made from `noonmark.schemas.api.jobs`, not by hand: see `noonmark.schemas.client_types`.
"""

from __future__ import annotations

from typing import Any, Literal, TypedDict

from noonmark.client.types.common import Problem, ProblemField


class Job(TypedDict):
    """A job: how it stands, and its document with every default spelt out."""

    id: str

    namespace: str

    name: str | None

    state: Literal["active", "paused", "completed", "cancelled", "broken"]
    """A one-time job is completed when its run was queued."""

    state_reason: str | None

    paused_by: Literal["job", "namespace"] | None
    """What was paused: the job, or its namespace."""

    paused_at: str | None

    version: int
    """Rises with every change of the document."""

    created_at: str

    updated_at: str

    next_run_at: str | None
    """The next instant; null: none comes, or a pause holds it."""

    last_run_at: str | None
    """When a run was last started."""

    held_instants: int | None
    """Of a paused job that is read by itself: how many instants came due in the pause; null: it holds
    none, or they cannot be counted.
    """

    payload_hidden: bool
    """The document's payload is not shown: the credential may not read payloads, or this is an item of a
    listing.
    """

    document: dict[str, Any]
    """The job document with every default spelt out; a PUT with it changes nothing."""


class JobMade(TypedDict):
    """A job that was asked for."""

    id: str

    namespace: str

    name: str | None

    version: int

    created: bool
    """False: there was a job with its `idempotency_key` already."""


class BulkItem(TypedDict):
    """What became of one job of many."""

    index: int
    """Its place in the request."""

    status: int
    """The status that a request of its own would have got: 202, 200, 403, 409, 422."""

    id: str | None
    """Of the job; null where it was not taken."""

    problem: Problem | None


class JobsMade(TypedDict):
    """What became of many jobs."""

    items: list[BulkItem]

    accepted: int

    rejected: int


class JobTriggered(TypedDict):
    """A run that somebody asked for."""

    job_id: str

    run_id: str


class JobVersion(TypedDict):
    """A job as it was, or is, between two changes."""

    job_id: str

    version: int

    replaced_at: str | None
    """When the next version came; null: the current."""

    payload_hidden: bool

    document: dict[str, Any]


class JobVersions(TypedDict):
    """The versions of a job, the newest first; the last 200."""

    items: list[JobVersion]


class FieldChange(TypedDict):
    """One value that two versions differ in."""

    pointer: str
    """RFC 6901 pointer into the document."""

    before: Any
    """Null also where it was absent."""

    after: Any


class JobDiff(TypedDict):
    """What changed between two versions of a job, field by field."""

    job_id: str

    from_version: int

    to_version: int

    changes: list[FieldChange]

    payload_hidden: bool
    """A change of the payload is told, without its values."""


class Fire(TypedDict):
    """One due instant."""

    at: str

    local: str
    """The same on the wall clock of the zone, with its offset."""

    note: str | None
    """What a change of the clocks or a calendar did to it."""


class RemovedFire(TypedDict):
    """A time on the wall clock that fires nothing."""

    local: str

    note: str


class PreviewAnswer(TypedDict):
    """What a schedule will do."""

    fires: list[Fire]

    complete: bool
    """Nothing comes after these."""

    removed: list[RemovedFire]

    document: dict[str, Any] | None
    """The job document that was given, every default spelt out; else null."""

    problems: list[ProblemField]
    """What the document names and is not there, so that a job of it would be refused: its pool, a live
    worker that runs it, a limit. Told to those who may write jobs; pointers lead into the document.
    """
