"""Compares the ledger with the schedules of recurring jobs: every instant has its verdict (V1)."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime, timedelta
from typing import Any, Final

from noonmark.core.schedules.schedule import TICK
from noonmark.store.verify.reader import LedgerReader
from noonmark.verify import History
from noonmark.verify.case import EDGE
from noonmark.verify.history import Job, Run, Version

JOBS_OF_A_STEP: Final = 10
"""A job has up to 86,400 instants a day."""


def read_instants(
    reader: LedgerReader, jobs: list[tuple[Any, ...]], since: datetime, until: datetime, now: datetime
) -> History:
    """Read what must be known to judge the instants of some jobs in a window of at most a day.

    Args:
        reader: in a snapshot.
        jobs: as `recurring_jobs` returned them.
        since: the first instant.
        until: the first instant after the window.
        now: by the database's clock.
    """
    waits_for = {row[0]: row[-1] for row in jobs}
    versions = [
        version
        for row in reader.schedules(list(waits_for), since)
        for version in _clipped(row, since, until, waits_for[row[0]])
    ]
    # A job without a version here would count as due on arrival.
    judged = {version.job for version in versions}
    return History(
        judged_at=now,
        jobs=[Job(*row[:-1]) for row in jobs if row[0] in judged],
        versions=versions,
        runs=[_run(row) for row in reader.instants(sorted(judged), since, until)] if judged else [],
    )


def _clipped(
    row: tuple[Any, ...], since: datetime, until: datetime, waits_for: datetime | None
) -> Iterator[Version]:
    """Yield a version, valid only in the window and before the instant that its job waits for.

    The rule leaves out what is within `EDGE` of an edit; the borders of the window are no edits.
    """
    job, number, schedule, valid_since, valid_until = row
    spare = EDGE if number > 1 else timedelta(0)
    begin = max(valid_since, since - TICK - spare)
    ends = [until + EDGE - TICK]
    ends += [waits_for + EDGE - TICK] if waits_for is not None else []
    ends += [valid_until] if valid_until is not None else []
    if begin < min(ends):
        yield Version(job, number, schedule, begin, min(ends), None)


def _run(row: tuple[Any, ...]) -> Run:
    """Return a run with what the rule compares."""
    run, job, first, last, state, reason = row
    return Run(run, job, 0, "", first, last, "", "", state, reason, 0, 0, 0, None, None, None)
