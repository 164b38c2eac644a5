"""What a race found: one entry for each entrant, as Markdown and as JSON."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from benchmarks.figures import Burst, OpenLoop, OtherBurst, OtherWindow
from benchmarks.plan import LATENESS_RATES

_ABSENT: Final = "-"


@dataclass(slots=True)
class Entry:
    """One entrant.

    Attributes:
        history: what is left of a run.
        settings: that matter for speed, one line.
        absent: why it took no part; None if it did.
        failed: what went wrong, by part.
    """

    name: str
    history: str
    settings: str = ""
    version: str = ""
    burst: OtherBurst | Burst | None = None
    open_loops: list[OtherWindow] | list[OpenLoop] = field(default_factory=list)
    absent: str | None = None
    failed: dict[str, str] = field(default_factory=dict)

    @property
    def is_whole(self) -> bool:
        """Whether everything was measured, and every job was run."""
        return (
            not self.failed
            and (self.burst is None or self.burst.lost == 0)
            and all(one.not_started == 0 for one in self.open_loops)
        )

    def row(self) -> list[str]:
        """Return its cells in the table."""
        burst = self.burst
        name = f"{self.name} {self.version}".strip()
        figures = [_ABSENT] * 4
        if burst is not None:
            figures = [
                f"{burst.runs_per_s:,.0f}",
                f"{burst.cpu_us_per_run:,.0f}",
                f"{burst.wal_bytes_per_run:,.0f}",
                f"{burst.other_cpu_percent:,.0f}",
            ]
        return [
            name,
            *figures[:3],
            *(self._lateness(rate) for rate in LATENESS_RATES),
            self.history,
            figures[3],
        ]

    def _lateness(self, rate: float) -> str:
        spreads = [one.handler_lateness_ms for one in self.open_loops if one.rate == rate]
        if not spreads or spreads[0] is None:
            return _ABSENT
        return f"{spreads[0].p50:,.0f} / {spreads[0].p99:,.0f}"


@dataclass(slots=True)
class Race:
    """Everything that one race found."""

    size: int
    started_at: str
    seconds: float = 0.0
    machine: dict[str, Any] = field(default_factory=dict)
    yardsticks: dict[str, float] = field(default_factory=dict)
    yardsticks_after: dict[str, float] = field(default_factory=dict)
    entries: list[Entry] = field(default_factory=list)

    def as_json(self) -> dict[str, Any]:
        """Return what the JSON file holds."""
        return dataclasses.asdict(self)

    def as_markdown(self) -> str:
        """Return the table, and below it what is needed to read it."""
        ran = [entry for entry in self.entries if entry.absent is None]
        late = [f"p50 / p99 lateness at {rate:,}/s, ms" for rate in LATENESS_RATES]
        columns = [
            "",
            "burst, runs/s",
            "CPU µs/run",
            "WAL B/run",
            *late,
            "history",
            "CPU of others, % of a core",
        ]
        lines = [_line(columns), _line(["---"] * len(columns)), *(_line(entry.row()) for entry in ran), ""]
        lines += [self._context(), ""]
        lines += [f"- {entry.name}: {entry.settings}" for entry in ran if entry.settings]
        lines += [f"- {entry.name}: {entry.absent}" for entry in self.entries if entry.absent is not None]
        lines += [
            f"- {entry.name}: {part} failed: {' '.join(reason.split())}"
            for entry in ran
            for part, reason in entry.failed.items()
        ]
        lines += [f"- {entry.name}: {said}" for entry in ran for said in _losses(entry)]
        return "\n".join(lines).rstrip() + "\n"

    def _context(self) -> str:
        facts = self.machine
        machine = ""
        if facts:
            machine = (
                f" {facts['cpu']}, {facts['cores']} cores, {facts['memory_gb']} GB, {facts['file_system']};"
                f" Postgres {facts['postgres']}, Kafka {facts['kafka']}."
            )
        yardsticks = ", ".join(
            f"{name} {value:,.10g} and {self.yardsticks_after.get(name, float('nan')):,.10g}"
            for name, value in self.yardsticks.items()
        )
        return (
            f"{self.size:,} jobs in the burst; started at {self.started_at}, took {self.seconds:.0f} s."
            f"{machine} Yardsticks before and after: {yardsticks or 'not measured'}."
        )


def _losses(entry: Entry) -> list[str]:
    said = []
    if entry.burst is not None and entry.burst.lost:
        said.append(f"{entry.burst.lost:,} jobs of the burst have no outcome")
    said += [
        f"{one.not_started:,} jobs at {one.rate:,.0f}/s were not started"
        for one in entry.open_loops
        if one.not_started
    ]
    return said


def _line(cells: Sequence[str]) -> str:
    return f"| {' | '.join(cells)} |"
