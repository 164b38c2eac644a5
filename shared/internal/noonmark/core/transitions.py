"""The table of run state transitions.

Each transition is made by one guarded statement in `noonmark.store.sql`; docs/state-machine.md draws this
table and a test keeps the drawing, the table and the statements' guards equal.
"""

from __future__ import annotations

from typing import Final

from noonmark.core.states import RunState

S = RunState

INITIAL: Final[frozenset[RunState]] = frozenset({S.WAITING, S.QUEUED, S.SKIPPED})
"""States in which a run may be inserted."""

MOVES: Final[dict[RunState, frozenset[RunState]]] = {
    # `queued` to `queued` is a resend: the message was lost, the fence increases.
    S.WAITING: frozenset({S.QUEUED, S.SKIPPED, S.CANCELLED}),
    S.QUEUED: frozenset({S.RUNNING, S.WAITING, S.QUEUED, S.SKIPPED, S.CANCELLED}),
    # A handler may end its run itself as `cancelled` or `discarded`.
    S.RUNNING: frozenset(
        {
            *(S.SUCCEEDED, S.RETRYING, S.DEAD, S.CANCELLING, S.QUEUED, S.UNKNOWN),
            *(S.CANCELLED, S.DISCARDED),
        }
    ),
    S.CANCELLING: frozenset({S.CANCELLED}),
    S.RETRYING: frozenset({S.QUEUED, S.WAITING, S.CANCELLED}),
    # A redriven run waits if its job is paused or its runs must not overlap.
    S.DEAD: frozenset({S.QUEUED, S.WAITING, S.DISCARDED}),
    S.SUCCEEDED: frozenset(),
    S.SKIPPED: frozenset(),
    S.CANCELLED: frozenset(),
    S.UNKNOWN: frozenset(),
    S.DISCARDED: frozenset(),
}

TERMINAL: Final[frozenset[RunState]] = frozenset(state for state, targets in MOVES.items() if not targets)
"""States that never change again."""

VERDICTS: Final[frozenset[RunState]] = TERMINAL | {S.DEAD}
"""States announced on the lifecycle topic as the end of a run. `dead` may be redriven later."""
