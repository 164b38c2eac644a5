"""Which tasks have ended, in any order of events, when the rule of a task says that it runs.

A `when` may read the results and verdicts of these alone: a task that may still be live would make the
decision depend on the order in which tasks end.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce
from operator import and_, or_

from noonmark.core.workflows.definition import Rule, Task

_RUNS_EARLY = frozenset({Rule.ONE_SUCCEEDED, Rule.ONE_FAILED})


def ended_before(tasks: Sequence[Task]) -> list[int]:
    """Return for each task a bit mask of the tasks that have ended when its rule says that it runs.

    These are not all its ancestors. `one_succeeded` and `one_failed` may run before all parents have ended,
    so only what all parents have in common is known. And most rules skip early: a task that was skipped
    because one parent failed has ended while its other parents are live.

    Args:
        tasks: in topological order; those of `finally` come last, and run when all others have ended.
    """
    main = (1 << sum(not task.is_final for task in tasks)) - 1
    before: list[int] = []
    ended: list[int] = []
    for task in tasks:
        parents = [ended[edge.parent] for edge in task.edges]
        every = reduce(or_, parents, main if task.is_final else 0)
        common = reduce(and_, parents) if parents else 0
        if task.is_final:
            common |= main
        before.append(common if task.rule in _RUNS_EARLY else every)
        ended.append((every if task.rule is Rule.ALL_DONE else common) | 1 << task.no)
    return before
