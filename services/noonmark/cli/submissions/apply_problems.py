"""The order of the problems of files, and how they are printed. This module makes no requests."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from noonmark.cli.submissions.apply_files import Problem

_INDEX = re.compile(r"/[0-9]+(?=/|$)")
_MOST_ALIKE = 3
"""The most entries of a list for which the same message is printed again."""


def in_order(problems: Iterable[Problem]) -> list[Problem]:
    """Return problems by file, line and field; entries of a list are ordered by their number."""
    return sorted(problems, key=lambda one: (one.file, one.line, _parts(one.pointer), one.message))


def messages(problems: Iterable[Problem]) -> Iterator[str]:
    """Yield the lines to print; a message about many entries of one list is printed once."""
    alike: dict[tuple[str, str, str], list[Problem]] = {}
    for one in problems:
        alike.setdefault((one.file, _INDEX.sub("/#", one.pointer), one.message), []).append(one)
    for (_, shape, _), same in alike.items():
        if len(same) <= _MOST_ALIKE or "/#" not in shape:
            yield from map(str, same)
        else:
            yield f"{same[0]} (and {len(same) - 1} more like it, up to {same[-1].pointer})"


def _parts(pointer: str) -> list[tuple[int, str]]:
    return [(int(part), "") if part.isdecimal() else (-1, part) for part in pointer.split("/")]
