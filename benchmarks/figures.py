"""What is reported: small frozen records, made from raw measurements and turned into JSON."""

from __future__ import annotations

import dataclasses
import math
import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

SERVICES: Final = ("intake", "trigger", "dispatcher", "worker")
"""Noonmark's own kinds of process."""

SERVERS: Final = ("postgres", "kafka")
"""The servers it stands on."""


def percentile(values: Sequence[float], share: float) -> float:
    """Return the nearest-rank percentile: the smallest value that `share` of all values do not exceed.

    Args:
        values: in rising order.
        share: above 0 and at most 1.

    Raises:
        ValueError: there are no values, or the share is out of range.
    """
    if not values:
        raise ValueError("a percentile of no values does not exist")
    if not 0 < share <= 1:
        raise ValueError(f"share is {share}; use one above 0 and at most 1, such as 0.99")
    return values[math.ceil(share * len(values)) - 1]


@dataclass(frozen=True, slots=True)
class Spread:
    """How values are spread, in milliseconds."""

    count: int
    mean: float
    p50: float
    p95: float
    p99: float
    max: float

    @classmethod
    def of_seconds(cls, seconds: Sequence[float]) -> Spread | None:
        """Sum up durations in seconds; None where there are none."""
        if not seconds:
            return None
        ordered = sorted(1000 * value for value in seconds)
        return cls(
            len(ordered),
            round(statistics.fmean(ordered), 2),
            *(round(percentile(ordered, share), 2) for share in (0.5, 0.95, 0.99, 1.0)),
        )


@dataclass(frozen=True, slots=True)
class Stage:
    """What one part of the path of a run did in a window.

    Attributes:
        batches: statements; of the relay, rounds that sent runs or events.
        runs_per_batch: mean.
        batch_ms: mean time of a batch with its commit; None if the service does not time it.
        wait_ms: from the instant that the stage before wrote to that of this one; None of the relay.
        gap_ms: between one batch and the next; None of the relay.
    """

    batches: int
    runs_per_batch: float | None
    batch_ms: float | None
    wait_ms: Spread | None
    gap_ms: Spread | None


