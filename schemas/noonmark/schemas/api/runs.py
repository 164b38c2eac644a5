"""Runs in API requests and responses."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Annotated, Any, ClassVar, Literal
from uuid import UUID

from pydantic import Field

from noonmark.core.states import RunState
from noonmark.schemas.api.common import Answer, Instant
from noonmark.schemas.jobs.policies import NAMESPACE_PATTERN, NAMESPACE_RULE
from noonmark.schemas.jobs.requests import Reason
from noonmark.schemas.problems import other_names
from noonmark.schemas.problems.pydantic_errors import Document, Expected

MOST_CANCELLED: int = 1_000
"""Most runs that one call by filter cancels."""

PriorityName = Literal["high", "normal", "low"]
_Text = Annotated[str, Field(min_length=1, max_length=200, pattern=r"^[^\x00]+$")]
_HIDDEN = "True if the value is hidden (null): the credential lacks `payloads:read`."


class RunSummary(Answer):
    """One run in a listing."""

    id: UUID
    job_id: UUID
    job_name: Annotated[str | None, Field(description="null: the job has no name, or was deleted.")]
    namespace: str
    type: Annotated[str | None, Field(description="Kind of the job or task; null: the job was deleted.")]
    handler: Annotated[
        str | None, Field(description="Registered name of the Python handler, for Python jobs.")
    ]
    state: RunState
    reason: Annotated[
        str | None,
        Field(description="Why the run waits, was skipped, is dead, or was cancelled (and by whom)."),
    ]
    waits_for: Annotated[str | None, Field(description="Limit that the run waits for, with its key.")]
    priority: PriorityName
    pool: str
    origin: Annotated[
        str, Field(description="What requested the run: schedule, manual, backfill, event or task.")
    ]
    workflow_id: Annotated[
        UUID | None, Field(description="Of the run of a task: id of the workflow run that it is part of.")
    ] = None
    task: Annotated[str | None, Field(description="Of the run of a task: key of the task.")] = None
    generation: Annotated[
        int | None,
        Field(
            description="Of the run of a task: which time the workflow run had been opened when it created "
            "this run; from 1."
        ),
    ] = None
    scheduled_for: Annotated[datetime, Field(description="The due instant.")]
    queued_at: datetime | None
    first_started_at: Annotated[datetime | None, Field(description="Start of the first attempt.")]
    started_at: Annotated[datetime | None, Field(description="Start of the latest attempt.")]
    finished_at: datetime | None
    start_delay_seconds: Annotated[
        float | None, Field(description="Seconds from the due instant to the first start.")
    ]
    took_seconds: Annotated[
        float | None, Field(description="Duration of the latest attempt, once it has finished.")
    ]
    attempt: Annotated[int, Field(description="Attempts used of the retry budget.")]
    fence: Annotated[int, Field(description="Fencing token; increases each time the run is enqueued.")]
    instants: Annotated[int, Field(description="Due instants that this run covers; above 1 only for a gap.")]
    error: Annotated[str | None, Field(description="Error of the latest failed attempt.")]
    error_hidden: Annotated[bool, Field(description=_HIDDEN)] = False


class Attempt(Answer):
    """One attempt of a run."""

    attempt: Annotated[
        int, Field(description="Number of the attempt; used again after a hand-back or redrive.")
    ]
    fence: Annotated[int, Field(description="Fencing token; unique for each attempt.")]
    outcome: Annotated[str | None, Field(description="Outcome; null: the attempt is running.")]
    worker: int | None
    started_at: datetime | None
    finished_at: datetime | None
    error: str | None
    error_hidden: Annotated[bool, Field(description=_HIDDEN)] = False
    log_bytes: Annotated[
        dict[str, int] | None, Field(description="Bytes of stored output by stream; null: no output.")
    ] = None


class Progress(Answer):
    """The latest progress that an attempt reported."""

    share: Annotated[float | None, Field(description="Share of the work that is done, from 0 to 1.")]
    message: str
    written_at: datetime


class Run(RunSummary):
    """One run with all recorded details."""

    job_version: Annotated[
        int,
        Field(
            description="Version of the job that the run was planned with. 1,000,000,000 and above: the "
            "run was triggered with its own payload."
        ),
    ]
    request_id: Annotated[str, Field(description="Id of the trigger request or backfill; otherwise empty.")]
    due_at: Annotated[
        datetime | None, Field(description="Of the run of a task: when the task became due.")
    ] = None
    held_at: Annotated[
        datetime | None,
        Field(description="Of an open workflow run: since when it has been held; null: it is not."),
    ] = None
    start_by: Annotated[datetime | None, Field(description="Latest instant at which the run can start.")]
    last_scheduled_for: Annotated[datetime | None, Field(description="Last due instant of a gap.")]
    zone_data: Annotated[
        str | None, Field(description="Release of the time zone data that the run was planned with.")
    ]
    waiting_since: datetime | None
    next_attempt_at: Annotated[datetime | None, Field(description="When the next retry is enqueued.")]
    report_until: Annotated[
        datetime | None, Field(description="Until when the target can report completion.")
    ]
    died_at: datetime | None
    losses: Annotated[
        int, Field(description="Number of times that a worker was lost while it executed the run.")
    ]
    result: Annotated[Any, Field(description="Result of the run: any JSON.")]
    result_hidden: Annotated[bool, Field(description=_HIDDEN)] = False
    progress: Progress | None
    checkpoint: Annotated[Any, Field(description="Checkpoint for the next attempt: any JSON.")]
    checkpoint_hidden: Annotated[bool, Field(description=_HIDDEN)] = False
    attempts: list[Attempt]


class OutputEnds(Answer):
    """The number of bytes of each stream so far, including dropped ones."""

    stdout: int
    stderr: int
    log: int


class AttemptLog(Answer):
    """Output of one attempt: the last 64 KB of each stream."""

    attempt: int
    fence: int
    stdout: str
    stderr: str
    log: Annotated[str, Field(description="Log lines that the handler wrote through its context.")]
    dropped: Annotated[int, Field(description="Earlier bytes that were dropped.")]
    written_at: datetime
    ends: OutputEnds
    ended: Annotated[
        bool,
        Field(description="Whether the output is complete. If not, it is about a second old."),
    ]


class RunLogs(Answer):
    """Output of the attempts of a run."""

    run_id: UUID
    attempts: list[AttemptLog]


class RunCancel(Document):
    """Why a run is cancelled."""

    reason: Reason = None


class RunFilter(Document):
    """Selects runs of a namespace that match all given fields. Without fields: all of them."""

    synonyms: ClassVar[Mapping[str, str]] = other_names.FILTER

    namespace: Annotated[
        str | None,
        Field(
            pattern=NAMESPACE_PATTERN,
            description="Default: the credential's only namespace, otherwise `default`.",
        ),
        Expected(NAMESPACE_RULE),
    ] = None
    job_id: Annotated[UUID | None, Field(strict=False)] = None
    job_name: Annotated[
        _Text | None,
        Field(description="Runs of the recurring job with this name; if none exists, of one-time jobs."),
    ] = None
    labels: Annotated[
        dict[_Text, _Text] | None,
        Field(min_length=1, max_length=20, description="Runs of jobs with all of these labels."),
    ] = None
    state: Annotated[
        list[Literal["waiting", "queued", "retrying", "running"]] | None,
        Field(min_length=1, max_length=4, description="Runs in any of these states. Default: all four."),
    ] = None
    priority: Annotated[
        list[PriorityName] | None,
        Field(min_length=1, max_length=3, description="Runs in any of these lanes."),
    ] = None
    pool: Annotated[_Text | None, Field(description="Pool of the runs.")] = None
    origin: Annotated[
        Literal["schedule", "manual", "backfill", "event"] | None,
        Field(description="What requested the runs."),
    ] = None
    since: Annotated[Instant | None, Field(description="Runs due at or after this instant.")] = None
    until: Annotated[Instant | None, Field(description="Runs due before this instant.")] = None


class RunsCancel(Document):
    """Which unfinished runs to cancel, and why."""

    filter: Annotated[RunFilter, Field(description="Selects the runs.")]
    reason: Reason = None
    dry_run: Annotated[bool, Field(description="Only count the runs, and list the first.")] = False
    after: Annotated[
        str | None,
        Field(max_length=2000, description="`next_after` of the previous call, to continue there."),
    ] = None
    limit: Annotated[int, Field(ge=1, le=MOST_CANCELLED, description="Most runs that this call cancels.")] = (
        MOST_CANCELLED
    )


class RunsCancelled(Answer):
    """Result of the call; with `dry_run`, a preview."""

    dry_run: bool
    matched: Annotated[int, Field(description="Number of runs that this call found.")]
    first: Annotated[list[UUID], Field(description="Ids of the first matching runs, in a dry run.")]
    runs: Annotated[
        dict[str, int],
        Field(description="Changed runs by their new state: `cancelled` or `cancelling`."),
    ]
    stopping: Annotated[list[UUID], Field(description="Ids of runs whose workers were asked to stop.")]
    next_after: Annotated[
        str | None,
        Field(description="Send it as `after` with the same filter to continue; null: all were processed."),
    ]


class RunReport(Document):
    """Outcome of a run whose target responded 202 and works asynchronously."""

    token: Annotated[
        str, Field(description="`Noonmark-Callback-Token` header of the request. It is valid once.")
    ]
    outcome: Annotated[
        Literal["succeeded", "failed"],
        Field(description="Outcome of the work. A failure is retried by the job's retry policy."),
    ]
    result: Annotated[Any, Field(description="Result of a success: any JSON, at most 64 KB.")] = None
    error: Annotated[str | None, Field(description="Error message of a failure.")] = None
    retryable: Annotated[bool, Field(description="For a failure: false if another attempt cannot help.")] = (
        True
    )


class RunChange(Answer):
    """State of a run after a request."""

    id: UUID
    state: RunState
    reason: Annotated[str | None, Field(description="Same as `reason` of runs: null for a success.")] = None


class RunHold(Answer):
    """Whether a workflow run is held, after a request."""

    id: UUID
    state: RunState
    held_at: Annotated[datetime | None, Field(description="Since when it has been held; null: it is not.")]
