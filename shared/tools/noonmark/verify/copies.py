"""Facts that are written in more than one place must agree: S18 and S19.

A column that only one row of the ledger contains is not judged here; `recorded` compares outcomes.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Any, Final
from urllib.parse import quote

from noonmark.core.states import BY_TARGET, BY_TASKS, Lane, RunState
from noonmark.verify.case import CLOCK_STEP, HOLDING, RECORDING, Case, Violation, Window, offence
from noonmark.verify.history import Attempt, Call, Run, Worker

_LAPSE: Final = timedelta(seconds=60)
"""A start that does not see the end of a lease yet can be dated after it, while COMMIT waits."""
_NO_LEASE: Final = 0
"""The epoch of a run that no worker owns."""
_KEPT: Final = timedelta(hours=23)
"""Rows of former workers are kept for a day after their lease."""
_TICK: Final = timedelta(microseconds=1)
"""The shortest time between two instants of a schedule."""


def copies_agree(case: Case) -> Iterator[Violation]:
    """S18: rows, messages, events and calls repeat what the run says."""
    for row in (*case.history.attempts, *case.history.dead_letters, *(case.history.messages or ())):
        yield from _repeats(case, row, ("job", "scheduled_for"))
    for message in case.history.messages or ():
        run = case.runs.get(message.run)
        if run is not None and message.job_version not in {None, run.version}:
            what = f"{case.title(run)} is of version {run.version}, its message of {message.job_version}"
            yield offence("S18", "copy", what, run, message)
    for planned in case.history.runs:
        yield from _job_agrees(case, planned)
        if planned.last_scheduled_for is not None or planned.instants != 1:
            yield from _range_agrees(case, planned)
        if planned.finished_at is None:
            yield from _slot_agrees(case, planned)
    yield from _shards_exist(case)
    yield from _events_and_calls_agree(case)
    yield from _letters_agree(case)


def _events_and_calls_agree(case: Case) -> Iterator[Violation]:
    for event in case.history.lifecycle:
        yield from _repeats(case, event, ("job", "scheduled_for", "origin", "pool"))
        run = case.runs.get(event.run)
        if run is not None and event.lane not in {None, Lane(run.lane).label}:
            yield offence("S18", "copy", f"{case.title(run)}: its event is of lane {event.lane}", run, event)
    for call in case.history.calls:
        run = case.runs.get(call.run)
        if run is not None and call.scheduled_for == run.scheduled_for and call.key != key_of(run):
            what = f"{case.title(run)} was called with key {call.key} instead of {key_of(run)}"
            yield offence("S18", "copy", what, run, call)


def _job_agrees(case: Case, run: Run) -> Iterator[Violation]:
    """A run repeats the shard of its job, and names a version of it and a release of the zone data."""
    job = case.jobs.get(run.job)
    if job is None:
        yield offence("S18", "job_gone", f"{case.title(run)}: its job {run.job} does not exist", run)
        return
    if (run.job, run.version) not in case.versions:
        what = f"{case.title(run)} is of version {run.version}, which its job does not have"
        yield offence("S18", "copy", what, run)
    if not run.is_task and run.shard != job.shard and None not in {run.shard, job.shard}:
        what = f"{case.title(run)} is in shard {run.shard}, its job in {job.shard}"
        yield offence("S18", "copy", what, run, job)
    releases = case.history.zone_releases
    if releases is not None and run.zone_data is not None and run.zone_data not in releases:
        what = f"{case.title(run)} was planned with zone data {run.zone_data}, which does not exist"
        yield offence("S18", "copy", what, run)


def _shards_exist(case: Case) -> Iterator[Violation]:
    shards = case.history.shards
    if shards is None:
        return
    for job in case.history.jobs:
        if job.shard is not None and not 0 <= job.shard < shards:
            yield offence("S18", "copy", f"job {job.name} is in shard {job.shard} of {shards}", job)
    for run in case.history.runs:
        # All others have the shard of their job.
        if run.is_task and run.shard is not None and not 0 <= run.shard < shards:
            yield offence("S18", "copy", f"{case.title(run)} is in shard {run.shard} of {shards}", run)


def _range_agrees(case: Case, run: Run) -> Iterator[Violation]:
    """Only a summary of skipped instants stands for more than one: as many as its range can have."""
    if run.last_scheduled_for is None:
        if run.instants != 1:
            yield offence("S18", "range", f"{case.title(run)} stands for {run.instants} instants", run)
        return
    length = run.last_scheduled_for - run.scheduled_for
    fits = run.instants == 1 if not length else 2 <= run.instants <= length / _TICK + 1
    if run.state != RunState.SKIPPED:
        yield offence("S18", "range", f"{case.title(run)} is {run.state}, and has a range", run)
    elif not fits:
        what = f"{case.title(run)} stands for {run.instants} instants up to {run.last_scheduled_for}"
        yield offence("S18", "range", what, run)


def _slot_agrees(case: Case, run: Run) -> Iterator[Violation]:
    """Of a run that has ended, nothing reads it any more."""
    holders = case.history.slot_holders
    if holders is None or run.holds_slot is None:
        return
    if run.holds_slot and run.id not in holders:
        what = f"{case.title(run)} holds the slot of its job, which is not taken"
        yield offence("S18", "slot", what, run)
    if not run.holds_slot and run.id in holders:
        what = f"{case.title(run)} holds no slot, and that of its job is taken for it"
        yield offence("S18", "slot", what, run)


def _repeats(case: Case, row: Any, names: tuple[str, ...]) -> Iterator[Violation]:
    run = case.runs.get(row.run)
    said = {name: getattr(row, name, None) for name in names}
    if run is None:
        return
    differ = [name for name, value in said.items() if value is not None and value != getattr(run, name)]
    if differ:
        what = f"{case.title(run)}: a row about it differs in {', '.join(differ)}"
        yield offence("S18", "copy", what, run, row)


def _letters_agree(case: Case) -> Iterator[Violation]:
    """A dead letter repeats its event; what it says of attempts and errors is compared with the run (S17)."""
    for letter in case.history.dead_letters:
        run = case.runs.get(letter.run)
        if run is None or run.state != RunState.DEAD:
            continue
        # Both are written in one transaction.
        age = letter.died_at - run.finished_at if letter.died_at and run.finished_at else timedelta(0)
        if not -CLOCK_STEP <= age <= RECORDING:
            order = "older" if age < RECORDING else "much newer"
            what = f"{case.title(run)}: its dead letter is {order} than its end"
            yield offence("S18", "copy", what, run, letter)
        for death in case.deaths.get(run.id, ()):
            said = (death.kind, death.name, death.fingerprint)
            if death.fence == run.fence and said != (letter.kind, letter.name, letter.fingerprint):
                what = f"{case.title(run)}: its dead letter and the event of it differ"
                yield offence("S18", "copy", what, letter, death)


def key_of(run: Run) -> str:
    """The idempotency key that targets receive; that of a task's run does not change with its generation."""
    instant = run.scheduled_for.astimezone(UTC).isoformat(timespec="microseconds").removesuffix("+00:00")
    request = run.request.rpartition("/")[0] if run.origin == "task" else run.request
    return f"{run.job}/{instant}Z/{run.origin}/{quote(request, safe='-._~:')}"


