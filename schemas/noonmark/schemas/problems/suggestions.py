"""What may be meant by a name that is not known: our name for it, or one that is spelled almost alike."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping
from types import MappingProxyType
from typing import Final

_LONGEST: Final = 80
_SHORT: Final = 8
"""Names of fewer characters may differ in one place only, longer ones in two."""
_TINY: Final = 4
"""Among names of up to so many characters, another letter is another word: rate and date."""
_PREFIX: Final = 4
_LONG: Final = 6

_HUMP: Final = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")
_UNIT: Final = re.compile(
    r"_(?:milliseconds|millis|ms|seconds?|secs?|s|minutes?|mins?|m|hours?|hrs?|h|days?|d)$"
)
_NONE: Final[Mapping[str, str]] = MappingProxyType({})


def suggestion(word: str, known: Iterable[str], others: Mapping[str, str] = _NONE) -> str:
    """Return `; did you mean 'x'?` for the names that may be meant, or nothing.

    Args:
        word: the unknown name.
        known: the names that exist.
        others: what other schedulers and queues call them; see `other_names`.
    """
    found = meant(word, known, others)
    return f"; did you mean {' or '.join(found)}?" if found else ""


def meant(word: str, known: Iterable[str], others: Mapping[str, str] = _NONE) -> list[str]:
    """Return the names that may be meant, as they are shown in a message; empty if none is known or alike."""
    plain = {_plain(name): name for name in known}
    given = _plain(word[:_LONGEST])
    if given in plain:
        return [repr(plain[given])]
    for one in (given, _UNIT.sub("", given)):
        if one in others:
            # A table serves several documents, of which not each has all of its fields.
            return [_shown(name) for name in others[one].split("|") if name[:1] == "/" or _top(name) in plain]
    near = _except_unit(given, plain) or _completed(given, plain) or _near(given, plain)
    if near is not None:
        return [repr(plain[near])]
    if len(given) >= _LONG:  # shorter ones resemble too much
        ours = [one for one, path in others.items() if path.endswith(f".{one}")]
        near = _near(given, [one for one in ours if len(one) >= _LONG])
    return meant(near, known, others) if near is not None else []


def _plain(word: str) -> str:
    """Return a name in snake case: maxRetries and max-retries are max_retries."""
    return _HUMP.sub("_", word).replace("-", "_").casefold()


def _top(path: str) -> str:
    return path.partition(".")[0]


def _shown(name: str) -> str:
    return f"{name[1:]!r} of the job" if name.startswith("/") else repr(name)


def _except_unit(given: str, known: Collection[str]) -> str | None:
    """Return the name that differs in its unit only: timeout, timeout_ms and timeout_secs, every_minutes."""
    base = _UNIT.sub("", given)
    return next((name for name in known if _UNIT.sub("", name) == base), None)


def _completed(given: str, known: Collection[str]) -> str | None:
    """Return the only name that begins with whole words: idempotency."""
    found = [name for name in known if name.startswith((f"{given}_", f"{given}."))]
    return found[0] if len(given) >= _PREFIX and len(found) == 1 else None


def _near(given: str, known: Collection[str]) -> str | None:
    """Return the name with the fewest misspelled places, if they are few."""
    most = 1 if len(given) < _SHORT else 2
    letters = set(given)
    far = {
        name: _distance(given, name)
        for name in known
        # A document can have thousands of unknown fields: most names are set aside by their letters.
        if abs(len(given) - len(name)) <= most and len(letters ^ set(name)) <= 2 * most
    }
    near = min(far, key=far.__getitem__, default=None)
    if near is None or far[near] > most:
        return None
    if len(given) <= _TINY and len(given) == len(near) and sorted(given) != sorted(near):
        return None
    return near


def _distance(one: str, other: str) -> int:
    """Return the number of letters to insert, to remove, to replace, or to swap with the next one."""
    before: list[int] = []
    row = list(range(len(other) + 1))
    for i, letter in enumerate(one, start=1):
        earlier, before, row = before, row, [i]
        for j, wanted in enumerate(other, start=1):
            cost = min(before[j] + 1, row[j - 1] + 1, before[j - 1] + (letter != wanted))
            if i > 1 and j > 1 and letter == other[j - 2] and one[i - 2] == wanted:
                cost = min(cost, earlier[j - 2] + 1)
            row.append(cost)
    return row[-1]
