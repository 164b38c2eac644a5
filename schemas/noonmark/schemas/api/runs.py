"""Runs as the API shows them."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Any, Literal
from uuid import UUID

from pydantic import Field

from noonmark.core.vocabulary import RunState
from noonmark.schemas.api.common import Answer, Instant
from noonmark.schemas.jobs.policies import NAMESPACE_PATTERN
from noonmark.schemas.jobs.requests import Reason
from noonmark.schemas.problems.pydantic_errors import Document

MOST_CANCELLED: int = 1_000
"""Runs that one order by filter cancels, at most."""

PriorityName = Literal["high", "normal", "low"]
_Text = Annotated[str, Field(min_length=1, max_length=200, pattern=r"^[^\x00]+$")]
_HIDDEN = "True where the credential may not see it (`payloads:read`); it is null then."


class RunSummary(Answer):
    """One run, as listings show it."""

    id: UUID
    job_id: UUID
    job_name: Annotated[str | None, Field(description="Null where the job has none, or is gone.")]
    namespace: str
    type: Annotated[str | None, Field(description="Kind of the job's work; null where the job is gone.")]
    handler: Annotated[str | None, Field(description="Of Python jobs: what is called.")]
    state: RunState
    reason: Annotated[
        str | None,
        Field(description="Why it waits, was skipped, is dead, or was cancelled, and then by whom."),
    ]
    waits_for: Annotated[str | None, Field(description="The limit that it waits for, with its key.")]
    priority: PriorityName
    pool: str
    origin: Annotated[str, Field(description="What asked for it: schedule, manual, backfill or event.")]
    scheduled_for: Annotated[datetime, Field(description="The due instant.")]
    queued_at: datetime | None
    first_started_at: Annotated[datetime | None, Field(description="Start of the first attempt.")]
    started_at: Annotated[datetime | None, Field(description="Start of the latest attempt.")]
    finished_at: datetime | None
    start_delay_seconds: Annotated[
        float | None, Field(description="From the due instant to the first start.")
    ]
    took_seconds: Annotated[float | None, Field(description="The latest attempt, once it has ended.")]
    attempt: Annotated[int, Field(description="Attempts of the retry budget used.")]
    fence: Annotated[int, Field(description="Rises with every queueing.")]
    instants: Annotated[int, Field(description="Due instants that this row stands for; 1 but for gaps.")]
    error: Annotated[str | None, Field(description="Error of the latest attempt that failed.")]
    error_hidden: Annotated[bool, Field(description=_HIDDEN)] = False


class Attempt(Answer):
    """One attempt of a run."""

    attempt: Annotated[int, Field(description="Number; used again after a hand-back or redrive.")]
    fence: Annotated[int, Field(description="Tells attempts apart.")]
    outcome: Annotated[str | None, Field(description="How it ended; null: it is under way.")]
    worker: int | None
    started_at: datetime | None
    finished_at: datetime | None
    error: str | None
    error_hidden: Annotated[bool, Field(description=_HIDDEN)] = False
    log_bytes: Annotated[
        dict[str, int] | None, Field(description="Bytes of kept output by stream; null: it wrote nothing.")
    ] = None


class Progress(Answer):
    """How far a run is, as its attempt told last."""

    share: Annotated[float | None, Field(description="From 0 to 1.")]
    message: str
    written_at: datetime


class Run(RunSummary):
    """One run with everything that is recorded about it."""

    job_version: Annotated[
        int,
        Field(
            description="Version of the job that it was planned with. From 1,000,000,000 on: of this run"
            " alone, which was triggered with a payload of its own."
        ),
    ]
    request_id: Annotated[str, Field(description="Of the trigger or backfill that asked; else empty.")]
    start_by: Annotated[datetime | None, Field(description="Not started later than this.")]
    last_scheduled_for: Annotated[datetime | None, Field(description="Of a gap: its last due instant.")]
    zone_data: Annotated[str | None, Field(description="Release of zone data that it was planned with.")]
    waiting_since: datetime | None
    next_attempt_at: Annotated[datetime | None, Field(description="When a retry is queued.")]
    report_until: Annotated[datetime | None, Field(description="Until when its target may report.")]
    died_at: datetime | None
    losses: Annotated[int, Field(description="Workers that vanished while they ran it.")]
    result: Annotated[Any, Field(description="What it returned: any JSON.")]
    result_hidden: Annotated[bool, Field(description=_HIDDEN)] = False
    progress: Progress | None
    checkpoint: Annotated[Any, Field(description="What its next attempt will find: any JSON.")]
    checkpoint_hidden: Annotated[bool, Field(description=_HIDDEN)] = False
    attempts: list[Attempt]


class AttemptLog(Answer):
    """What one attempt wrote: the last 64 KB of each stream."""

    attempt: int
    fence: int
    stdout: str
    stderr: str
    log: Annotated[str, Field(description="What it logged through its context.")]
    dropped: Annotated[int, Field(description="Bytes before these that were not kept.")]
    written_at: datetime


class RunLogs(Answer):
    """What the attempts of a run wrote."""

    run_id: UUID
    attempts: list[AttemptLog]


class RunCancel(Document):
    """Why a run is cancelled."""

    reason: Reason = None


class RunFilter(Document):
    """Which runs of a namespace are meant: those that fit all that is given; nothing: all of them."""

    namespace: Annotated[
        str | None,
        Field(
            pattern=NAMESPACE_PATTERN, description="Default: the credential's only namespace, else `default`."
        ),
    ] = None
    job_id: Annotated[UUID | None, Field(strict=False)] = None
    job_name: Annotated[
        _Text | None, Field(description="Of the recurring job of this name, else of one-time jobs.")
    ] = None
    labels: Annotated[
        dict[_Text, _Text] | None,
        Field(min_length=1, max_length=20, description="Their jobs have all of these."),
    ] = None
    state: Annotated[
        list[Literal["waiting", "queued", "retrying", "running"]] | None,
        Field(min_length=1, max_length=4, description="Any of these; default: all of them."),
    ] = None
    priority: Annotated[
        list[PriorityName] | None, Field(min_length=1, max_length=3, description="Any of these.")
    ] = None
    pool: Annotated[_Text | None, Field(description="That they are for.")] = None
    origin: Annotated[
        Literal["schedule", "manual", "backfill", "event"] | None, Field(description="What asked for them.")
    ] = None
    since: Annotated[Instant | None, Field(description="Due at or after this instant.")] = None
    until: Annotated[Instant | None, Field(description="Due before this instant.")] = None


class RunsCancel(Document):
    """Which unfinished runs are to be cancelled, and why."""

    filter: Annotated[RunFilter, Field(description="Which ones.")]
    reason: Reason = None
    dry_run: Annotated[bool, Field(description="Only count them, and name the first.")] = False
    after: Annotated[
        str | None,
        Field(max_length=2000, description="`next_after` of the call before: go on there."),
    ] = None
    limit: Annotated[
        int, Field(ge=1, le=MOST_CANCELLED, description="Runs that this call cancels, at most.")
    ] = MOST_CANCELLED


class RunsCancelled(Answer):
    """What an order did, or, with `dry_run`, what it would be about."""

    dry_run: bool
    matched: Annotated[int, Field(description="Runs that this call found.")]
    first: Annotated[list[UUID], Field(description="Of a dry run: ids of the first.")]
    runs: Annotated[
        dict[str, int],
        Field(description="Runs that were changed, by their state now: `cancelled` or `cancelling`."),
    ]
    stopping: Annotated[list[UUID], Field(description="Ids of those whose workers were asked to stop.")]
    next_after: Annotated[
        str | None,
        Field(description="Send it as `after`, with the same filter, to go on; null: that was all."),
    ]


class RunReport(Document):
    """How the work of a run ended that its target had answered 202 to."""

    token: Annotated[str, Field(description="`Noonmark-Callback-Token` of the request. It works once.")]
    outcome: Annotated[
        Literal["succeeded", "failed"],
        Field(description="How the work ended. A failure is retried as the job says."),
    ]
    result: Annotated[Any, Field(description="Of a success: any JSON, at most 64 KB.")] = None
    error: Annotated[str | None, Field(description="Of a failure: what went wrong.")] = None
    retryable: Annotated[
        bool, Field(description="Of a failure: false where another attempt cannot help.")
    ] = True


class RunChange(Answer):
    """What became of a run by a request."""

    id: UUID
    state: RunState
    reason: Annotated[str | None, Field(description="As runs show it.")] = None