def attempts_have_their_worker(case: Case) -> Iterator[Violation]:
    """S19: an attempt names the worker that made it, and that worker had its lease then."""
    for run in case.history.runs:
        rows = case.attempts.get(run.id, ())
        windows = {window.fence: window for window in case.windows[run.id]}
        yield from _owner_fits(case, run)
        for row in rows:
            yield from _had_its_lease(case, run, row.worker, windows.get(row.fence), row)
            if row.fence == run.fence and None not in {row.worker, run.owner} and row.worker != run.owner:
                what = f"{case.title(run)}: its owner is {run.owner}, its last attempt is of {row.worker}"
                yield offence("S19", "worker", what, run, row)
            yield from _called_by_it(case, run, row.worker, row.fence)
        yield from _had_its_lease(case, run, run.owner, windows.get(run.fence), None)
        yield from _called_by_it(case, run, run.owner, run.fence)


def _owner_fits(case: Case, run: Run) -> Iterator[Violation]:
    """The owner of a run that was started: a worker under its epoch, the target that reports later, tasks."""
    if run.owner is None and run.state in HOLDING:
        yield offence("S19", "worker", f"{case.title(run)} is {run.state}, and names no worker", run)
    if run.owner is not None and run.started_at is None:
        yield offence("S19", "worker", f"{case.title(run)} never started, and names worker {run.owner}", run)
    by_worker = run.owner not in {BY_TARGET, BY_TASKS}
    if (run.owner is None) != (run.epoch is None) or by_worker == (run.epoch == _NO_LEASE):
        what = f"{case.title(run)} names worker {run.owner} and the epoch {run.epoch}"
        yield offence("S19", "worker", what, run)
    elif run.owner is not None and run.pool is not None and (run.owner == BY_TASKS) != run.is_workflow:
        yield offence("S19", "worker", f"{case.title(run)} of pool {run.pool} names worker {run.owner}", run)
    elif run.owner == BY_TARGET:
        yield from _target_reports(case, run, None)


