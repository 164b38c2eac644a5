"""Backfills in API requests and responses.

Generated from `noonmark.schemas.api.backfills` by `noonmark.schemas.client_types`; do not edit it by hand.
"""

from __future__ import annotations

from typing import Literal, TypedDict

from noonmark.client.types.jobs import Fire


class Backfill(TypedDict):
    """A request to run past instants of a job."""

    id: str

    job_id: str

    job_name: str | None

    namespace: str

    job_version: int

    mode: Literal["missing", "missing_and_failed", "all"]

    from_at: str

    until_at: str
    """End of the range, exclusive."""

    state: Literal["running", "done", "cancelled", "failed"]

    state_reason: str | None
    """What a running backfill waits for."""

    total: int
    """Instants in the range when the backfill started."""

    instants: int
    """Instants processed so far."""

    queued: int
    """Processed instants that got a run."""

    percent: float

    requested_by: str | None

    created_at: str

    updated_at: str

    finished_at: str | None

    runs: dict[str, int] | None
    """Runs of the backfill by state; null in listings."""


class BackfillPlan(TypedDict):
    """The plan of a backfill."""

    id: str | None
    """Id of the backfill; null: none was started."""

    job_id: str

    job_version: int

    mode: Literal["missing", "missing_and_failed", "all"]

    from_at: str

    until_at: str

    total: int
    """Instants in the range."""

    to_run: int
    """Instants that get a run."""

    instants: list[str]
    """The first 100 instants that get a run."""

    note: str | None

    fires: list[Fire]
    """The same instants with their local time."""


class BackfillCancelled(TypedDict):
    """Result of cancelling a backfill."""

    backfill: Backfill

    ended: int
    """Runs that were cancelled."""

    stopping: int
    """Runs that were asked to stop."""
