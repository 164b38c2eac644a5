"""When runs are due: the three scenarios, second by second."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

DAY_SECONDS: Final = 86_400
PEAK_OVER_MEAN: Final = 2.0
"""Of the daily curve: a sine with its peak at 14:00 and nothing due 12 hours later."""

ON_THE_MINUTE: Final = 0.2
"""Share of a minute's runs that are due at its beginning, because schedules are written in minutes."""

_PEAK_HOUR: Final = 14
_PEAK_SECONDS: Final = 600
_MIDNIGHT_SECONDS: Final = 240


@dataclass(frozen=True, slots=True)
class Second:
    """Runs that become due in one second: some at its beginning, the others spread over it."""

    at_once: float
    spread: float


@dataclass(frozen=True, slots=True)
class Scenario:
    """A load.

    Attributes:
        runs: in its window.
        window: seconds that are simulated.
        first_minute: of the day, at which the window begins.
        runs_per_day: for what is stored.
        sustained: runs per second that the busiest minutes have, one after the other; 0 if none do.
        objective: p99 lateness of every minute that the installation is sized for, seconds.
    """

    name: str
    title: str
    runs: float
    window: int
    first_minute: int
    runs_per_day: float
    sustained: float
    objective: float

    def seconds(self) -> Iterator[Second]:
        """Yield the seconds of the window."""
        yield from _SECONDS[self.name](self)

    @property
    def needed_rate(self) -> float:
        """Return the runs per second that end the largest burst within the objective."""
        largest = max(self.seconds(), key=lambda second: second.at_once)
        return largest.at_once / self.objective + largest.spread


def scenarios() -> dict[str, Scenario]:
    """Return the scenarios by name."""
    peak, afternoon, daily, midnight = 12_000.0, _PEAK_HOUR * 60, 1e8, 2e7
    made = (
        Scenario(
            name="peak",
            title="12,000 runs/s at peak",
            runs=peak * _PEAK_SECONDS,
            window=_PEAK_SECONDS,
            first_minute=afternoon,
            runs_per_day=peak * DAY_SECONDS / PEAK_OVER_MEAN,
            sustained=peak,
            objective=0.25,
        ),
        Scenario(
            name="day",
            title="100 million runs a day",
            runs=daily,
            window=DAY_SECONDS,
            first_minute=0,
            runs_per_day=daily,
            sustained=PEAK_OVER_MEAN * daily / DAY_SECONDS,
            objective=5.0,
        ),
        Scenario(
            name="midnight",
            title="20 million runs due at midnight, started within two minutes",
            runs=midnight,
            window=_MIDNIGHT_SECONDS,
            first_minute=0,
            runs_per_day=midnight,
            sustained=0.0,
            objective=120.0,
        ),
    )
    return {one.name: one for one in made}


def _steady(scenario: Scenario) -> Iterator[Second]:
    for _ in range(scenario.window):
        yield Second(0.0, scenario.runs / scenario.window)


def _daily(scenario: Scenario) -> Iterator[Second]:
    mean = scenario.runs / DAY_SECONDS
    for minute in range(DAY_SECONDS // 60):
        angle = 2 * math.pi * (minute / 60 - _PEAK_HOUR) / 24
        rate = mean * (1 + (PEAK_OVER_MEAN - 1) * math.cos(angle))
        spread = (1 - ON_THE_MINUTE) * rate
        yield Second(ON_THE_MINUTE * 60 * rate, spread)
        for _ in range(59):
            yield Second(0.0, spread)


def _at_once(scenario: Scenario) -> Iterator[Second]:
    yield Second(scenario.runs, 0.0)
    for _ in range(scenario.window - 1):
        yield Second(0.0, 0.0)


_SECONDS: Final = {"peak": _steady, "day": _daily, "midnight": _at_once}
