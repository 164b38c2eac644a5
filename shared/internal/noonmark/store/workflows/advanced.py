"""What a pass over workflows did, for metrics and hints."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from uuid import UUID


@dataclass(slots=True)
class Advanced:
    """What a pass did, for metrics.

    Attributes:
        facts: how many timers it took.
        queued: how many runs of tasks it queued.
        waiting: how many wait for capacity.
        skipped: how many tasks it skipped, by reason.
        ended: workflow runs that ended, by state and lane.
        freed: whether runs wait for a slot that was freed.
        broken: workflow runs that could not be advanced, with the reason.
    """

    facts: int = 0
    opened: int = 0
    queued: int = 0
    waiting: int = 0
    skipped: Counter[str] = field(default_factory=Counter)
    ended: Counter[tuple[str, int]] = field(default_factory=Counter)
    freed: bool = False
    broken: list[tuple[UUID, str]] = field(default_factory=list)

    def add(self, other: Advanced) -> None:
        """Count what another pass, or a part of this one, has done."""
        self.facts += other.facts
        self.opened += other.opened
        self.queued += other.queued
        self.waiting += other.waiting
        self.skipped += other.skipped
        self.ended += other.ended
        self.freed |= other.freed
        self.broken += other.broken
