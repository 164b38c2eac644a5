"""Runs as the API shows them."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Any, Literal
from uuid import UUID

from pydantic import Field

from noonmark.core.words import RunState
from noonmark.schemas.api.common import Answer
from noonmark.schemas.order_documents import Reason
from noonmark.schemas.problems import Document

PriorityName = Literal["high", "normal", "low"]
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
