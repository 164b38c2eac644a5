"""The attempts of one run: their outcomes and output, and the run's progress."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any
from uuid import UUID

from sqlalchemy import Connection, func, select

from noonmark.core.states import AttemptOutcome, RunState
from noonmark.store.tables import tables as t
from noonmark.store.views.paging import Row


def run_attempts(connection: Connection, run: Row) -> list[Row]:
    """List all attempts of a run in order, each with the size of its stored output in bytes.

    Args:
        connection: a connection of `paging.reader`.
        run: the run that `paging.show_run` returned, with the attempts that did not succeed.
    """
    a = t.attempt_logs
    sizes = select(
        a.c.fence,
        func.octet_length(a.c.stdout).label("stdout"),
        func.octet_length(a.c.stderr).label("stderr"),
        func.octet_length(a.c.log).label("log"),
    ).where(a.c.run_id == run["id"])
    kept = {
        row["fence"]: {name: row[name] for name in ("stdout", "stderr", "log")}
        for row in connection.execute(sizes).mappings()
    }
    attempts = list(run["attempts"])
    if (latest := _latest(run)) is not None:
        attempts.append(latest)
    return [{**attempt, "log_bytes": kept.get(attempt["fence"])} for attempt in attempts]


def run_note(connection: Connection, run_id: UUID) -> Row | None:
    """Return the last progress, message and checkpoint that the run's attempts reported; None if none did."""
    n = t.run_notes
    query = select(n.c.fence, n.c.progress, n.c.message, n.c.checkpoint, n.c.written_at)
    found = connection.execute(query.where(n.c.run_id == run_id)).mappings().first()
    return dict(found) if found is not None else None


def run_logs(connection: Connection, run_id: UUID, attempt: int | None = None) -> list[Row]:
    """Return the output of a run's attempts, in their order.

    Args:
        connection: a connection of `paging.reader`.
        run_id: id of the run.
        attempt: only attempts with this number; a number is used again after a hand-back.
    """
    a = t.attempt_logs
    columns = (a.c.attempt, a.c.fence, a.c.stdout, a.c.stderr, a.c.log, a.c.dropped, a.c.written_at)
    query = select(*columns).where(a.c.run_id == run_id).order_by(a.c.fence)
    if attempt is not None:
        query = query.where(a.c.attempt == attempt)
    return [dict(row) for row in connection.execute(query).mappings()]


def _latest(run: Mapping[str, Any]) -> Row | None:
    """Return the attempt that has no row of its own: the one that succeeded or is running."""
    if run["started_at"] is None or any(one["fence"] == run["fence"] for one in run["attempts"]):
        return None
    if run["state"] == RunState.SUCCEEDED:
        outcome = AttemptOutcome.SUCCEEDED.value
    elif run["state"] in {RunState.RUNNING, RunState.CANCELLING}:
        outcome = None
    else:
        return None
    return {
        "run_id": run["id"],
        "scheduled_for": run["scheduled_for"],
        "fence": run["fence"],
        "attempt": run["attempt"],
        "worker": run["owner"],
        "outcome": outcome,
        "error": None,
        "started_at": run["started_at"],
        "finished_at": run["finished_at"],
    }
