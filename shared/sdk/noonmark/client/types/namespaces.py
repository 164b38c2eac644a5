"""Namespaces in API requests and responses.

Generated from `noonmark.schemas.api.namespaces` by `noonmark.schemas.client_types`; do not edit it by hand.
"""

from __future__ import annotations

from typing import Literal, TypedDict


class Namespace(TypedDict):
    """A namespace with its defaults and quotas."""

    name: str

    timezone: str
    """Time zone of schedules that name none."""

    max_in_flight: int | None
    """Most runs of each lane in flight; null: unlimited."""

    max_jobs: int | None
    """Most recurring jobs that are not cancelled; null: unlimited."""

    state: Literal["active", "paused"]
    """paused: none of its runs start."""

    paused_at: str | None

    pause_reason: str | None

    updated_at: str | None
    """null: the namespace has the defaults."""


class NamespaceDetail(Namespace):
    """A namespace with the number of its jobs."""

    recurring_jobs: dict[str, int]
    """Number of recurring jobs by state; paused ones as `paused_by_job` and `paused_by_namespace`."""


class Namespaces(TypedDict):
    """Namespaces, sorted by name."""

    items: list[Namespace]


class NamespaceChange(TypedDict):
    """Result of one call to pause or resume a namespace."""

    name: str

    state: Literal["active", "paused"]

    changed: bool
    """True if the state of the namespace changed."""

    jobs: int
    """Jobs that this call paused or resumed."""

    runs: int
    """Runs that this call deferred, or enqueued again."""

    jobs_with_held_instants: int
    """Resumed jobs with instants that came due during the pause."""

    complete: bool
    """False: jobs are left; repeat the call to continue."""
