"""What must be reached within the bound L after the last fault (V1 to V8); what tests expect (T1 to T3)."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Iterator
from datetime import datetime, timedelta
from typing import Final

from noonmark.core.states import RunState
from noonmark.verify.case import Case, Violation, offence
from noonmark.verify.history import Run

OUTBOX_SECONDS: Final = 2.0
POISON_DELAY: Final = timedelta(seconds=5)
DRAIN_SHARE: Final = 0.8
CLAIM_P99_MS: Final = 100.0
_WORK: Final = frozenset({"missing jobs", "timers", "unfinished runs"})
"""Of `History.restless`, what is work; the rest is queues and bookkeeping."""

_LONGEST_WAIT: Final = timedelta(days=37_000)
"""More than the longest delay of a retry or a snooze, which is a century."""

_KNOWN_ENDINGS: Final = frozenset({"failed", "timed_out", "rejected", "snoozed"})
"""Outcomes after which an attempt can have no unknown effect any more."""


def no_instant_is_silent(case: Case) -> Iterator[Violation]:
    """V1: every planned instant has run, or was skipped for a reason that is recorded."""
    for job in case.history.jobs:
        runs = sorted(
            (r.scheduled_for, r.last_scheduled_for or r.scheduled_for) for r in case.runs_of[job.id]
        )
        begins = [begin for begin, _ in runs]
        for at in case.planned(job):
            place = bisect_right(begins, at) - 1
            if place < 0 or not any(end >= at for _, end in runs[max(0, place - 3) : place + 1]):
                what = f"{job.name}: the ledger has no row for {at.isoformat()}"
                yield offence("V1", "lost", what, job)
        if not runs and _on_arrival(case, job.id) and job.created_at <= case.history.judged_at - case.bound:
            yield offence("V1", "lost", f"{job.name}: due on arrival, but the ledger has no row", job)
    for run in case.history.runs:
        if run.state == RunState.SKIPPED and not run.reason:
            yield offence("V1", "no_reason", f"{case.title(run)} was skipped for no reason", run)


def _on_arrival(case: Case, job: str) -> bool:
    if case.name(job) in case.expected.instants:
        return case.expected.instants[case.name(job)] is None
    return all(version.schedule is None for version in case.versions_of.get(job, ()))


def nothing_is_stuck(case: Case) -> Iterator[Violation]:
    """V2: nothing is queued, running or waiting for longer than L without a lasting cause."""
    late = case.history.judged_at - case.bound
    yield from _restless(case, "V2", lambda what: what in _WORK)
    for run in case.history.runs:
        if run.finished_at is not None:
            continue
        since = max(at for at in (run.queued_at, run.started_at, run.due) if at is not None)
        # A workflow run goes on when its tasks end; those that are stuck are reported themselves.
        for task in case.tasks_of.get(run.id, ()):
            since = max(since, task.finished_at or case.history.judged_at)
        job = case.jobs.get(run.job)
        due = case.history.timers.get(run.id)
        if run.state == RunState.RETRYING and due is not None and due - since <= _LONGEST_WAIT:
            since = due
        if run.state == RunState.WAITING and (
            run.reason == "undeliverable" or (job is not None and job.state == "paused")
        ):
            continue
        if since <= late:
            yield offence("V2", "unfinished", f"{case.title(run)} is {run.state} ({run.reason})", run)


def queues_are_empty(case: Case) -> Iterator[Violation]:
    """V3: the outbox is young, every offset is committed, and bookkeeping of finished runs is gone."""
    yield from _restless(case, "V3", lambda what: what not in _WORK)
    if case.history.outbox_seconds > OUTBOX_SECONDS:
        seconds = case.history.outbox_seconds
        yield Violation("V3", "left_over", f"the oldest row of the outbox is {seconds:.1f} s old", [])
    for table, rows in case.history.left_over.items():
        if rows:
            yield Violation("V3", "left_over", f"{rows} rows in {table}", [])
    for lag in case.history.unpassed:
        what = f"{lag.topic}[{lag.partition}]: committed {lag.committed} of {lag.end}"
        yield offence("V3", "left_over", what, lag)


def _restless(case: Case, invariant: str, belongs: Callable[[str], bool]) -> Iterator[Violation]:
    """What had not come to rest in time, even if it has come to rest since."""
    for what, number in case.history.restless.items():
        if belongs(what):
            yield Violation(invariant, "restless", f"did not come to rest in time: {number} {what}", [])


def shards_have_owners(case: Case) -> Iterator[Violation]:
    """V4: every shard and slice has one owner, which changes only with a fault."""
    for owners in case.history.owners or ():
        if owners.owned != owners.shards:
            what = f"{owners.role}: {owners.owned} of {owners.shards} shards have an owner"
            yield offence("V4", "no_owner", what, owners)
        if owners.idle_changes:
            what = f"{owners.role}: {owners.idle_changes} changes of owner without a fault"
            yield offence("V4", "owner_changed", what, owners)


def poison_is_isolated(case: Case) -> Iterator[Violation]:
    """V5: bad input delays nothing else by more than 5 s."""
    for span in case.history.poisoned or ():
        for run in _with_first_start(case):
            good = case.name(run.job) not in case.expected.bad
            if not good or not span.since <= run.scheduled_for <= span.until or _waits_for_its_own(case, run):
                continue
            windows = case.windows[run.id]
            begun = windows[0].since if windows else run.finished_at or case.history.judged_at
            if begun - run.scheduled_for > POISON_DELAY:
                what = f"{case.title(run)} began {begun - run.scheduled_for} late during {span.what}"
                yield offence("V5", "delayed", what, run, span)


def _with_first_start(case: Case) -> Iterator[Run]:
    """Runs that the schedule requested; of a redriven workflow run, only the last start is recorded."""
    return (run for run in case.by_schedule() if not (run.is_workflow and run.fence > 1))


def _waits_for_its_own(case: Case, run: Run) -> bool:
    version = case.version(run)
    return run.state == RunState.SKIPPED or (version is not None and version.overlap != "allow")


def backlogs_drain(case: Case) -> Iterator[Violation]:
    """V6: a backlog drains at 80 % of the steady rate or more."""
    for drain in case.history.drains or ():
        if drain.rate < DRAIN_SHARE * drain.steady:
            what = f"{drain.what}: {drain.rate:.0f} runs/s, the steady rate is {drain.steady:.0f}"
            yield offence("V6", "slow_drain", what, drain)


def processes_recover(case: Case) -> Iterator[Violation]:
    """V7: no process exits or hangs because something around it broke."""
    for ended in case.history.exits or ():
        yield offence("V7", "ended", f"{ended.name} {ended.how}", ended)


def claims_stay_fast(case: Case) -> Iterator[Violation]:
    """V8: claims are fast next to a session that is idle in transaction."""
    measured = case.history.claim_p99_ms
    if measured is not None and measured > CLAIM_P99_MS:
        yield Violation("V8", "slow_claim", f"claim p99 is {measured:.0f} ms", [])


def runs_end_as_asked(case: Case) -> Iterator[Violation]:
    """T1: each run ended in a state that its submission allows."""
    for run in case.history.runs:
        allowed = None if run.is_task else case.expected.ends.get(case.name(run.job))
        if allowed is not None and run.finished_at is not None and run.state not in allowed:
            what = f"{case.title(run)} ended as {run.state} ({run.reason})"
            yield offence("T1", "wrong_end", what, run)
    for job in case.history.jobs:
        if case.expected.instants and (job.namespace, job.name) not in case.expected.instants:
            yield offence("T1", "extra", f"job {job.name!r} was not submitted", job)


def targets_and_ledger_agree(case: Case) -> Iterator[Violation]:
    """T2: the target saw every success under its fence, and no run that is not in the ledger."""
    for run in case.history.runs:
        unseen = run.is_workflow or case.name(run.job) in case.expected.unseen
        if run.state != RunState.SUCCEEDED or unseen or case.partway:
            continue
        if all(call.fence != run.fence for call in case.calls.get(run.id, ())):
            what = f"{case.title(run)} succeeded, but the target saw no call of fence {run.fence}"
            yield offence("T2", "lost", what, run)
    for run_id in case.calls.keys() - case.runs.keys():
        what = f"the target was called for run {run_id}, which is not in the ledger"
        yield offence("T2", "extra", what, case.calls[run_id][0])


def delivery_is_kept(case: Case) -> Iterator[Violation]:
    """T3: an at_most_once run starts once; an exactly_once run has its row once, with the outcome."""
    rows: dict[str, int] = {}
    for write in case.history.writes or ():
        rows[write.run] = rows.get(write.run, 0) + 1
    for run in case.history.runs:
        version = case.version(run)
        if version is None:
            continue
        if version.delivery == "at_most_once":
            unknown = [
                call.fence
                for call in case.calls.get(run.id, ())
                if call.fence < run.fence and case.outcome(run.id, call.fence) not in _KNOWN_ENDINGS
            ]
            later = [call for call in case.calls.get(run.id, ()) if unknown and call.fence > min(unknown)]
            if later:
                what = f"{case.title(run)}, at_most_once, was started again after fence {min(unknown)}"
                yield offence("T3", "twice", what, run, *later)
        if version.delivery == "exactly_once" and case.history.writes is not None and not case.partway:
            wanted = int(run.state == RunState.SUCCEEDED)
            if rows.get(run.id, 0) != wanted:
                what = f"{case.title(run)}, exactly_once, is {run.state} and left {rows.get(run.id, 0)} rows"
                yield offence("T3", "rows", what, run)


def latenesses(case: Case) -> list[float]:
    """Seconds from instant to first start of scheduled runs, in ascending order."""
    firsts = ((run, case.windows[run.id][0]) for run in _with_first_start(case) if case.windows[run.id])
    return sorted(_seconds(run.scheduled_for, window.since) for run, window in firsts)


def _seconds(since: datetime, until: datetime) -> float:
    return (until - since).total_seconds()