def _target_reports(case: Case, run: Run, row: Attempt | None) -> Iterator[Violation]:
    # The version of a workflow does not say what its tasks do.
    version = None if run.is_task else case.version(run)
    if version is not None and version.reports_later is False:
        what = f"{case.title(run)} names no worker but its target, which does not report outcomes"
        yield offence("S19", "worker", what, run, row)


def _had_its_lease(
    case: Case, run: Run, worker: int | None, window: Window | None, row: Attempt | None
) -> Iterator[Violation]:
    if worker is None or (worker == BY_TASKS and row is None):
        return
    if worker == BY_TARGET:
        if row is not None and run.owner != BY_TARGET:
            yield from _target_reports(case, run, row)
        return
    found = case.workers.get(worker)
    if found is None:
        # Rows of former workers are pruned, but an id that was never assigned has no excuse.
        newest = max(case.history.newest_worker or 0, *case.workers, 0)
        recent = window is not None and case.history.judged_at - window.since < _KEPT
        if recent or not 0 < worker <= newest:
            what = f"{case.title(run)} names worker {worker}, which never existed"
            yield offence("S19", "worker", what, run, row)
        return
    if window is not None and case.history.clocks_agree and not _live(found, window.since):
        what = f"{case.title(run)} started at {window.since} on worker {worker}, which had no lease then"
        yield offence("S19", "worker", what, run, row, found)
    if run.pool is not None and found.pool != run.pool:
        what = f"{case.title(run)} is of pool {run.pool}, its worker {worker} of {found.pool}"
        yield offence("S19", "worker", what, run, row, found)
    if row is None and run.epoch is not None and run.epoch > found.epoch:
        what = f"{case.title(run)} is of epoch {run.epoch}, its worker {worker} of {found.epoch}"
        yield offence("S19", "worker", what, run, found)


def _called_by_it(case: Case, run: Run, worker: int | None, fence: int) -> Iterator[Violation]:
    """A handler that runs in a worker's own process shows which worker it was."""
    found = case.workers.get(worker) if worker is not None else None
    for call in case.calls.get(run.id, ()):
        if found is None or call.fence != fence or call.pid == found.pid:
            continue
        if others := [one for one in case.history.workers or () if _made(one, call)]:
            what = f"{case.title(run)}: fence {fence} was called by worker {others[0].id}, not by {worker}"
            yield offence("S19", "worker", what, run, call, *others)


def _made(worker: Worker, call: Call) -> bool:
    return worker.pid == call.pid and _live(worker, call.at)


def _live(worker: Worker, at: datetime) -> bool:
    return worker.since - at <= CLOCK_STEP and (worker.until is None or at - worker.until <= _LAPSE)
