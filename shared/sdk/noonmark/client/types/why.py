"""Why a job or run has not run: responses of `/v1/jobs/{id}/why` and `/v1/runs/{id}/why`.

Generated from `noonmark.schemas.api.why` by `noonmark.schemas.client_types`; do not edit it by hand.
"""

from __future__ import annotations

from typing import Any, Literal, TypedDict


class WhyAnswer(TypedDict):
    """One answer. docs/why.md explains every code."""

    code: Literal[
        "job_cancelled",
        "job_broken",
        "job_paused_itself",
        "job_paused",
        "namespace_paused",
        "held",
        "timer_missing",
        "timer_wrong",
        "run_stranded",
        "start_deadline",
        "undeliverable",
        "overlap",
        "limit",
        "rate_limit",
        "namespace_cap",
        "trigger_stopped",
        "dispatcher_stopped",
        "dispatcher_behind",
        "claims_held_back",
        "zone_data",
        "trigger_behind",
        "no_such_pool",
        "no_worker",
        "no_worker_for_kind",
        "no_worker_for_handler",
        "message_lost",
        "kafka_away",
        "lane_backlog",
        "workers_busy",
        "retrying",
        "worker_lost",
        "cancelling",
        "callback",
        "waits_for_tasks",
        "skipped_overlap",
        "misfired",
        "coalesced",
        "look_back",
        "skipped_paused",
        "skipped_cancelled",
        "upstream_failed",
        "upstream_skipped",
        "not_needed",
        "condition",
        "dead",
        "unknown",
        "no_next_instant",
        "schedule_ended",
        "max_runs",
        "on_its_way",
        "running",
        "jitter",
        "calendar",
        "clock_change",
        "not_due",
        "cancelled",
        "discarded",
        "succeeded",
        "nothing_left",
    ]
    """Code of the answer."""

    blocks: bool
    """True if this prevents the run from starting; otherwise it is additional information."""

    sentence: str
    """What blocks, by whom or what, and since or until when."""

    remedy: str
    """What to do."""

    facts: dict[str, Any]
    """Ids, instants and numbers for the sentence; docs/why.md lists them."""


class Why(TypedDict):
    """Why a job or a run has not run, or its outcome."""

    kind: Literal["job", "run"]
    """Whether the request was about a job or a run."""

    id: str

    job_id: str

    job_name: str | None

    namespace: str

    state: str
    """State of the job or run; `undecided`: of a task that has no run yet."""

    workflow_id: str | None
    """If it is about a task: id of the workflow run."""

    task: str | None
    """If it is about a task: its key."""

    asked_at: str
    """Time on the database's clock."""

    answers: list[WhyAnswer]
    """Actual blockers first; there is always at least one answer."""
