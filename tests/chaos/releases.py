"""Which release a process of a chaos run is of: this one, or also the one before it, side by side."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from importlib.metadata import version
from pathlib import Path
from random import Random
from typing import Final

from tests.support.node import Node
from tests.support.releases import previous_release

THIS: Final = version("noonmark")
EVERY: Final = 3
"""Of so many seeds, both releases run in one."""


@dataclass(slots=True)
class Releases:
    """Chooses the release of each process; `notes` say what is chosen from.

    Attributes:
        started: number of processes of each release.
    """

    dice: Random
    before: tuple[str, Path] | None = None
    notes: list[str] = field(default_factory=list)
    started: Counter[str] = field(default_factory=Counter)
    _old: set[Node] = field(default_factory=set)

    @property
    def mixed(self) -> bool:
        """Whether two releases run."""
        return self.before is not None

    def is_old(self, node: Node) -> bool:
        """Whether a process is of the release before this one."""
        return node in self._old

    def choose(self, living: Sequence[Node]) -> Path | None:
        """The code of the next process beside the living ones of its service; None: this release's.

        Each of two releases has a process of every service of which there are two; else the dice decide.
        """
        if self.before is None:
            return None
        old = sum(map(self.is_old, living))
        is_old = self.dice.random() < 0.5
        if living and old in {0, len(living)}:
            is_old = not old
        return self.before[1] if is_old else None

    def note(self, node: Node, code: Path | None) -> None:
        """Count a process."""
        if self.before is not None and code is not None:
            self._old.add(node)
            self.started[self.before[0]] += 1
        else:
            self.started[THIS] += 1


def are_mixed(seed: int) -> bool:
    """Whether both releases run in a seed."""
    return seed % EVERY == 0


def releases(seed: int, folder: Path) -> Releases:
    """Choose the releases of a seed; the code of the one before is put into a folder that does not exist yet."""
    chosen = Releases(Random(f"{seed}/processes"))
    if are_mixed(seed):
        chosen.before = previous_release(folder)
        if chosen.before is None:
            chosen.notes.append("one release: the history of this checkout does not reach back to another")
        else:
            chosen.notes.append(f"releases: {chosen.before[0]} beside {THIS}")
    return chosen
