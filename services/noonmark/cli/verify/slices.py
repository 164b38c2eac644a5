"""Turns the rows of one step into a history that the rules can judge."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

from noonmark.core.retry import RetryPolicy
from noonmark.core.states import BY_TARGET, RunState
from noonmark.store.verify.reader import LedgerReader, Span
from noonmark.verify import History
from noonmark.verify.history import Attempt, DeadLetter, Job, LifecycleRecord, Pause, Run, Version, Worker


def read_slice(reader: LedgerReader, runs: list[Run], span: Span, now: datetime) -> History:
    """Read what belongs to runs, in the snapshot in which they were read."""
    ids = [run.id for run in runs]
    jobs = reader.jobs(list({run.job for run in runs}))
    attempts = reader.attempts(Attempt, ids)
    named = {run.owner or 0 for run in runs} | {attempt.worker or 0 for attempt in attempts}
    unfinished = [run.id for run in runs if run.finished_at is None]
    shards, zone_releases = reader.install_facts()
    return History(
        judged_at=now,
        jobs=[Job(*row[:-1]) for row in jobs],
        versions=_versions(reader, runs, {row[0]: row[4] for row in jobs}, now),
        runs=runs,
        attempts=attempts,
        dead_letters=reader.dead_letters(DeadLetter, ids),
        # Earlier pauses are not recorded.
        pauses=[Pause(row[0], row[-1], None) for row in jobs if row[-1] is not None],
        messages=None,
        workers=reader.workers(Worker, sorted(named)),
        newest_worker=reader.newest_worker(),
        shards=shards,
        zone_releases=zone_releases,
        slot_holders=reader.slot_holders(span, unfinished) if unfinished else set(),
    )


def read_repeated(reader: LedgerReader, runs: list[Run], span: Span, now: datetime) -> History:
    """Read runs that share their key with another one.

    The other run has the key and therefore all that the rule compares, so it is a copy under its own id.
    """
    pairs = reader.repeated_runs(span, [run.id for run in runs])
    by_id = {run.id: run for run in runs}
    repeated = {one: by_id[one] for one, _ in pairs}
    copies = {other: by_id[one]._replace(id=other) for one, other in pairs}
    found = list((copies | repeated).values())
    jobs = reader.jobs(list({run.job for run in found}))
    return History(judged_at=now, jobs=[Job(*row[:-1]) for row in jobs], runs=sorted(found))


def read_stuck(
    reader: LedgerReader, runs: list[Run], span: Span, now: datetime, settled: datetime
) -> History:
    """Read what belongs to unfinished runs that nothing will continue."""
    ids = [run.id for run in runs]
    abandoned = reader.abandoned(span, ids, settled) if ids else set()
    found = [run for run in runs if run.id in abandoned]
    return History(
        judged_at=now, jobs=[Job(*row[:-1]) for row in reader.jobs([run.job for run in found])], runs=found
    )


def read_unsent(
    reader: LedgerReader,
    runs: list[Run],
    span: Span,
    now: datetime,
    passed: Mapping[tuple[str, int], datetime],
) -> History:
    """Read queued runs whose message is gone. Earlier attempts had theirs, or they would not have started."""
    ids = [run.id for run in runs if run.state == RunState.QUEUED]
    lost = reader.lost_messages(span, ids, passed) if ids and passed else set()
    found = [run._replace(started_at=None) for run in runs if run.id in lost]
    return History(
        judged_at=now, jobs=[Job(*row[:-1]) for row in reader.jobs([run.job for run in found])], runs=found
    )


def read_gone(
    reader: LedgerReader, outcomes: Sequence[LifecycleRecord], span: Span, now: datetime
) -> History:
    """Read which of the announced outcomes are about runs that the ledger does not have."""
    gone = reader.missing_runs(span, sorted({one.run for one in outcomes})) if outcomes else set()
    found = [one for one in outcomes if one.run in gone]
    jobs = reader.jobs(sorted({one.job for one in found if one.job is not None})) if found else []
    return History(judged_at=now, jobs=[Job(*row[:-1]) for row in jobs], lifecycle=found)


def read_queues(reader: LedgerReader, now: datetime, settled: datetime) -> History:
    """Read what must be young or empty. An outbox row is old if it was written before `settled`."""
    queues, strays = reader.queues(settled), reader.strays(settled)
    old = queues.outbox_seconds > (now - settled).total_seconds()
    return History(
        judged_at=now,
        outbox_seconds=queues.outbox_seconds if old else 0.0,
        left_over={
            "slots": queues.slots,
            "limit_slots": queues.limit_slots,
            "waits": queues.waits,
            "outbox, refused by Kafka": queues.refused,
            "outbox, in a slice or lane that does not exist": strays.misplaced_messages,
            "outbox, dated in the future": strays.future_messages,
            "timers of runs that have ended or do not exist": strays.ended_timers,
            "timers, in a shard or lane or of a kind that does not exist": strays.misplaced_timers,
        },
        workers=reader.future_workers(Worker),
    )


def _versions(
    reader: LedgerReader, runs: list[Run], newest: Mapping[str, int], now: datetime
) -> list[Version]:
    """Return the versions that runs name and that exist.

    The newest version of a job is in its row. Others are looked up, as are the budgets of runs that used more
    than one attempt, and whether the target of a run without a worker may report its outcome.
    """
    current = {(run.job, run.version) for run in runs if run.version == newest.get(run.job)}
    used = sorted(
        {
            (run.job, run.version)
            for run in runs
            if run.attempt > 1 or run.owner == BY_TARGET or (run.job, run.version) not in current
        }
    )
    rows = reader.versions(used) if used else []
    stored = {
        (job, version): Version(
            job, version, None, now, None, _max_attempts(retry), reports_later=reports_later
        )
        for job, version, retry, reports_later in rows
    }
    known = {key: Version(*key, None, now, None, None) for key in current} | stored
    return [known[key] for key in sorted(known)]


def _max_attempts(stored: dict[str, Any] | None) -> int:
    """Return what a stored retry policy allows, the default if the job has none."""
    return RetryPolicy.of(stored or {}).max_attempts