@dataclass(frozen=True, slots=True)
class Burst:
    """Jobs that were all due at one instant, from that instant to the last recorded outcome.

    Attributes:
        runs: planned runs.
        seconds: from the instant to the last `finished_at`, both by the database's clock.
        seen_seconds: until the worker's counter showed every run: an upper bound for the last commit.
        cpu_us_by_process: per run and kind of process; `benchmark` itself is not in the total.
        other_cpu_percent: what the rest of the machine used meanwhile, percent of one core.
        wal_bytes_per_run: from the instant to the empty outbox.
        wal_bytes_per_run_with_load: the same with the rows of the job and its timer.
        messages_per_run: Kafka records, by topic in `messages`.
        lost: planned runs without a row that says `succeeded`.
        second_verdicts: runs with more than one terminal lifecycle event.
        without_event: succeeded runs whose event did not come.
        repeated: runs that were queued or attempted more than once.
        checkpoint: whether a checkpoint ended meanwhile, which makes WAL and seconds larger.
        runs_per_start: runs per start statement: distinct values of `started_at`, the time of the statement.
        runs_per_recorded_batch: runs per statement that recorded outcomes: distinct values of `finished_at`.
        runs_per_message: runs per message on the topics of runs.
        stages: claim, relay, start and record.
        stored_bytes_per_run: added on disk to the ledger, to the jobs (with loading them) and to the topics.
    """

    kind: str
    runs: int
    seconds: float
    seen_seconds: float
    runs_per_s: float
    cpu_us_per_run: float
    cpu_us_by_process: dict[str, float]
    cpu_us_by_backend: dict[str, float]
    other_cpu_percent: float
    wal_bytes_per_run: float
    wal_bytes_per_run_with_load: float
    messages_per_run: float
    messages: dict[str, int]
    copy_jobs_per_s: float
    share_of_copy_jobs: float
    start_ms: Spread | None
    rss_mb: dict[str, float]
    lost: int
    second_verdicts: int
    without_event: int
    repeated: int
    checkpoint: bool
    runs_per_start: float | None = None
    runs_per_recorded_batch: float | None = None
    runs_per_message: float | None = None
    stages: dict[str, Stage] = field(default_factory=dict)
    stored_bytes_per_run: dict[str, float] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class OpenLoop:
    """One-time jobs due at evenly spaced instants.

    Attributes:
        rate: jobs due per second.
        seconds: how long.
        lateness_ms: `started_at - scheduled_for` of the ledger.
        handler_lateness_ms: first line of the handler - `scheduled_for`, by the handler's own clock.
        cpu_percent: per kind of process, of one core.
        cpu_percent_by_backend: the same of Postgres's sessions.
        cpu_percent_noonmark: noonmark's own processes together.
        cpu_percent_all: those, Postgres and Kafka.
        not_started: jobs without a started run.
        stages: claim, relay, start and record.
        messages: Kafka records, by topic.
    """

    rate: float
    seconds: float
    runs: int
    lateness_ms: Spread | None
    handler_lateness_ms: Spread | None
    cpu_percent: dict[str, float]
    cpu_percent_by_backend: dict[str, float]
    cpu_percent_noonmark: float
    cpu_percent_all: float
    other_cpu_percent: float
    wal_bytes_per_run: float
    not_started: int
    stages: dict[str, Stage] = field(default_factory=dict)
    messages: dict[str, int] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Idle:
    """A window in which nothing is due."""

    seconds: float
    cpu_percent: dict[str, float]
    cpu_percent_noonmark: float
    cpu_percent_all: float
    other_cpu_percent: float
    cpu_percent_by_backend: dict[str, float] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class OtherBurst:
    """The burst of one-time jobs on another scheduler: the bare design, or a rival.

    Attributes:
        seconds: from the due instant to the last recorded outcome.
        cpu_us_by_process: per run; the benchmark itself is not in the total.
        wal_bytes_per_run: from the due instant to the last outcome.
        runs_per_start: runs per start statement; None if it cannot be read from the tables.
        runs_per_recorded_batch: the same for outcomes.
        other_cpu_percent: CPU of the rest of the machine, percent of one core.
        lost: jobs without an outcome.
    """

    runs: int
    seconds: float
    runs_per_s: float
    cpu_us_per_run: float
    cpu_us_by_process: dict[str, float]
    wal_bytes_per_run: float
    other_cpu_percent: float
    lost: int
    checkpoint: bool
    runs_per_start: float | None = None
    runs_per_recorded_batch: float | None = None


@dataclass(frozen=True, slots=True)
class OtherWindow:
    """The open loop on another scheduler.

    Attributes:
        lateness_ms: `started_at - scheduled_for` of its table of runs; None if it has none.
        handler_lateness_ms: first line of the handler - due instant.
        cpu_percent_all: its processes and servers, percent of one core.
        not_started: jobs whose handler was not called.
    """

    rate: float
    seconds: float
    runs: int
    lateness_ms: Spread | None
    handler_lateness_ms: Spread | None
    cpu_percent_all: float
    other_cpu_percent: float
    not_started: int


@dataclass(slots=True)
class BareDesign:
    """The bare design in the same run of the benchmark.

    Attributes:
        burst: measured before noonmark.
        burst_after: the same once more, after noonmark.
    """

    burst: OtherBurst | None = None
    burst_after: OtherBurst | None = None
    open_loops: list[OtherWindow] = field(default_factory=list)

    @property
    def bursts(self) -> list[OtherBurst]:
        """Both bursts, or the one that was measured."""
        return [one for one in (self.burst, self.burst_after) if one is not None]

    def open_loop(self, rate: float) -> OtherWindow | None:
        """Return the window with this rate."""
        return next((one for one in self.open_loops if one.rate == rate), None)


@dataclass(frozen=True, slots=True)
class Submissions:
    """Create events taken in by one intake process.

    Attributes:
        submissions: events published.
        per_s: between the first and the last batch of the inbox, the first batch not counted.
        missing: events without a job.
        rejected: events refused.
    """

    kind: str
    submissions: int
    per_s: float
    seconds: float
    cpu_us_per_submission: float
    cpu_us_by_process: dict[str, float]
    other_cpu_percent: float
    wal_bytes_per_submission: float
    missing: int
    rejected: int


