"""What every killed process held when it died, and the table of all of them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from tests.support.cluster import Cluster, Node

HEADINGS = (
    "service",
    "fault point",
    "kills",
    "counted",
    "held at death",
    "duplicates",
    "lost",
    "second verdicts",
)


@dataclass(frozen=True, slots=True)
class Held:
    """What a victim left behind, read from database and Kafka right after its death.

    A kill counts only if there was something to lose: runs in its hands, rows of the outbox that nobody
    had acknowledged, records that it had not committed. A trigger's records are timers: those that are
    due and not in the ledger yet.
    """

    running: int = 0
    unsent: int = 0
    uncommitted: int = 0
    due: int = 0

    @classmethod
    def by(cls, cluster: Cluster, victim: Node) -> Held:
        """Look at what a dead process held. It was the only one of its service."""
        if victim.service == "intake":
            return cls(uncommitted=cluster.lag(".submissions"))
        if victim.service == "trigger":
            return cls(
                unsent=cluster.value("select count(*) from outbox"),
                due=cluster.value("select count(*) from timers where fire_at <= noonmark_now()"),
            )
        if victim.service == "dispatcher":
            return cls(unsent=cluster.value("select count(*) from outbox"))
        running = cluster.value(
            "select count(*) from runs join workers on workers.id = runs.owner"
            " where workers.pid = %s and runs.state in ('running', 'cancelling')",
            victim.pid,
        )
        return cls(running=running, uncommitted=cluster.lag(".runs."))

    @property
    def counts(self) -> bool:
        """Whether the kill hit anything."""
        return any((self.running, self.unsent, self.uncommitted, self.due))

    def __str__(self) -> str:
        parts = {
            "running": self.running,
            "unsent": self.unsent,
            "uncommitted": self.uncommitted,
            "due": self.due,
        }
        return "+".join(f"{count} {name}" for name, count in parts.items() if count) or "nothing"


@dataclass(slots=True)
class Row:
    """One case."""

    service: str
    point: str
    held: list[Held] = field(default_factory=list)
    duplicates: int = 0
    lost: int = 0
    second_verdicts: int = 0

    @property
    def counted(self) -> int:
        """Kills that hit something."""
        return sum(held.counts for held in self.held)


@dataclass(slots=True)
class Tally:
    """All cases of a session."""

    rows: list[Row] = field(default_factory=list)

    def lines(self) -> Iterator[str]:
        """The table, with a line of sums."""
        cells = [
            (
                row.service,
                row.point,
                str(len(row.held)),
                str(row.counted),
                ", ".join(map(str, row.held[:3])) + (" …" if len(row.held) > 3 else ""),
                str(row.duplicates),
                str(row.lost),
                str(row.second_verdicts),
            )
            for row in self.rows
        ]
        cells.append(
            (
                "all",
                "",
                str(sum(len(row.held) for row in self.rows)),
                str(sum(row.counted for row in self.rows)),
                "",
                str(sum(row.duplicates for row in self.rows)),
                str(sum(row.lost for row in self.rows)),
                str(sum(row.second_verdicts for row in self.rows)),
            )
        )
        widths = [max(len(line[n]) for line in (HEADINGS, *cells)) for n in range(len(HEADINGS))]
        for line in (HEADINGS, *cells):
            yield "  ".join(
                text.rjust(width) if n in {2, 3, 5, 6, 7} else text.ljust(width)
                for n, (text, width) in enumerate(zip(line, widths, strict=True))
            ).rstrip()
