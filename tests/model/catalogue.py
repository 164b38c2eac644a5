"""All models, what is explored of each, and its mutants; `python -m tests.model.catalogue` prints what the docs show."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from tests.model.checker import Broken, Explored, Model, Trace, explore
from tests.model.limits import model as limits
from tests.model.outbox import model as outbox
from tests.model.runs import model as runs
from tests.model.runs import rules as runs_rules
from tests.model.shards import model as shards

Scope = Callable[[Broken], Model[Any]]
"""Makes a model of certain bounds, with these rules broken."""


@dataclass
class Subject:
    """A model.

    Attributes:
        scopes: what is explored.
        mutants: what each broken rule means, by its name.
    """

    scopes: Sequence[Scope]
    mutants: Mapping[str, str]
    _caught: dict[str, tuple[int, Trace]] = field(default_factory=dict)

    def model(self, scope: int) -> Model[Any]:
        """Return the model of a scope, with no rule broken."""
        return self.scopes[scope](frozenset())

    @cached_property
    def explored(self) -> list[Explored]:
        """What is found in each scope; kept, as it takes seconds."""
        return [explore(scope(frozenset())) for scope in self.scopes]

    def caught(self, mutant: str) -> tuple[int, Trace]:
        """Return the number of the first scope that catches a mutant, and the shortest trace in it.

        Raises:
            AssertionError: no scope catches it.
        """
        if mutant not in self._caught:
            self._caught[mutant] = self._catch(mutant)
        return self._caught[mutant]

    def _catch(self, mutant: str) -> tuple[int, Trace]:
        assert mutant in self.mutants
        for number, scope in enumerate(self.scopes):
            found = explore(scope(frozenset({mutant})))
            if found.trace is not None:
                return number, found.trace
        raise AssertionError(f"no scope catches the mutant {mutant!r}")


SUBJECTS = {
    "runs": Subject(runs.SCOPES, runs_rules.MUTANTS),
    "shards": Subject(shards.SCOPES, shards.MUTANTS),
    "outbox": Subject(outbox.SCOPES, outbox.MUTANTS),
    "limits": Subject(limits.SCOPES, limits.MUTANTS),
}


def table() -> str:
    """Return the table of explorations in docs/verification.md."""
    lines = []
    for subject in SUBJECTS.values():
        for number, found in enumerate(subject.explored):
            name = subject.model(number).name
            lines.append(
                f"{name:<38}{found.states:>9,} states{found.steps:>10,} steps, every state within {found.depth} steps"
            )
    return "\n".join(lines)


def caught_table() -> str:
    """Return the list of mutants in docs/verification.md."""
    lines = []
    for subject in SUBJECTS.values():
        for mutant in subject.mutants:
            _, trace = subject.caught(mutant)
            lines.append(f"{mutant:<28}{len(trace.steps):>3} steps: {trace.problem}")
    return "\n".join(lines)


def story() -> str:
    """Return the trace that docs/verification.md shows."""
    return SUBJECTS["runs"].caught("loss keeps the fence")[1].story()


def main() -> None:
    """Print what the page shows, and how long it took."""
    began = time.process_time()
    print(table(), caught_table(), story(), sep="\n\n")
    print(f"\n{time.process_time() - began:.0f} s of CPU")


if __name__ == "__main__":
    main()
