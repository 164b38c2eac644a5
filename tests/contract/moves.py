"""Which statement makes which moves of a run's state: the middle between transition table, SQL and docs."""

from __future__ import annotations

from typing import Final

from noonmark.core.states import RunState

S = RunState
Move = tuple[RunState, RunState]

STATEMENT_MOVES: Final[dict[str, frozenset[Move]]] = {
    "start_runs": frozenset({(S.QUEUED, S.RUNNING)}),
    "open_workflows": frozenset({(S.QUEUED, S.RUNNING)}),
    "close_workflows": frozenset(
        {(S.RUNNING, S.SUCCEEDED), (S.RUNNING, S.DEAD), (S.CANCELLING, S.CANCELLED)},
    ),
    "finish_plain": frozenset({(S.RUNNING, S.SUCCEEDED), (S.CANCELLING, S.CANCELLED)}),
    "finish_detailed": frozenset(
        {
            (S.RUNNING, S.SUCCEEDED),
            (S.RUNNING, S.RETRYING),
            (S.RUNNING, S.DEAD),
            (S.RUNNING, S.UNKNOWN),
            (S.RUNNING, S.CANCELLED),
            (S.RUNNING, S.DISCARDED),
            (S.CANCELLING, S.CANCELLED),
        }
    ),
    "await_callbacks": frozenset({(S.CANCELLING, S.CANCELLED)}),
    "requeue_unfinished_runs": frozenset({(S.RUNNING, S.QUEUED)}),
    "cancel_unowned_runs": frozenset({(S.CANCELLING, S.CANCELLED)}),
    "requeue_lost_runs": frozenset(
        {
            *((S.RUNNING, S.QUEUED), (S.RUNNING, S.RETRYING), (S.RUNNING, S.DEAD), (S.RUNNING, S.UNKNOWN)),
            (S.CANCELLING, S.CANCELLED),
        }
    ),
    "expire_starts": frozenset({(S.QUEUED, S.SKIPPED)}),
    "requeue_runs": frozenset({(S.RETRYING, S.QUEUED), (S.WAITING, S.QUEUED)}),
    "park_runs": frozenset({(S.QUEUED, S.WAITING)}),
    "resend_vanished": frozenset({(S.QUEUED, S.QUEUED)}),
    "pause_runs": frozenset({(S.QUEUED, S.WAITING), (S.RETRYING, S.WAITING)}),
    "promote_runs": frozenset({(S.WAITING, S.QUEUED)}),
    "enqueue_gated_runs": frozenset({(S.RETRYING, S.WAITING)}),
    "skip_waits": frozenset({(S.WAITING, S.SKIPPED)}),
    "update_run_wait_reasons": frozenset(),
    "redrive_runs": frozenset({(S.DEAD, S.QUEUED), (S.DEAD, S.WAITING)}),
    "discard_runs": frozenset({(S.DEAD, S.DISCARDED)}),
    "cancel_runs": frozenset(
        {
            (S.WAITING, S.CANCELLED),
            (S.QUEUED, S.CANCELLED),
            (S.RETRYING, S.CANCELLED),
            (S.RUNNING, S.CANCELLING),
            (S.RUNNING, S.CANCELLED),
        }
    ),
}
"""Every statement that updates `runs`."""

STATEMENT_BIRTHS: Final[dict[str, frozenset[RunState]]] = {
    "claim_alike": frozenset({S.QUEUED}),
    "claim_once": frozenset({S.QUEUED}),
    "create_jobs": frozenset({S.QUEUED}),
    "insert_immediate_runs": frozenset({S.QUEUED}),
    "insert_runs": frozenset({S.QUEUED, S.WAITING, S.SKIPPED}),
    "insert_task_runs": frozenset({S.QUEUED, S.WAITING, S.SKIPPED}),
}
"""Every statement that inserts into `runs`."""

NOT_YET: Final[frozenset[Move]] = frozenset()
"""Moves of the table that no statement of this version makes."""
