"""The model: costs and waits fitted to one report of the benchmark, and what they say about one process."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from benchmarks.fleet.costs import Cost, Delay, Point, fit
from benchmarks.fleet.measured import BACKGROUND, SESSIONS, Measured, Window
from benchmarks.fleet.path import PARTITIONS, PARTS, Limits, Path

KINDS: Final = ("one-time", "recurring")
_LEAST_US: Final = 0.001
"""Of a part that used less than the kernel's clock can tell."""


@dataclass(frozen=True, slots=True)
class Model:
    """What runs of each kind cost.

    Attributes:
        costs: microseconds of CPU by kind of run and part; `fixed` is for each batch of the part.
        background: the same of what has no batches; `fixed` is for each second.
        wal: bytes of the log of transactions; `fixed` is for each claim with what follows.
        commit: one flush of the log.
        trip: from sending a message until a worker has it.
        limits: settings of the services.
    """

    costs: Mapping[str, Mapping[str, Cost]]
    background: Mapping[str, Mapping[str, Cost]]
    wal: Mapping[str, Cost]
    commit: Delay
    trip: Delay
    limits: Limits

    def path(self, kind: str, *, triggers: int = 1, dispatchers: int = 1, workers: int = 1) -> Path:
        """Return the path of runs of a kind through so many processes, with partitions for all workers."""
        return Path(
            self.costs[kind],
            self.commit,
            self.trip,
            triggers=triggers,
            dispatchers=dispatchers,
            workers=workers,
            partitions=max(PARTITIONS, workers),
            limits=self.limits,
        )

    def background_us(self, kind: str, rate: float) -> float:
        """Return CPU outside of the path, microseconds for each run at a rate."""
        return sum(cost.of(1.0, 1 / rate) for cost in self.background[kind].values())

    def full_us(self, kind: str, part: str, batch: int | None = None) -> float:
        """Return the CPU of a part for each run, in full batches (or smaller ones)."""
        size = batch or self.limits.claim_batch
        return self.costs[kind][part].of(1.0, 1 / size)

    def postgres_us(self, kind: str, batch: int | None = None) -> float:
        """Return the CPU of Postgres for each run."""
        return (
            sum(self.full_us(kind, part, batch) for part in SESSIONS) + self.background[kind]["rest"].per_run
        )

    def trigger_rate(self, kind: str) -> float:
        """Return the runs per second that one trigger can claim: one session, one batch after the other."""
        size, cost = self.limits.claim_batch, self.costs[kind]
        seconds = cost["trigger"].seconds(size) + cost["claim"].seconds(size) + self.commit.mean_seconds
        return size / max(seconds, self.limits.claim_pause)

    def dispatcher_rate(self, kind: str) -> float:
        """Return the runs per second that one dispatcher can relay."""
        size, cost = self.limits.relay_batch, self.costs[kind]
        seconds = cost["dispatcher"].seconds(size) + cost["relay"].seconds(size)
        return size / (seconds + self.trip.mean_seconds + self.commit.mean_seconds)

    def worker_rate(self, kind: str) -> float:
        """Return the runs per second of one worker, without the time of handlers.

        Three limits: the interpreter, which every run needs; the session that starts; the one that records.
        """
        size, cost = self.limits.most // 2, self.costs[kind]
        own, commit = cost["worker"].seconds(size), self.commit.mean_seconds
        start, record = cost["start"].seconds(size), cost["record"].seconds(size)
        return size / max(own, own / 2 + start + commit, own / 2 + record + commit)


def model_of(measured: Measured) -> Model:
    """Fit the model to a report.

    Raises:
        ModelError: the windows do not tell fixed costs from costs per run.
    """
    windows = [measured.burst, measured.loops[5000], measured.loops[1000]]
    costs = {"one-time": {part: _cost(windows, part) for part in PARTS}}
    background = {"one-time": {part: _per_second(windows, part) for part in BACKGROUND}}
    wal = {
        "one-time": fit([Point(window.batches["claim"], window.wal_bytes) for window in windows]),
    }
    other = measured.recurring
    costs["recurring"] = _shifted(costs["one-time"], other)
    background["recurring"] = _shifted(background["one-time"], other)
    if other is None:
        wal["recurring"] = wal["one-time"]
    else:
        fixed = wal["one-time"].fixed
        wal["recurring"] = Cost(fixed, max(0.0, other.wal_bytes - fixed * other.batches["claim"]))
    return Model(costs, background, wal, Delay(*measured.commit_ms), Delay(*measured.trip_ms), Limits())


def _cost(windows: list[Window], part: str) -> Cost:
    return fit([Point(window.batches[part], max(_LEAST_US, window.cpu_us[part])) for window in windows])


def _per_second(windows: list[Window], part: str) -> Cost:
    return fit([Point(1 / window.rate, max(_LEAST_US, window.cpu_us[part])) for window in windows])


def _shifted(costs: Mapping[str, Cost], window: Window | None) -> dict[str, Cost]:
    """Give each part the cost per run that another window shows beside the same fixed cost."""
    if window is None:
        return dict(costs)
    shifted = {}
    for part, cost in costs.items():
        batches = window.batches.get(part, 1 / window.rate)
        shifted[part] = Cost(cost.fixed, max(0.0, window.cpu_us[part] - cost.fixed * batches))
    return shifted
