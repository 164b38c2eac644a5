"""What is reported of workflows: small frozen records."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass, field
from typing import Any

from benchmarks.figures import Idle, Spread


@dataclass(frozen=True, slots=True)
class Plain:
    """A burst of one-time runs, for comparison."""

    runs_per_s: float
    cpu_us_per_run: float
    cpu_us_by_process: dict[str, float]
    cpu_us_by_backend: dict[str, float]
    wal_bytes_per_run: float
    other_cpu_percent: float


@dataclass(frozen=True, slots=True)
class Wide:
    """Workflows that were all due at one instant, from it to the last verdict of a workflow run.

    Attributes:
        succeeded: task runs and workflow runs that succeeded.
        passes: transactions of the trigger that advanced workflows; `facts_per_pass`, `pass_ms` of each.
        plain: a burst of as many one-time runs in the same stack, before it.
    """

    workflows: int
    tasks: int
    task_runs: int
    succeeded: int
    seconds: float
    task_runs_per_s: float
    cpu_us_per_task_run: float
    cpu_us_by_process: dict[str, float]
    cpu_us_by_backend: dict[str, float]
    wal_bytes_per_task_run: float
    other_cpu_percent: float
    checkpoint: bool
    passes: int
    facts_per_pass: float
    pass_ms: float
    plain: Plain | None

    @property
    def share_of_plain(self) -> float | None:
        """Task runs per second over plain runs per second."""
        return None if self.plain is None else round(self.task_runs_per_s / self.plain.runs_per_s, 3)


@dataclass(frozen=True, slots=True)
class Hop:
    """Chains that were due at a steady rate: from the end of a task to the start of the next.

    Attributes:
        queued_ms: to the statement that wrote its run.
        started_ms: to the statement that started it.
        handler_ms: to the first line of its handler.
        without: hops whose handler could not be told from others.
    """

    rate: float
    seconds: float
    tasks: int
    hops: int
    queued_ms: Spread | None
    started_ms: Spread | None
    handler_ms: Spread | None
    without: int
    cpu_us_per_task_run: float
    cpu_us_by_process: dict[str, float]
    other_cpu_percent: float
    facts_per_pass: float
    pass_ms: float


@dataclass(frozen=True, slots=True)
class Graph:
    """A large graph, opened and advanced by the benchmark itself, without services.

    Attributes:
        open_statements: statements of the pass that opens it, in a process that has seen nothing of it.
        layer_statements: of each pass that takes the ends of a whole layer, the most.
    """

    layers: int
    width: int
    open_ms: float
    open_statements: int
    layer_ms: Spread | None
    layer_statements: int
    again_ms: float
    again_statements: int


@dataclass(frozen=True, slots=True)
class IdleWorkflows:
    """The stack while nothing happens, without open workflows and with many.

    Attributes:
        transactions_per_s: of the database in both windows.
        table_mb: tables with their indexes.
    """

    open: int
    without: Idle
    with_open: Idle
    transactions_per_s: tuple[float, float]
    table_mb: dict[str, float]


@dataclass(frozen=True, slots=True)
class Turn:
    """One burst of one checkout."""

    which: str
    cpu_us_per_run: float
    wal_bytes_per_run: float
    runs_per_s: float
    other_cpu_percent: float


@dataclass(frozen=True, slots=True)
class Against:
    """Bursts of this checkout and another in turns."""

    folder: str
    runs: int
    turns: list[Turn]
    cpu_ratio: float
    wal_ratio: float
    same_cpu_ratio: float
    same_wal_ratio: float


@dataclass(slots=True)
class Report:
    """Everything that was measured, and what failed."""

    at: str
    machine: dict[str, Any] = field(default_factory=dict)
    settings_changed: dict[str, str] = field(default_factory=dict)
    wide: Wide | None = None
    hop: Hop | None = None
    graph: Graph | None = None
    idle: IdleWorkflows | None = None
    against: Against | None = None
    failed: dict[str, str] = field(default_factory=dict)
    seconds: float = 0.0

    def as_json(self) -> dict[str, Any]:
        """Return plain values; of the wide part with its ratio."""
        shown = dataclasses.asdict(self)
        if self.wide is not None:
            shown["wide"]["share_of_plain"] = self.wide.share_of_plain
        return shown

    @property
    def is_sound(self) -> bool:
        """Whether all was measured and every task run has succeeded."""
        wide = self.wide
        return not self.failed and (wide is None or wide.succeeded == wide.task_runs + wide.workflows)
