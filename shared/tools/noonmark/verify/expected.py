"""What a test requested, which a history is compared with."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime


@dataclass(slots=True)
class Expected:
    """What was requested, and its expected outcome. Jobs are identified by (namespace, name).

    Attributes:
        instants: of each job; None: one run, at a time that the database chose.
        ends: states that the runs of a job may end in.
        unseen: jobs whose target keeps no log.
        acknowledged: ids of events that the broker has acknowledged.
        rejected: those of them that must be refused.
        refusable: those that may be refused: requests that can come too late.
        bad: jobs that are intended to disturb others.
    """

    instants: dict[tuple[str, str], list[datetime] | None] = field(default_factory=dict)
    ends: dict[tuple[str, str], frozenset[str]] = field(default_factory=dict)
    unseen: set[tuple[str, str]] = field(default_factory=set)
    acknowledged: set[str] = field(default_factory=set)
    rejected: set[str] = field(default_factory=set)
    refusable: set[str] = field(default_factory=set)
    bad: set[tuple[str, str]] = field(default_factory=set)
