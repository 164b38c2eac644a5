"""Small parts of English sentences about numbers, dates and lists."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import date, timedelta
from itertools import pairwise
from typing import Final, NamedTuple

MONTHS: Final = (
    "January", "February", "March", "April", "May", "June", "July", "August", "September", "October",
    "November", "December",
)  # fmt: skip
WEEKDAYS: Final = ("Sunday", "Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday")
"""By their number in cron, 0 is Sunday."""

_COUNTED: Final = ("", "first", "second", "third", "fourth", "fifth")


class Arc(NamedTuple):
    """Values of a cycle at equal steps, from `start` to `last`; `full` if they go all the way around."""

    start: int
    last: int
    step: int
    full: bool


def arc(values: Sequence[int], size: int, low: int = 0) -> Arc | None:
    """Return the arc of a cycle that sorted values form, or None if their steps differ.

    Args:
        values: sorted, at least two.
        size: the number of values in the cycle: 60 minutes, 24 hours.
        low: the cycle's lowest value.
    """
    gaps = [later - sooner for sooner, later in pairwise(values)]
    gaps.append(values[0] + size - values[-1])
    if len(set(gaps)) == 1:
        return Arc(values[0], values[-1], gaps[0], full=True)
    # The cycle is cut at its one wider gap: an arc may cross the cycle's end (22, 23, 0, 1).
    wide = max(range(len(gaps)), key=gaps.__getitem__)
    rest = {gap for index, gap in enumerate(gaps) if index != wide}
    if len(values) < 3 or len(rest) != 1:
        return None
    step = rest.pop()
    if step > 1 and wide != len(gaps) - 1:
        return None  # these steps match across the cycle's end by chance: the user wrote no such step
    start = values[(wide + 1) % len(values)]
    return Arc(start, (start - low + step * (len(values) - 1)) % size + low, step, full=False)


def members(mask: int) -> tuple[int, ...]:
    """Return the numbers of the bits that are set, in ascending order."""
    return tuple(bit for bit in range(mask.bit_length()) if mask >> bit & 1)


def joined(parts: Sequence[str], word: str = "and") -> str:
    """Return a list as English writes it: a, b and c."""
    return parts[0] if len(parts) == 1 else f"{', '.join(parts[:-1])} {word} {parts[-1]}"


def elided(values: Sequence[int], show: Callable[[int], str], word: str = "and", most: int = 8) -> str:
    """Return a list as English writes it; a long one without its middle if its steps are all the same."""
    parts = [show(value) for value in values]
    if len(parts) <= most or len({later - sooner for sooner, later in pairwise(values)}) > 1:
        return joined(parts, word)
    return f"{', '.join(parts[:3])}, … {word} {parts[-1]}"


def ordinal(number: int) -> str:
    """Return the number as a place: 1st, 2nd, 3rd, 4th."""
    ending = "th" if 10 < number % 100 < 14 else {1: "st", 2: "nd", 3: "rd"}.get(number % 10, "th")
    return f"{number}{ending}"


def counted(number: int) -> str:
    """Return first, second … fifth; last for -1, second to last for -2."""
    if number == -1:
        return "last"
    if number < 0:
        return f"{counted(-number) if -number < 6 else ordinal(-number)} to last"
    return _COUNTED[number] if number < len(_COUNTED) else ordinal(number)


def plural(number: int, unit: str) -> str:
    """Return the number with its unit: 1 hour, 2 hours."""
    return f"{number} {unit}" if number == 1 else f"{number} {unit}s"


def every(number: int, unit: str) -> str:
    """Return every minute, every 5 minutes."""
    return f"every {unit}" if number == 1 else f"every {plural(number, unit)}"


def span(length: timedelta) -> str:
    """Return a length in its own units: 90 minutes, 1 day, 1 hour 0.5 seconds; up to two units."""
    micros = length // timedelta(microseconds=1)
    for unit, size in (("week", 7 * 86_400), ("day", 86_400), ("hour", 3600), ("minute", 60), ("second", 1)):
        whole, rest = divmod(micros, size * 1_000_000)
        if whole and not rest:
            return plural(whole, unit)
    if micros < 60_000_000:
        return f"{micros / 1_000_000:g} seconds"
    parts = []
    for unit, size in (("day", 86_400), ("hour", 3600), ("minute", 60)):
        whole, micros = divmod(micros, size * 1_000_000)
        if whole:
            parts.append(plural(whole, unit))
    if micros:
        parts.append("1 second" if micros == 1_000_000 else f"{micros / 1_000_000:g} seconds")
    return joined(parts)


def day(on: date) -> str:
    """Return a date in full: 8 March 2026."""
    return f"{on.day} {MONTHS[on.month - 1]} {on.year}"


def capital(sentence: str) -> str:
    """Return the text with a capital first letter."""
    return sentence[:1].upper() + sentence[1:]


def uncapital(sentence: str) -> str:
    """Return the text with a small first letter, to be used inside another sentence."""
    return sentence[:1].lower() + sentence[1:]
