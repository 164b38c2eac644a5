"""The model on the measured machine, next to what was measured there: W1 and W2 of the same report."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Final

from benchmarks.figures import percentile
from benchmarks.fleet.measured import Measured, Window
from benchmarks.fleet.model import Model, model_of
from benchmarks.fleet.path import Passed, Path, simulate

TOLERANCE: Final = 0.15
_SLOWER: Final = (0.2, 20.0)
_HALVINGS: Final = 8
_LONGEST_SECONDS: Final = 600.0
_LOOP_SECONDS: Final = 10
_JUDGED: Final = (1000, 5000)


@dataclass(frozen=True, slots=True)
class Compared:
    """One figure.

    Attributes:
        judged: whether the check fails if it is off.
    """

    figure: str
    modelled: float
    measured: float
    judged: bool

    @property
    def off(self) -> float:
        """Return how far the model is off, as a share of what was measured."""
        return self.modelled / self.measured - 1

    @property
    def holds(self) -> bool:
        """Whether the figure is close enough, or is not judged."""
        return not self.judged or abs(self.off) <= TOLERANCE


def check(measured: Measured) -> list[Compared]:
    """Compare the model of one machine with its report.

    The costs are fitted to CPU and batches. In the open loops, the waits are fitted to the time of a claim
    and of a relay round; the burst has those of the yardsticks. Rates and lateness are not fitted: they
    follow from the loops.
    """
    model = model_of(measured)
    burst = measured.burst
    path, cores = _on(model, measured, burst)
    passed = simulate(path, [0.0] * burst.runs, cores=cores, until=_LONGEST_SECONDS)
    last, starts = passed.last, passed.batches["start"]
    rows = [
        Compared("W1: runs/s", burst.runs / last, burst.rate, judged=True),
        Compared("W1: seconds to the last outcome", last, burst.seconds, judged=True),
        Compared("W1: runs per start", burst.runs / starts, 1 / burst.batches["start"], judged=False),
    ]
    for rate, window in sorted(measured.loops.items()):
        due = [number / rate for number in range(rate * _LOOP_SECONDS)]
        passed = _open_loop(model, measured, window, due)
        late = sorted(1000 * one for one in passed.late)
        p50, p99 = window.lateness_ms
        rows += [
            Compared(
                f"W2, {rate:,}/s: p99 lateness, ms", percentile(late, 0.99), p99, judged=rate in _JUDGED
            ),
            Compared(f"W2, {rate:,}/s: p50 lateness, ms", percentile(late, 0.5), p50, judged=False),
        ]
    return rows


def _open_loop(model: Model, measured: Measured, window: Window, due: Sequence[float]) -> Passed:
    """Simulate a window with waits at which claims and relay rounds take as long as they did there."""
    path, cores = _on(model, measured, window)

    def with_waits(trip: float, flush: float) -> Passed:
        slower = replace(path, commit=path.commit.scaled(flush), trip=path.trip.scaled(trip))
        return simulate(slower, due, cores=cores, until=2 * _LOOP_SECONDS)

    def with_trip(trip: float) -> Passed:
        return _found(lambda flush: with_waits(trip, flush), "claim", window.claim_ms)

    return _found(with_trip, "relay", window.relay_ms)


def _found(simulated: Callable[[float], Passed], stage: str, batch_ms: float) -> Passed:
    """Search the factor at which the batches of a stage take so long; at worst, take a bound."""
    low, high = _SLOWER
    for _ in range(_HALVINGS):
        factor = math.sqrt(low * high)
        passed = simulated(factor)
        if 1000 * passed.seconds[stage] / max(1, passed.batches[stage]) < batch_ms:
            low = factor
        else:
            high = factor
    return passed


def _on(model: Model, measured: Measured, window: Window) -> tuple[Path, float]:
    """Return the path beside the rest of the machine, and the cores without the background.

    In the burst, noonmark and the rest of the machine both used all that they got: the share of the rest
    there is the most that it takes from noonmark. In a quieter window it may use more, of idle cores.
    """
    background = window.rate * model.background_us("one-time", window.rate) / 1e6
    others = min(window.other_cores, measured.burst.other_cores)
    return replace(model.path("one-time"), others=others), measured.cores - background
