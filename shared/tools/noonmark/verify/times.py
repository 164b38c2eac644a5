"""The times that the ledger recorded are in order, and have passed: S16.

Times are subtracted from each other, never moved: a row can hold the first or the last instant there is.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime, timedelta
from typing import Any, Final

from noonmark.core.instants import format_instant
from noonmark.core.states import RunState
from noonmark.core.transitions import VERDICTS
from noonmark.verify.case import CLOCK_STEP, HOLDING, RECORDING, Case, Violation, offence
from noonmark.verify.history import Attempt, Run

_AHEAD: Final = timedelta(minutes=1)
"""A snapshot is a little newer than the time at which it is judged, and the clocks of two servers differ."""


def times_go_forwards(case: Case) -> Iterator[Violation]:
    """S16: due, queued, started, finished, in this order and before now, by the database's clock."""
    now = case.history.judged_at + _AHEAD
    for run in case.history.runs:
        named = (run.queued_at, run.started_at, run.finished_at, run.last_scheduled_for)
        if _is_future(now, *named):
            yield _future(case.title(run), run, named)
        else:
            yield from _run_is_in_order(case, run)
        yield from _run_has_its_times(case, run)
        if run.id in case.calls:
            yield from _calls_are_within_their_attempts(case, run)
    for attempt in case.history.attempts:
        if attempt.finished_at > now:
            yield _future(f"an attempt of {case.subject(attempt.run)}", attempt, (attempt.finished_at,))
        else:
            yield from _attempt_is_in_order(case, attempt)
    yield from _others_have_passed(case, now)


def _run_is_in_order(case: Case, run: Run) -> Iterator[Violation]:
    if run.started_at and run.finished_at and run.started_at - run.finished_at > CLOCK_STEP:
        what = f"{case.title(run)} finished at {format_instant(run.finished_at)},"
        what += f" before its start at {format_instant(run.started_at)}"
        yield offence("S16", "backwards", what, run)
    # A run that was queued again keeps the start of its last attempt.
    current = run.state in HOLDING or run.state == RunState.RETRYING
    if current and run.queued_at and run.started_at and run.queued_at - run.started_at > CLOCK_STEP:
        what = f"{case.title(run)} started at {format_instant(run.started_at)},"
        what += f" before it was queued at {format_instant(run.queued_at)}"
        yield offence("S16", "backwards", what, run)
    if run.started_at is not None and run.started_at < run.scheduled_for:
        return  # S7 reports it
    # An end before the start was compared above.
    ended = run.finished_at if run.started_at is None else None
    for at, did in ((run.queued_at, "queued"), (ended, "finished")):
        if at is not None and run.scheduled_for - at > CLOCK_STEP:
            what = f"{case.title(run)} was {did} at {format_instant(at)}, before its instant"
            yield offence("S16", "backwards", what, run)


def _run_has_its_times(case: Case, run: Run) -> Iterator[Violation]:
    if (run.finished_at is not None) != (RunState(run.state) in VERDICTS):
        end = f"an end at {format_instant(run.finished_at)}" if run.finished_at else "no end"
        yield offence("S16", "undated", f"{case.title(run)} is {run.state}, and has {end}", run)
    if run.started_at is None and run.state in HOLDING - {RunState.CANCELLING}:
        yield offence("S16", "undated", f"{case.title(run)} is {run.state}, and has no start", run)
    if run.started_at is not None and run.queued_at is None:
        yield offence("S16", "undated", f"{case.title(run)} has a start, and was never queued", run)


def _attempt_is_in_order(case: Case, attempt: Attempt) -> Iterator[Violation]:
    if attempt.started_at is not None and attempt.started_at - attempt.finished_at > CLOCK_STEP:
        what = f"{case.subject(attempt.run)}: the attempt of fence {attempt.fence} finished before its start"
        yield offence("S16", "backwards", what, attempt)
    ended = case.runs.get(attempt.run)
    # Written after the run in one transaction; the row of a loss belongs to an earlier fence.
    if ended is None or attempt.fence != ended.fence or ended.finished_at is None:
        return
    if ended.finished_at - attempt.finished_at > CLOCK_STEP:
        what = f"{case.title(ended)} ended at {format_instant(ended.finished_at)}, its attempt before that"
        yield offence("S16", "backwards", what, ended, attempt)
    if attempt.finished_at - ended.finished_at > RECORDING:
        what = (
            f"{case.title(ended)} ended at {format_instant(ended.finished_at)}, its attempt long after that"
        )
        yield offence("S16", "backwards", what, ended, attempt)


def _others_have_passed(case: Case, now: datetime) -> Iterator[Violation]:
    """A time in the future hides what its row is compared for: a pause, an edit, a lost worker."""
    for job in case.history.jobs:
        if max(job.created_at, job.changed_at) > now:
            yield _future(f"job {job.name}", job, (job.created_at, job.changed_at))
    for version in case.history.versions:
        if version.until is not None and version.until > now:
            yield _future(f"version {version.version} of job {version.job}", version, (version.until,))
    for pause in case.history.pauses or ():
        if pause.since > now:
            yield _future(f"the pause of job {pause.job}", pause, (pause.since,))
    if not case.history.clocks_agree:
        return  # workers are registered by the machine's clock
    for worker in case.history.workers or ():
        named = (worker.since, worker.until, worker.beat)
        if _is_future(now, *named):
            yield _future(f"worker {worker.id}", worker, named)


def _is_future(
    now: datetime,
    one: datetime | None,
    two: datetime | None,
    three: datetime | None,
    four: datetime | None = None,
) -> bool:
    """Whether one of the times is later than now. Written out, because it is asked for every run."""
    return (
        (one is not None and one > now)
        or (two is not None and two > now)
        or (three is not None and three > now)
        or (four is not None and four > now)
    )


def _future(what: str, row: Any, named: tuple[datetime | None, ...]) -> Violation:
    latest = max(at for at in named if at is not None)
    return offence("S16", "future", f"{what} has a time in the future: {format_instant(latest)}", row)


def _calls_are_within_their_attempts(case: Case, run: Run) -> Iterator[Violation]:
    """The clocks of targets may differ from the database's by as much as a clock may step."""
    windows = {window.fence: window for window in case.windows[run.id]}
    for call in case.calls.get(run.id, ()):
        window = windows.get(call.fence)
        if window is None or not case.history.clocks_agree:
            continue
        # Nothing can prevent a process that was stopped from making its call when it continues.
        excused = case.history.unreachable and case.outcome(run.id, call.fence) is not None
        late = call.at > window.until + CLOCK_STEP and not excused
        if late or call.at < window.since - CLOCK_STEP:
            what = f"{case.title(run)} was called at {call.at}, outside of its attempt of fence {call.fence}"
            yield offence("S16", "outside", what, run, call, window)
