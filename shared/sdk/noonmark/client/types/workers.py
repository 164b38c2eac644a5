"""Workers and pools as the API shows them.

Made from `noonmark.schemas.api.workers`, not by hand: see `noonmark.schemas.client_types`.
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
    """Lapsed: it gave no sign of life any more."""

    started_at: str

    beat_at: str
    """Its last sign of life."""

    silent_seconds: float
    """Since then."""

    lease_seconds: float
    """Silent for longer, its runs are taken from it."""

    epoch: int

    started_runs: int
    """Runs that it has started and may hold, at the most."""

    catalogue: dict[str, Any]
    """Kinds and handlers that it can run."""


class Workers(TypedDict):
    """Workers, the newest first."""

    items: list[Worker]


class Pool(TypedDict):
    """A group of workers."""

    name: str

    created_at: str

    workers: int
    """Alive."""


class Pools(TypedDict):
    """Pools by name."""

    items: list[Pool]
