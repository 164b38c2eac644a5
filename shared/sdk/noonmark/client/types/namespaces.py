"""Namespaces as the API takes and shows them.

Made from `noonmark.schemas.api.namespaces`, not by hand: see `noonmark.schemas.client_types`.
"""

from __future__ import annotations

from typing import Literal, TypedDict


class Namespace(TypedDict):
    """A namespace with its defaults and quotas."""

    name: str

    timezone: str
    """Of schedules that name none."""

    max_in_flight: int | None
    """Most runs of each priority under way at a time; null: any number."""

    max_jobs: int | None
    """Most recurring jobs that are not cancelled; null: any number."""

    state: Literal["active", "paused"]
    """Paused: nothing of it starts."""

    paused_at: str | None

    pause_reason: str | None

    updated_at: str | None
    """Null where it has the defaults."""


class NamespaceDetail(Namespace):
    """The same with counts."""

    recurring_jobs: dict[str, int]
    """By state; paused ones as `paused_by_job` and `paused_by_namespace`."""


class Namespaces(TypedDict):
    """Namespaces by name."""

    items: list[Namespace]


class NamespaceChange(TypedDict):
    """What a pause or resume did by this call."""

    name: str

    state: Literal["active", "paused"]

    changed: bool
    """It was not so before."""

    jobs: int
    """Jobs that are held, or go on, by this call."""

    runs: int
    """Runs that wait, or are queued again."""

    jobs_with_held_instants: int
    """Of a resume: jobs with instants that came due in the pause."""

    complete: bool
    """False: others are left; repeat the call to go on."""
