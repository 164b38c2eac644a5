"""Turns workflow runs, with the runs of their tasks, into histories that the rules of workflows can judge."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import datetime
from typing import Any
from uuid import UUID

import orjson

from noonmark.core.workflows.stored import definition_of
from noonmark.store.verify.reader import LedgerReader, Span
from noonmark.verify import History
from noonmark.verify.flows import read_key
from noonmark.verify.history import Graph, Job, OpenState, Run

Version = tuple[str, int]
"""A job and its version."""


def parts(reader: LedgerReader, runs: Sequence[Run], most: int) -> list[list[Run]]:
    """Divide workflow runs, so that each part has about `most` runs of tasks at most, or is one workflow run.

    A workflow run that was queued again may have runs of each of its tasks once more.
    """
    counts = reader.task_counts(sorted({(run.job, run.version) for run in runs})) if runs else {}
    found: list[list[Run]] = []
    left = 0
    for run in runs:
        rows = 1 + counts.get((run.job, run.version), 0) * max(1, run.fence)
        if not found or rows > left:
            found.append([])
            left = most
        found[-1].append(run)
        left -= rows
    return found


def read_workflows(reader: LedgerReader, flows: Sequence[Run], span: Span, now: datetime) -> History:
    """Read some workflow runs again, with all that belongs to them, in one snapshot."""
    runs = reader.workflow_runs(Run, span, [run.id for run in flows])
    jobs = sorted({run.job for run in runs})
    graphs = _graphs(reader.graphs(sorted({(run.job, run.version) for run in runs if run.is_workflow})))
    read = {version: graph.results_read() for version, graph in graphs.items()}
    wanted = [
        run
        for run in runs
        if run.is_task
        and run.finished_at is not None
        and (key := read_key(run)) is not None
        and key.task in read.get((run.job, run.version), ())
    ]
    results = (
        reader.task_results([(run.job, run.scheduled_for, run.request) for run in wanted]) if wanted else {}
    )
    return History(
        judged_at=now,
        jobs=[Job(*row[:-1]) for row in reader.jobs(jobs)],
        runs=runs,
        graphs=graphs,
        open_states=reader.open_workflows(OpenState, [run.id for run in runs if run.is_workflow]),
        reported=reader.workflow_timers(jobs, [run.id for run in runs]),
        results={run.id: results[run.request] for run in wanted if run.request in results},
    )


def read_orphans(reader: LedgerReader, runs: Sequence[Run], span: Span, now: datetime) -> History:
    """Read the runs of tasks whose workflow run does not exist."""
    owners = {run.id: key.workflow for run in runs if (key := read_key(run)) is not None}
    gone = (
        reader.missing_runs(span, sorted({one for one in owners.values() if _is_id(one)}))
        if owners
        else set()
    )
    found = [
        run for run in runs if (owner := owners.get(run.id)) is None or owner in gone or not _is_id(owner)
    ]
    jobs = reader.jobs(sorted({run.job for run in found})) if found else []
    return History(judged_at=now, jobs=[Job(*row[:-1]) for row in jobs], runs=found)


def _graphs(rows: Sequence[tuple[Any, ...]]) -> dict[Version, Graph]:
    """Return the graphs that can be read; a version without one is a finding."""
    by_version: dict[Version, list[tuple[Any, ...]]] = {}
    for row in rows:
        by_version.setdefault((str(row[0]), row[1]), []).append(row)
    return {version: graph for version, tasks in by_version.items() for graph in _graph(tasks)}


def _graph(rows: Sequence[tuple[Any, ...]]) -> Iterator[Graph]:
    deadline = orjson.loads(rows[0][5] or "null")
    try:
        definition = definition_of([(row[3], orjson.loads(row[4])) for row in rows])
    except ValueError:
        return
    if [row[2] for row in rows] == list(range(len(rows))):
        yield Graph(definition, deadline)


def _is_id(text: str) -> bool:
    try:
        return str(UUID(text)) == text
    except ValueError:
        return False
