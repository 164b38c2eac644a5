"""The five rules: when a task runs, by the classes of its edges.

A rule decides before all parents have ended only if nothing that comes later could change the decision. So
the decisions of a workflow run depend on how its tasks end, never on the order in which they end.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import IntEnum
from types import MappingProxyType
from typing import Final

from noonmark.core.states import SkipReason
from noonmark.core.workflows.definition import Rule, Task
from noonmark.core.workflows.progress import EdgeClass, edge_classes


class Decision(IntEnum):
    """What a rule says about a task."""

    WAIT = 0
    RUN = 1
    UPSTREAM_FAILED = 2
    """Skip it: a task that it needs failed."""
    UPSTREAM_SKIPPED = 3
    """Skip it: what it needs was skipped, and nothing failed."""
    NOT_NEEDED = 4
    """Skip it: it runs after a failure, and nothing failed."""


SKIP_REASONS: Final = {
    Decision.UPSTREAM_FAILED: SkipReason.UPSTREAM_FAILED,
    Decision.UPSTREAM_SKIPPED: SkipReason.UPSTREAM_SKIPPED,
    Decision.NOT_NEEDED: SkipReason.NOT_NEEDED,
}
"""The reason of the skipped run, by the decision."""


_C, _D = EdgeClass, Decision
_RULES: Final[Mapping[Rule, tuple[tuple[EdgeClass, Decision], ...]]] = MappingProxyType(
    {
        Rule.ALL_SUCCEEDED: (
            (_C.FAILED, _D.UPSTREAM_FAILED),
            (_C.PENDING, _D.WAIT),
            (_C.SKIPPED, _D.UPSTREAM_SKIPPED),
        ),
        Rule.NONE_FAILED: (
            (_C.FAILED, _D.UPSTREAM_FAILED),
            (_C.PENDING, _D.WAIT),
            (_C.SUCCEEDED, _D.RUN),
            (_C.SKIPPED, _D.UPSTREAM_SKIPPED),
        ),
        Rule.ALL_DONE: ((_C.PENDING, _D.WAIT),),
        Rule.ONE_SUCCEEDED: (
            (_C.SUCCEEDED, _D.RUN),
            (_C.PENDING, _D.WAIT),
            (_C.FAILED, _D.UPSTREAM_FAILED),
            (_C.SKIPPED, _D.UPSTREAM_SKIPPED),
        ),
        Rule.ONE_FAILED: (
            (_C.FAILED, _D.RUN),
            (_C.PENDING, _D.WAIT),
            (_C.SUCCEEDED, _D.NOT_NEEDED),
            (_C.SKIPPED, _D.NOT_NEEDED),
        ),
    }
)
"""What each rule says of a class. The first class that an edge has decides; if none has, the task runs."""


def decide(rule: Rule, failed: int, succeeded: int, skipped: int, pending: int) -> Decision:
    """Apply a rule to the numbers of edges of each class. A task without edges runs."""
    numbers = {
        EdgeClass.FAILED: failed,
        EdgeClass.SUCCEEDED: succeeded,
        EdgeClass.SKIPPED: skipped,
        EdgeClass.PENDING: pending,
    }
    return _decide(rule, bytes(edge_class for edge_class, number in numbers.items() if number))


def decide_task(task: Task, progress: bytes | bytearray, choices: bytes | bytearray) -> Decision:
    """Apply the rule of a task to the classes of its edges."""
    return _decide(task.rule, edge_classes(task, progress, choices))


def _decide(rule: Rule, classes: bytes) -> Decision:
    for edge_class, decision in _RULES[rule]:
        if edge_class in classes:
            return decision
    return Decision.RUN
