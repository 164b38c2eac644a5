"""Runs as the API shows them.

Made from `noonmark.schemas.api.runs`, not by hand: see `noonmark.schemas.client_types`.
"""

from __future__ import annotations

from typing import Any, Literal, TypedDict


class RunSummary(TypedDict):
    """One run, as listings show it."""

    id: str

    job_id: str

    job_name: str | None
    """Null where the job has none, or is gone."""

    namespace: str

    type: str | None
    """Kind of the job's work; null where the job is gone."""

    handler: str | None
    """Of Python jobs: what is called."""

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
    """Why it waits, was skipped, is dead, or was cancelled, and then by whom."""

    waits_for: str | None
    """The limit that it waits for, with its key."""

    priority: Literal["high", "normal", "low"]

    pool: str

    origin: str
    """What asked for it: schedule, manual, backfill or event."""

    scheduled_for: str
    """The due instant."""

    queued_at: str | None

    first_started_at: str | None
    """Start of the first attempt."""

    started_at: str | None
    """Start of the latest attempt."""

    finished_at: str | None

    start_delay_seconds: float | None
    """From the due instant to the first start."""

    took_seconds: float | None
    """The latest attempt, once it has ended."""

    attempt: int
    """Attempts of the retry budget used."""

    fence: int
    """Rises with every queueing."""

    instants: int
    """Due instants that this row stands for; 1 but for gaps."""

    error: str | None
    """Error of the latest attempt that failed."""

    error_hidden: bool
    """True where the credential may not see it (`payloads:read`); it is null then."""


class Attempt(TypedDict):
    """One attempt of a run."""

    attempt: int
    """Number; used again after a hand-back or redrive."""

    fence: int
    """Tells attempts apart."""

    outcome: str | None
    """How it ended; null: it is under way."""

    worker: int | None

    started_at: str | None

    finished_at: str | None

    error: str | None

    error_hidden: bool
    """True where the credential may not see it (`payloads:read`); it is null then."""

    log_bytes: dict[str, int] | None
    """Bytes of kept output by stream; null: it wrote nothing."""


class Progress(TypedDict):
    """How far a run is, as its attempt told last."""

    share: float | None
    """From 0 to 1."""

    message: str

    written_at: str


class Run(RunSummary):
    """One run with everything that is recorded about it."""

    job_version: int
    """Version of the job that it was planned with. From 1,000,000,000 on: of this run alone, which was
    triggered with a payload of its own.
    """

    request_id: str
    """Of the trigger or backfill that asked; else empty."""

    start_by: str | None
    """Not started later than this."""

    last_scheduled_for: str | None
    """Of a gap: its last due instant."""

    zone_data: str | None
    """Release of zone data that it was planned with."""

    waiting_since: str | None

    next_attempt_at: str | None
    """When a retry is queued."""

    report_until: str | None
    """Until when its target may report."""

    died_at: str | None

    losses: int
    """Workers that vanished while they ran it."""

    result: Any
    """What it returned: any JSON."""

    result_hidden: bool
    """True where the credential may not see it (`payloads:read`); it is null then."""

    progress: Progress | None

    checkpoint: Any
    """What its next attempt will find: any JSON."""

    checkpoint_hidden: bool
    """True where the credential may not see it (`payloads:read`); it is null then."""

    attempts: list[Attempt]


class AttemptLog(TypedDict):
    """What one attempt wrote: the last 64 KB of each stream."""

    attempt: int

    fence: int

    stdout: str

    stderr: str

    log: str
    """What it logged through its context."""

    dropped: int
    """Bytes before these that were not kept."""

    written_at: str


class RunLogs(TypedDict):
    """What the attempts of a run wrote."""

    run_id: str

    attempts: list[AttemptLog]


class RunsCancelled(TypedDict):
    """What an order did, or, with `dry_run`, what it would be about."""

    dry_run: bool

    matched: int
    """Runs that this call found."""

    first: list[str]
    """Of a dry run: ids of the first."""

    runs: dict[str, int]
    """Runs that were changed, by their state now: `cancelled` or `cancelling`."""

    stopping: list[str]
    """Ids of those whose workers were asked to stop."""

    next_after: str | None
    """Send it as `after`, with the same filter, to go on; null: that was all."""


class RunChange(TypedDict):
    """What became of a run by a request."""

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
    """As runs show it."""
