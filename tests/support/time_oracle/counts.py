"""What the proof compared, for the last lines of the test report."""

from __future__ import annotations

from collections import Counter

LINES: dict[str, Counter[str]] = {}
"""Heading to what was counted under it, in the order in which it came."""


def add(heading: str, **numbers: int) -> None:
    """Add to the counts of a heading."""
    LINES.setdefault(heading, Counter()).update({word.replace("_", " "): n for word, n in numbers.items()})


def top(heading: str, **numbers: int) -> None:
    """Set counts of a heading that are not sums."""
    for word, number in numbers.items():
        LINES.setdefault(heading, Counter())[word.replace("_", " ")] = number


def report() -> list[str]:
    """Return a line for each heading."""
    return [
        f"{heading}: " + ", ".join(f"{number:,} {word}" for word, number in numbers.items())
        for heading, numbers in LINES.items()
    ]
