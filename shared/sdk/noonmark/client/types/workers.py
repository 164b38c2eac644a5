"""Workers and pools in API responses.

Generated from `noonmark.schemas.api.workers` by `noonmark.schemas.client_types`; do not edit it by hand.
"""

from __future__ import annotations

from typing import Any, Literal, TypedDict


class Worker(TypedDict):
    """A process that executes runs."""

    id: int

    pool: str

    host: str

    pid: int

    state: Literal["alive", "left", "lapsed"]
    """lapsed: its lease expired without a heartbeat."""

    started_at: str

    beat_at: str
    """Time of its last heartbeat."""

    silent_seconds: float
    """Seconds since the last heartbeat."""

    lease_seconds: float
    """Without a heartbeat for longer, the worker loses its runs."""

    epoch: int

    started_runs: int
    """Most runs that the worker may be executing."""

    catalogue: dict[str, Any]
    """Kinds and handlers that the worker can run."""


class Workers(TypedDict):
    """Workers, newest first."""

    items: list[Worker]


class Pool(TypedDict):
    """A group of workers."""

    name: str

    created_at: str

    workers: int
    """Number of live workers."""


class Pools(TypedDict):
    """Pools, sorted by name."""

    items: list[Pool]
