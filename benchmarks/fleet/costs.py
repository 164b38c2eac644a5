"""What a batch costs: a fixed part and a part per run, fitted to windows with batches of different sizes."""

from __future__ import annotations

import math
import random
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from benchmarks.fleet.machine import ModelError

_P99: Final = 2.3263478740408408
"""Of the normal distribution."""


@dataclass(frozen=True, slots=True)
class Cost:
    """Of one part of the path, in microseconds (or bytes): `fixed` for each batch, `per_run` for each run."""

    fixed: float
    per_run: float

    def __post_init__(self) -> None:
        if not (self.fixed >= 0 and self.per_run >= 0 and math.isfinite(self.fixed + self.per_run)):
            raise ModelError(f"a cost of {self.fixed:g} + {self.per_run:g} per run is not possible")

    def of(self, runs: float, batches: float = 1.0) -> float:
        """Return the cost of so many runs in so many batches."""
        return self.fixed * batches + self.per_run * runs

    def seconds(self, runs: float) -> float:
        """Return the seconds of one batch, if the cost is in microseconds."""
        return self.of(runs) / 1e6


@dataclass(frozen=True, slots=True)
class Point:
    """One measured window: batches for each run, and the cost for each run."""

    batches: float
    cost: float


def fit(points: Sequence[Point]) -> Cost:
    """Find the cost whose relative errors at the points are smallest; two points are met exactly.

    Neither part is ever negative: if the best line had one that is, that part is zero.

    Raises:
        ModelError: fewer than two points, or all batches have one size.
    """
    if len(points) < 2 or len({point.batches for point in points}) < 2:
        raise ModelError("a fixed cost and a cost per run need two windows with batches of different sizes")
    if any(not (point.batches >= 0 and point.cost > 0) for point in points):
        raise ModelError("a window without a cost cannot be fitted")
    # Least squares of (fixed * batches + per_run) / cost - 1.
    rows = [(point.batches / point.cost, 1 / point.cost) for point in points]
    bb, bo, oo = (sum(x * y for x, y in pairs) for pairs in _products(rows))
    b, o = sum(row[0] for row in rows), sum(row[1] for row in rows)
    determinant = bb * oo - bo * bo
    fixed, per_run = (b * oo - o * bo) / determinant, (o * bb - b * bo) / determinant
    if fixed < 0:
        return Cost(0.0, o / oo)
    if per_run < 0:
        return Cost(b / bb, 0.0)
    return Cost(fixed, per_run)


def _products(rows: Sequence[tuple[float, float]]) -> list[list[tuple[float, float]]]:
    return [[(row[i], row[j]) for row in rows] for i, j in ((0, 0), (0, 1), (1, 1))]


@dataclass(frozen=True, slots=True)
class Delay:
    """A wait that varies: log-normal through its median and its p99, milliseconds."""

    p50_ms: float
    p99_ms: float

    def __post_init__(self) -> None:
        if not 0 < self.p50_ms <= self.p99_ms < math.inf:
            raise ModelError(
                f"a wait with a median of {self.p50_ms:g} and a p99 of {self.p99_ms:g} ms is not possible"
            )

    @property
    def mean_seconds(self) -> float:
        """Of the distribution."""
        return self.p50_ms / 1000 * math.exp(self._sigma**2 / 2)

    def scaled(self, factor: float) -> Delay:
        """Return a wait that is so many times as long."""
        return Delay(factor * self.p50_ms, factor * self.p99_ms)

    def draw(self, random_numbers: random.Random) -> float:
        """Draw one wait, seconds."""
        return self.p50_ms / 1000 * math.exp(self._sigma * random_numbers.gauss(0.0, 1.0))

    @property
    def _sigma(self) -> float:
        return math.log(self.p99_ms / self.p50_ms) / _P99
