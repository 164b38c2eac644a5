"""Which tasks have ended, in any order of events, when the rule of a task says that it runs.

A `when` may read the results and verdicts of these alone: a task that may still be live would make the
decision depend on the order in which tasks end.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce
from operator import and_, or_
from typing import NamedTuple

from noonmark.core.workflows.definition import Rule, Task


class _Ended(NamedTuple):
    """Bit masks of the tasks that have ended, the task itself included, by how the task ended.

    Attributes:
        ran: its rule said that it runs.
        unfailed: it succeeded, or was skipped without a failure.
        failed: it failed, or was skipped because of a failure.
    """

    ran: int
    unfailed: int
    failed: int

    @property
    def either(self) -> int:
        """However it ended."""
        return self.unfailed & self.failed


def ended_before(tasks: Sequence[Task]) -> list[int]:
    """Return for each task a bit mask of the tasks that have ended when its rule says that it runs.

    These are not all its ancestors. `one_succeeded` and `one_failed` may run before all parents have ended,
    so only what is common to all parents is known. And most rules skip early: a task that was skipped because
    one parent failed has ended while its other parents are live. So how a parent ended says what has ended
    upstream of it: if it succeeded, all that it waited for.

    Args:
        tasks: in topological order; those of `finally` come last, and run when all others have ended.
    """
    main = (1 << sum(not task.is_final for task in tasks)) - 1
    before: list[int] = []
    ended: list[_Ended] = []
    for task in tasks:
        base = main if task.is_final else 0
        runs, skipped, failed = _when_decided(task.rule, [ended[edge.parent] for edge in task.edges])
        before.append(runs | base)
        own = 1 << task.no | base
        # It also ends after it ran: without a failure, or with one.
        ended.append(_Ended(runs | own, runs & skipped | own, runs & failed | own))
    return before


def _when_decided(rule: Rule, parents: Sequence[_Ended]) -> tuple[int, int, int]:
    """Return what has ended when a rule runs a task, skips it without a failure, or skips it after one."""
    if not parents:
        return 0, 0, 0
    all_unfailed = reduce(or_, [parent.unfailed for parent in parents])
    match rule:
        case Rule.ALL_SUCCEEDED:
            runs = reduce(or_, [parent.ran for parent in parents])
            return runs, all_unfailed, reduce(and_, [parent.failed for parent in parents])
        case Rule.NONE_FAILED:
            return all_unfailed, all_unfailed, reduce(and_, [parent.failed for parent in parents])
        case Rule.ALL_DONE:
            runs = reduce(or_, [parent.either for parent in parents])
            return runs, runs, runs
        case Rule.ONE_SUCCEEDED:
            runs = reduce(and_, [parent.ran for parent in parents])
            return runs, all_unfailed, reduce(or_, [parent.either for parent in parents])
        case Rule.ONE_FAILED:
            runs = reduce(and_, [parent.failed for parent in parents])
            return runs, all_unfailed, runs
