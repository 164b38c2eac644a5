"""Conditions on results and verdicts: bounded, total, without code. A pointer that leads nowhere is false."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Condition:
    """A condition; placeholder of the seam, owned by the documents helper.

    Attributes:
        stored: the JSON value that it was read from, in canonical form.
        reads: keys of the tasks whose results it reads.
        verdicts: keys of the tasks whose verdicts it reads.
    """

    stored: object
    reads: frozenset[str] = frozenset()
    verdicts: frozenset[str] = frozenset()

    def holds(
        self, results: Callable[[str], object], verdicts: Callable[[str], str], own: object = None
    ) -> bool:
        """Whether it holds.

        Args:
            results: returns the result of a task by its key, `conditions.NOTHING` if it has none.
            verdicts: returns `succeeded`, `failed` or `skipped` for a task by its key.
            own: the result that a comparison without a task reads: that of the edge's parent.
        """
        raise NotImplementedError
