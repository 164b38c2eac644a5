"""Backfills as the API answers them, and how they are asked for.

Made from `noonmark.schemas.api.backfills`, not by hand: see `noonmark.schemas.client_types`.
"""

from __future__ import annotations

from typing import Literal, TypedDict

from noonmark.client.types.jobs import Fire


class Backfill(TypedDict):
    """Past instants of a job that somebody asked to run after all."""

    id: str

    job_id: str

    job_name: str | None

    namespace: str

    job_version: int

    mode: Literal["missing", "missing_and_failed", "all"]

    from_at: str

    until_at: str
    """Not part of the range."""

    state: Literal["running", "done", "cancelled", "failed"]

    state_reason: str | None
    """Of a running one: what it waits for."""

    total: int
    """Instants of the range, when it was started."""

    instants: int
    """Those of them that were looked at."""

    queued: int
    """Those of these that got a run."""

    percent: float

    requested_by: str | None

    created_at: str

    updated_at: str

    finished_at: str | None

    runs: dict[str, int] | None
    """Its runs by state; null in listings."""


class BackfillPlan(TypedDict):
    """What a backfill would do, or was started to do."""

    id: str | None
    """Of the backfill; null: nothing was started."""

    job_id: str

    job_version: int

    mode: Literal["missing", "missing_and_failed", "all"]

    from_at: str

    until_at: str

    total: int
    """Instants in the range."""

    to_run: int
    """Those of them that would run."""

    instants: list[str]
    """The first of these, at most 100."""

    note: str | None

    fires: list[Fire]
    """The same instants with their local time."""


class BackfillCancelled(TypedDict):
    """What a cancel did."""

    backfill: Backfill

    ended: int
    """Runs that it ended."""

    stopping: int
    """Runs that it asked to stop."""
