"""The attempts of one run: their outcomes and output, and the run's progress."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, NamedTuple
from uuid import UUID

from sqlalchemy import ColumnElement, Connection, Integer, and_, case, func, not_, select

from noonmark.core.states import BY_TASKS, AttemptOutcome, RunState
from noonmark.store.tables import tables as t
from noonmark.store.views.paging import Row

OUTPUT_STREAMS: Final = ("log", "stdout", "stderr")
"""The streams of an attempt, in the order in which they are shown."""


class OutputPosition(NamedTuple):
    """How much of the output of a run is known: all of earlier attempts, and these bytes of one attempt."""

    fence: int
    log: int
    stdout: int
    stderr: int


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
    """Return the output of a run's attempts, in their order, and whether each is complete (`ended`).

    Args:
        connection: a connection of `paging.reader`.
        run_id: id of the run.
        attempt: only attempts with this number; a number is used again after a hand-back.
    """
    a, r = t.attempt_logs, t.runs
    columns = (a.c.attempt, a.c.fence, a.c.stdout, a.c.stderr, a.c.log, a.c.dropped, a.c.written_at)
    ends = (_end_of(name).label(f"{name}_end") for name in OUTPUT_STREAMS)
    is_running = and_(r.c.state.in_([RunState.RUNNING, RunState.CANCELLING]), r.c.fence == a.c.fence)
    query = (
        select(*columns, *ends, not_(is_running).label("ended"))
        .join(r, and_(r.c.id == a.c.run_id, r.c.scheduled_for == a.c.scheduled_for))
        .where(a.c.run_id == run_id)
        .order_by(a.c.fence)
    )
    if attempt is not None:
        query = query.where(a.c.attempt == attempt)
    return [dict(row) for row in connection.execute(query).mappings()]


def new_output(
    connection: Connection, run_id: UUID, position: OutputPosition, *, attempt: int | None, limit: int
) -> list[Row]:
    """Return what attempts wrote after a position, with the columns of `run_logs`.

    A stream is the bytes after the position that are still kept; its `_end` is the number of all its bytes.

    Args:
        connection: a connection of `paging.reader`.
        run_id: id of the run.
        position: what is known already.
        attempt: only attempts with this number.
        limit: the most attempts.
    """
    a = t.attempt_logs
    columns: list[ColumnElement[Any]] = [a.c.attempt, a.c.fence]
    for name, known in zip(OUTPUT_STREAMS, position[1:], strict=True):
        after, end = case((a.c.fence == position.fence, known), else_=0), _end_of(name)
        text = func.convert_to(a.c[name], "UTF8")
        first = func.greatest(func.octet_length(text) - (end - after), 0) + 1
        columns += [
            case((end > after, func.substring(text, first.cast(Integer)))).label(name),
            end.label(f"{name}_end"),
        ]
    query = select(*columns).where(a.c.run_id == run_id, a.c.fence >= position.fence)
    if attempt is not None:
        query = query.where(a.c.attempt == attempt)
    return [dict(row) for row in connection.execute(query.order_by(a.c.fence).limit(limit)).mappings()]


def lost_attempts(
    connection: Connection, run_id: UUID, position: OutputPosition, *, attempt: int | None
) -> list[Row]:
    """Return the attempts of a run, from a position on, whose worker was lost.

    Args:
        connection: a connection of `paging.reader`.
        run_id: id of the run.
        position: what is known already.
        attempt: only attempts with this number.
    """
    a = t.attempts
    query = select(a.c.attempt, a.c.fence, a.c.worker, a.c.finished_at.label("lost_at")).where(
        a.c.run_id == run_id, a.c.fence >= position.fence, a.c.outcome == AttemptOutcome.LOST.value
    )
    if attempt is not None:
        query = query.where(a.c.attempt == attempt)
    return [dict(row) for row in connection.execute(query.order_by(a.c.fence)).mappings()]


def _end_of(name: str) -> ColumnElement[int]:
    """Return the number of bytes of a stream; release 0.2 stored only what it kept."""
    column = t.attempt_logs.c
    end: ColumnElement[int] = func.coalesce(column[f"{name}_end"], func.octet_length(column[name]))
    return end


def _latest(run: Mapping[str, Any]) -> Row | None:
    """Return the attempt that has no row of its own: the one that succeeded or is running."""
    if run["owner"] == BY_TASKS:
        return None  # what is attempted are its tasks
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
