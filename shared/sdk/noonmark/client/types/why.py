"""Why has it not run? The answer of `/v1/jobs/{id}/why` and `/v1/runs/{id}/why`.

Made from `noonmark.schemas.api.why`, not by hand: see `noonmark.schemas.client_types`.
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
        "cancelling",
        "callback",
        "skipped_overlap",
        "misfired",
        "coalesced",
        "look_back",
        "skipped_paused",
        "skipped_cancelled",
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
    """What the answer is about."""

    blocks: bool
    """It does not run before this has changed; else it says where it stands, or more."""

    sentence: str
    """What blocks, by whom or what, since or until when."""

    remedy: str
    """What to do."""

    facts: dict[str, Any]
    """Ids, instants and figures behind the sentence; docs/why.md names them."""


class Why(TypedDict):
    """Why a job or a run has not run, or what became of it."""

    kind: Literal["job", "run"]
    """What was asked about."""

    id: str

    job_id: str

    job_name: str | None

    namespace: str

    state: str
    """Of the job, or of the run."""

    asked_at: str
    """By the database's clock."""

    answers: list[WhyAnswer]
    """What really blocks first; there is always one."""
