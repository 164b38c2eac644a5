"""What every killed process held when it died, and the table of all of them."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass, field

from tests.support.cluster import Cluster, Node
from tests.support.publish import Load

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
        """Look at what a dead process held; beside others of its service only at what was surely its own."""
        alone = not any(n.service == victim.service and n.expected_alive for n in cluster.nodes)
        owned = list(range(4)) if alone else victim.last_logged("owned", [])
        if victim.service == "intake":
            return cls(uncommitted=cluster.lag(".submissions") if alone else 0)
        if victim.service in {"trigger", "dispatcher"}:
            due = "select count(*) from timers where fire_at <= noonmark_now() and shard = any(%s)"
            return cls(
                unsent=cluster.value("select count(*) from outbox where slice = any(%s)", owned),
                due=cluster.value(due, owned) if victim.service == "trigger" else 0,
            )
        running = cluster.value(
            "select count(*) from runs join workers on workers.id = runs.owner"
            " where workers.pid = %s and runs.state in ('running', 'cancelling')",
            victim.pid,
        )
        return cls(running=running, uncommitted=cluster.lag(".runs.") if alone else 0)

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
    duplicates: int | None = None
    lost: int | None = None
    second_verdicts: int | None = None

    @property
    def counted(self) -> int:
        """Kills that hit something."""
        return sum(held.counts for held in self.held)


@dataclass(slots=True)
class Tally:
    """All cases of a session."""

    rows: list[Row] = field(default_factory=list)
    figures: list[str] = field(default_factory=list)
    """What scenarios measured or saw, a sentence each."""

    def lines(self) -> Iterator[str]:
        """The table, with a line of sums."""
        cells = [
            (
                row.service,
                row.point,
                _shown(len(row.held) or None),
                _shown(row.counted if row.held else None),
                ", ".join(map(str, row.held[:3])) + (" …" if len(row.held) > 3 else ""),
                _shown(row.duplicates),
                _shown(row.lost),
                _shown(row.second_verdicts),
            )
            for row in self.rows
        ]
        cells.append(
            (
                "sum",
                "",
                str(sum(len(row.held) for row in self.rows)),
                str(sum(row.counted for row in self.rows)),
                "",
                str(sum(row.duplicates or 0 for row in self.rows)),
                str(sum(row.lost or 0 for row in self.rows)),
                str(sum(row.second_verdicts or 0 for row in self.rows)),
            )
        )
        widths = [max(len(line[n]) for line in (HEADINGS, *cells)) for n in range(len(HEADINGS))]
        for line in (HEADINGS, *cells):
            yield "  ".join(
                text.rjust(width) if n in {2, 3, 5, 6, 7} else text.ljust(width)
                for n, (text, width) in enumerate(zip(line, widths, strict=True))
            ).rstrip()


def _shown(count: int | None) -> str:
    return "" if count is None else str(count)


def judge(cluster: Cluster, load: Load, row: Row, *, within: float = 40.0) -> None:
    """Wait until a load is through, run the checker and note its verdict."""
    cluster.settle(load, within)
    report = cluster.check(load)
    row.duplicates = len(report["duplicates"])
    row.lost, row.second_verdicts = report["lost"], report["second_verdicts"]
    assert report["clean"], json.dumps(report, indent=1)
    one_time = sum(job.instants is None or len(job.instants) == 1 for job in load.jobs)
    assert report["runs"] >= one_time
