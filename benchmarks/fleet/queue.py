"""A queue in front of an installation, second by second: runs as a fluid, first in, first out."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from benchmarks.fleet.arrivals import Second
from benchmarks.fleet.machine import ModelError

_PIECES: Final = 20


@dataclass(frozen=True, slots=True)
class Minute:
    """What a minute did.

    Attributes:
        number: from the beginning of the window.
        due: runs that became due.
        started: runs that started.
        backlog: runs due and not started at its end.
        p50: of the waits of the runs that became due, seconds.
        p99: the same.
        waited: sum of these waits, seconds.
    """

    number: int
    due: float
    started: float
    backlog: float
    p50: float
    p99: float
    waited: float


@dataclass(frozen=True, slots=True)
class _Stretch:
    """Runs whose wait changes evenly from one value to another."""

    runs: float
    first: float
    last: float


def serve(seconds: Iterable[Second], capacity: float) -> list[Minute]:
    """Let runs wait for an installation that starts `capacity` of them per second.

    Raises:
        ModelError: it starts none, or a second has fewer than no runs.
    """
    if not capacity > 0:
        raise ModelError(f"an installation that starts {capacity:g} runs/s starts nothing")
    minutes: list[Minute] = []
    backlog = 0.0
    for minute in _minutes(seconds):
        due = started = 0.0
        waits: list[_Stretch] = []
        for second in minute:
            if second.at_once < 0 or second.spread < 0:
                raise ModelError("a second cannot have fewer than no runs")
            arrived = second.at_once + second.spread
            left = max(0.0, backlog + arrived - capacity)
            waits += _waits(second, backlog, left, capacity)
            started += backlog + arrived - left
            due += arrived
            backlog = left
        p50, p99 = _percentiles(waits)
        waited = sum(one.runs * (one.first + one.last) / 2 for one in waits)
        minutes.append(Minute(len(minutes), due, started, backlog, p50, p99, waited))
    return minutes


def _minutes(seconds: Iterable[Second]) -> Iterator[list[Second]]:
    minute: list[Second] = []
    for second in seconds:
        minute.append(second)
        if len(minute) == 60:
            yield minute
            minute = []
    if minute:
        yield minute


def _waits(second: Second, backlog: float, left: float, capacity: float) -> Iterator[_Stretch]:
    """Return the waits of the runs of a second: those due at its beginning, then those spread over it."""
    queued = backlog + second.at_once
    if second.at_once:
        yield _Stretch(second.at_once, backlog / capacity, queued / capacity)
    if not second.spread:
        return
    if left or second.spread >= capacity:
        yield _Stretch(second.spread, queued / capacity, left / capacity)
        return
    # The queue is empty after this part of the second; the runs after it do not wait.
    busy = min(1.0, queued / (capacity - second.spread))
    if busy:
        yield _Stretch(second.spread * busy, queued / capacity, 0.0)
    if busy < 1:
        yield _Stretch(second.spread * (1 - busy), 0.0, 0.0)


def _percentiles(waits: Sequence[_Stretch]) -> tuple[float, float]:
    """Return p50 and p99 of a mixture of stretches, each cut into pieces."""
    pieces: list[tuple[float, float]] = []
    for one in waits:
        count = 1 if one.first == one.last else _PIECES
        step = (one.last - one.first) / count
        pieces += [(one.first + (number + 0.5) * step, one.runs / count) for number in range(count)]
    pieces.sort()
    total = sum(runs for _, runs in pieces)
    return _weighted(pieces, total / 2), _weighted(pieces, 0.99 * total)


def _weighted(pieces: Sequence[tuple[float, float]], target: float) -> float:
    passed = 0.0
    for wait, runs in pieces:
        passed += runs
        if passed >= target:
            return wait
    return pieces[-1][0] if pieces else 0.0
