"""Runs in API requests and responses.

Generated from `noonmark.schemas.api.runs` by `noonmark.schemas.client_types`; do not edit it by hand.
"""

from __future__ import annotations

from typing import Any, Literal, TypedDict


class RunSummary(TypedDict):
    """One run in a listing."""

    id: str

    job_id: str

    job_name: str | None
    """null: the job has no name, or was deleted."""

    namespace: str

    type: str | None
    """Kind of the job or task; null: the job was deleted."""

    handler: str | None
    """Registered name of the Python handler, for Python jobs."""

    state: Literal[
        "waiting",
        "queued",
        "running",
        "retrying",
        "cancelling",
        "succeeded",
        "skipped",
        "cancelled",
        "unknown",
        "dead",
        "discarded",
    ]

    reason: str | None
    """Why the run waits, was skipped, is dead, or was cancelled (and by whom)."""

    waits_for: str | None
    """Limit that the run waits for, with its key."""

    priority: Literal["high", "normal", "low"]

    pool: str

    origin: str
    """What requested the run: schedule, manual, backfill, event or task."""

    workflow_id: str | None
    """Of the run of a task: id of the workflow run that it is part of."""

    task: str | None
    """Of the run of a task: key of the task."""

    generation: int | None
    """Of the run of a task: which time the workflow run had been opened when it created this run; from 1."""

    scheduled_for: str
    """The due instant."""

    queued_at: str | None

    first_started_at: str | None
    """Start of the first attempt."""

    started_at: str | None
    """Start of the latest attempt."""

    finished_at: str | None

    start_delay_seconds: float | None
    """Seconds from the due instant to the first start."""

    took_seconds: float | None
    """Duration of the latest attempt, once it has finished."""

    attempt: int
    """Attempts used of the retry budget."""

    fence: int
    """Fencing token; increases each time the run is enqueued."""

    instants: int
    """Due instants that this run covers; above 1 only for a gap."""

    error: str | None
    """Error of the latest failed attempt."""

    error_hidden: bool
    """True if the value is hidden (null): the credential lacks `payloads:read`."""


class Attempt(TypedDict):
    """One attempt of a run."""

    attempt: int
    """Number of the attempt; used again after a hand-back or redrive."""

    fence: int
    """Fencing token; unique for each attempt."""

    outcome: str | None
    """Outcome; null: the attempt is running."""

    worker: int | None

    started_at: str | None

    finished_at: str | None

    error: str | None

    error_hidden: bool
    """True if the value is hidden (null): the credential lacks `payloads:read`."""

    log_bytes: dict[str, int] | None
    """Bytes of stored output by stream; null: no output."""


class Progress(TypedDict):
    """The latest progress that an attempt reported."""

    share: float | None
    """Share of the work that is done, from 0 to 1."""

    message: str

    written_at: str


class Run(RunSummary):
    """One run with all recorded details."""

    job_version: int
    """Version of the job that the run was planned with. 1,000,000,000 and above: the run was triggered
    with its own payload.
    """

    request_id: str
    """Id of the trigger request or backfill; otherwise empty."""

    due_at: str | None
    """Of the run of a task: when the task became due."""

    held_at: str | None
    """Of an open workflow run: since when it has been held; null: it is not."""

    start_by: str | None
    """Latest instant at which the run can start."""

    last_scheduled_for: str | None
    """Last due instant of a gap."""

    zone_data: str | None
    """Release of the time zone data that the run was planned with."""

    waiting_since: str | None

    next_attempt_at: str | None
    """When the next retry is enqueued."""

    report_until: str | None
    """Until when the target can report completion."""

    died_at: str | None

    losses: int
    """Number of times that a worker was lost while it executed the run."""

    result: Any
    """Result of the run: any JSON."""

    result_hidden: bool
    """True if the value is hidden (null): the credential lacks `payloads:read`."""

    progress: Progress | None

    checkpoint: Any
    """Checkpoint for the next attempt: any JSON."""

    checkpoint_hidden: bool
    """True if the value is hidden (null): the credential lacks `payloads:read`."""

    attempts: list[Attempt]


class OutputEnds(TypedDict):
    """The number of bytes of each stream so far, including dropped ones."""

    stdout: int

    stderr: int

    log: int


class AttemptLog(TypedDict):
    """Output of one attempt: the last 64 KB of each stream."""

    attempt: int

    fence: int

    stdout: str

    stderr: str

    log: str
    """Log lines that the handler wrote through its context."""

    dropped: int
    """Earlier bytes that were dropped."""

    written_at: str

    ends: OutputEnds

    ended: bool
    """Whether the output is complete. If not, it is about a second old."""


class RunLogs(TypedDict):
    """Output of the attempts of a run."""

    run_id: str

    attempts: list[AttemptLog]


class RunsCancelled(TypedDict):
    """Result of the call; with `dry_run`, a preview."""

    dry_run: bool

    matched: int
    """Number of runs that this call found."""

    first: list[str]
    """Ids of the first matching runs, in a dry run."""

    runs: dict[str, int]
    """Changed runs by their new state: `cancelled` or `cancelling`."""

    stopping: list[str]
    """Ids of runs whose workers were asked to stop."""

    next_after: str | None
    """Send it as `after` with the same filter to continue; null: all were processed."""


class RunChange(TypedDict):
    """State of a run after a request."""

    id: str

    state: Literal[
        "waiting",
        "queued",
        "running",
        "retrying",
        "cancelling",
        "succeeded",
        "skipped",
        "cancelled",
        "unknown",
        "dead",
        "discarded",
    ]

    reason: str | None
    """Same as `reason` of runs: null for a success."""


class RunHold(TypedDict):
    """Whether a workflow run is held, after a request."""

    id: str

    state: Literal[
        "waiting",
        "queued",
        "running",
        "retrying",
        "cancelling",
        "succeeded",
        "skipped",
        "cancelled",
        "unknown",
        "dead",
        "discarded",
    ]

    held_at: str | None
    """Since when it has been held; null: it is not."""