@dataclass(frozen=True, slots=True)
class Claim:
    """What claiming costs with many timers waiting for later.

    Attributes:
        waiting: timers that are not due.
        batch_ms: mean time of one claim: look for what is due, claim, commit. Best of the rounds.
        postgres_us_per_run: CPU of the claiming session.
        ratio_ms: `batch_ms` over that of the smallest backlog.
        ratio_cpu: the same for the CPU.
    """

    waiting: int
    batch: int
    batches: int
    rounds: int
    batch_ms: float
    postgres_us_per_run: float
    postgres_ms_per_batch: float
    table_mb: float
    ratio_ms: float = 1.0
    ratio_cpu: float = 1.0


@dataclass(frozen=True, slots=True)
class Priority:
    """The higher lanes while a burst of low jobs drains."""

    low_jobs: int
    low_seconds: float
    low_runs_per_s: float
    high_rate: float
    high_ms_before: Spread | None
    high_ms_during: Spread | None
    normal_ms_before: Spread | None
    normal_ms_during: Spread | None
    added_p99_ms: float | None
    not_started: int


@dataclass(frozen=True, slots=True)
class Pairs:
    """A burst with two triggers, dispatchers and workers, between bursts with one of each.

    Attributes:
        one: with one of each.
        two: with two of each; CPU and memory are those of both.
        one_after: with one of each again.
    """

    one: Burst
    two: Burst
    one_after: Burst

    @property
    def bursts(self) -> tuple[Burst, Burst, Burst]:
        """All three, in the order of time."""
        return self.one, self.two, self.one_after


@dataclass(slots=True)
class Report:
    """Everything one run of the benchmark found. A part that failed is missing, and its reason is kept."""

    size: int
    started_at: str
    seconds: float = 0.0
    machine: dict[str, Any] = field(default_factory=dict)
    settings_changed: dict[str, str] = field(default_factory=dict)
    yardsticks: dict[str, float] = field(default_factory=dict)
    yardsticks_after: dict[str, float] = field(default_factory=dict)
    burst: Burst | None = None
    recurring: Burst | None = None
    idle: Idle | None = None
    open_loops: list[OpenLoop] = field(default_factory=list)
    submissions: dict[str, Submissions] = field(default_factory=dict)
    claim_backlog: list[Claim] = field(default_factory=list)
    priority: Priority | None = None
    pairs: Pairs | None = None
    bare: BareDesign | None = None
    skipped: dict[str, str] = field(default_factory=dict)
    failed: dict[str, str] = field(default_factory=dict)

    def open_loop(self, rate: float) -> OpenLoop | None:
        """Return the window with this rate."""
        return next((one for one in self.open_loops if one.rate == rate), None)

    def as_json(self) -> dict[str, Any]:
        """Return what the JSON file holds; `open_loop` is the window at 1,000 jobs per second."""
        shown = dataclasses.asdict(self)
        shown["open_loop"] = next((one for one in shown["open_loops"] if one["rate"] == 1000), None)
        return shown


def mean_batch(runs: int, statements: int) -> float | None:
    """Return the mean number of runs per statement or message; None without any."""
    return round(runs / statements, 2) if statements else None


def with_ratios(claims: Sequence[Claim]) -> list[Claim]:
    """Set each claim cost in relation to that of the smallest backlog."""
    if not claims:
        return []
    least = min(claims, key=lambda claim: claim.waiting)
    return [
        dataclasses.replace(
            claim,
            ratio_ms=round(claim.batch_ms / least.batch_ms, 2),
            ratio_cpu=round(claim.postgres_us_per_run / least.postgres_us_per_run, 2),
        )
        for claim in claims
    ]


def total(by_process: Mapping[str, float], kinds: Sequence[str] = (*SERVICES, *SERVERS)) -> float:
    """Add up kinds of process; by default all that a run needs, which leaves out the benchmark itself."""
    return sum(by_process.get(kind, 0.0) for kind in kinds)
