"""Builds API models from rows of runs, without values that the caller cannot see."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

from noonmark.api.http.etags import etag_of
from noonmark.schemas.api.runs import Attempt, AttemptLog, Progress, Run, RunLogs, RunSummary

Row = Mapping[str, Any]


def summary_of(row: Row, *, payloads: bool) -> RunSummary:
    """Build a run of a listing.

    Args:
        row: row of `views.runs.search_runs`.
        payloads: whether the caller can see errors.
    """
    return RunSummary.model_validate(_summary(row, payloads=payloads))


def run_of(row: Row, attempts: Sequence[Row], note: Row | None, *, payloads: bool) -> Run:
    """Build a run with all details.

    Args:
        row: row of `views.paging.show_run`.
        attempts: rows of `views.attempts.run_attempts`.
        note: row of `views.attempts.run_note`.
        payloads: whether the caller can see errors, results and checkpoints.
    """
    checkpoint = note["checkpoint"] if note is not None else None
    return Run.model_validate(
        {
            **_summary(row, payloads=payloads),
            "result": row["result"] if payloads else None,
            "result_hidden": not payloads and row["result"] is not None,
            "progress": _progress(note),
            "checkpoint": checkpoint if payloads else None,
            "checkpoint_hidden": not payloads and checkpoint is not None,
            "attempts": [_attempt(attempt, payloads=payloads) for attempt in attempts],
        }
    )


def run_etag(row: Row) -> str:
    """Create the entity tag of a run: it changes with every state transition, hold and release."""
    held = () if row["held_at"] is None else (row["held_at"].timestamp(),)
    return etag_of("run", row["state"], row["fence"], row["attempt"], row["reason"], *held)


def logs_of(run_id: object, rows: Sequence[Row]) -> RunLogs:
    """Build the output of attempts from rows of `views.attempts.run_logs`."""
    return RunLogs.model_validate({"run_id": run_id, "attempts": [_log_of(row) for row in rows]})


def logs_text(rows: Sequence[Row]) -> str:
    """Format the output of attempts as text."""
    parts: list[str] = []
    for row in rows:
        for stream in ("log", "stdout", "stderr"):
            if row[stream]:
                parts += [
                    f"== attempt {row['attempt']}, fence {row['fence']}: {stream}",
                    row[stream].rstrip("\n"),
                ]
        if row["dropped"]:
            parts.append(f"== {row['dropped']} earlier bytes were dropped")
    return "\n".join(parts) + "\n" if parts else ""


def _log_of(row: Row) -> AttemptLog:
    ends = {name: row[f"{name}_end"] for name in ("stdout", "stderr", "log")}
    return AttemptLog.model_validate({**row, "ends": ends})


def _summary(row: Row, *, payloads: bool) -> dict[str, Any]:
    return {
        **row,
        "type": row["kind"],
        "priority": row["lane"],
        # A task is not due at the instant of its workflow run.
        "start_delay_seconds": _seconds(row["due_at"] or row["scheduled_for"], row["first_started_at"]),
        "took_seconds": _seconds(row["started_at"], row["finished_at"]),
        **_error(row, payloads=payloads),
    }


def _attempt(row: Row, *, payloads: bool) -> Attempt:
    return Attempt.model_validate({**row, **_error(row, payloads=payloads)})


def _error(row: Row, *, payloads: bool) -> dict[str, Any]:
    hidden = not payloads and row["error"] is not None
    return {"error": row["error"] if payloads else None, "error_hidden": hidden}


def _progress(note: Row | None) -> Progress | None:
    if note is None or (note["progress"] is None and not note["message"]):
        return None
    return Progress(share=note["progress"], message=note["message"], written_at=note["written_at"])


def _seconds(begin: datetime | None, end: datetime | None) -> float | None:
    return (end - begin).total_seconds() if begin is not None and end is not None else None
