"""A job's outcomes of the last hour: counts by window of five minutes, and their form in `job_stats.recent`.

Each outcome counts once, under a key: its window and what became of it. What is stored has the keys in
ascending order, each as its distance from the one before, with its count, as numbers of variable length. A
job that runs every five minutes needs 27 bytes. A later release can add numbers; another form needs another
column.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Final, NamedTuple

WINDOW_SECONDS: Final = 300
WINDOWS: Final = 12
"""Windows of an hour. One more can begin in the future, by the clock of a worker that is ahead."""

BOUNDS: Final = (0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 300.0, 900.0, 3600.0)
"""Upper bounds of the buckets of durations, in seconds; one more bucket holds what is longer."""

OTHER: Final = 0
SKIPPED: Final = 1
FAILED: Final = 2
"""The attempt failed, and the run is retried."""

DEAD: Final = 3
"""The attempt failed, and was the run's last."""

SUCCEEDED: Final = 4
"""How long it took is unknown. The next numbers are successes by bucket of their duration."""

_BUCKETS: Final = SUCCEEDED + 1
_KEYS: Final = 32
"""Keys of a window: more than there are, so that later releases can add some."""


class Rates(NamedTuple):
    """Outcomes of a job in the last hour.

    Attributes:
        failed: attempts, those that were the last of dead runs among them.
        seconds_buckets: successes of known duration, by `BOUNDS`.
    """

    succeeded: int
    failed: int
    dead: int
    skipped: int
    other: int
    seconds_buckets: list[int]


def last_hour(now: datetime) -> range:
    """Return the keys that count at an instant; the others are dropped."""
    current = _window(now)
    return range((current - WINDOWS + 1) * _KEYS, (current + 2) * _KEYS)


def key_of(at: datetime, what: int) -> int:
    """Return the key under which an outcome counts: what became of it (such as `FAILED`) at an instant."""
    return _window(at) * _KEYS + what


def success_in(seconds: float | None) -> int:
    """Return what became of an outcome: a success that took so long."""
    return SUCCEEDED if seconds is None else _BUCKETS + bisect_left(BOUNDS, seconds)


def encode(counts: Mapping[int, int]) -> bytes | None:
    """Return what is stored of counts by key; None: there are none."""
    stored = bytearray()
    before = 0
    for key in sorted(counts):
        for number in (key - before, counts[key]):
            rest = number
            while rest > 0x7F:
                stored.append(rest & 0x7F | 0x80)
                rest >>= 7
            stored.append(rest)
        before = key
    return bytes(stored) or None


def decode(stored: bytes | None, hour: range) -> dict[int, int]:
    """Return the counts by key of what is stored, those of the hour only.

    Raises:
        ValueError: these are no counts.
    """
    counts: dict[int, int] = {}
    key = number = shift = 0
    counting = False
    for byte in stored or b"":
        if byte > 0x7F:
            number |= (byte & 0x7F) << shift
            shift += 7
            continue
        number |= byte << shift
        if not counting:
            key += number
        elif key in hour:
            counts[key] = number
        counting = not counting
        number = shift = 0
    if counting or shift:
        raise ValueError(f"{stored!r} in job_stats.recent ends within a count: set it to null")
    return counts


def rates_of(counts: Mapping[int, int]) -> Rates:
    """Return the sums of counts over all windows."""
    sums = [0] * (_BUCKETS + len(BOUNDS) + 1)
    for key, count in counts.items():
        what = key % _KEYS
        sums[what if what < len(sums) else OTHER] += count
    return Rates(
        succeeded=sum(sums[SUCCEEDED:]),
        failed=sums[FAILED] + sums[DEAD],
        dead=sums[DEAD],
        skipped=sums[SKIPPED],
        other=sums[OTHER],
        seconds_buckets=sums[_BUCKETS:],
    )


def percentile(buckets: Sequence[int], share: float) -> float | None:
    """Return the bound that `share` of the durations do not exceed; None: no durations, or no upper bound.

    Args:
        buckets: counts by `BOUNDS`, and one more.
        share: such as 0.99.
    """
    total, seen = sum(buckets), 0
    for bound, count in zip(BOUNDS, buckets, strict=False):
        seen += count
        if total and seen >= share * total:
            return bound
    return None


def _window(at: datetime) -> int:
    return int(at.timestamp() // WINDOW_SECONDS)
