"""Turns the rows that the queries found into alerts, each with a sentence that says what is wrong. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any
from uuid import UUID

from noonmark.core.instants import format_instant
from noonmark.core.monitoring.alerts import AlertKind, FoundAlert, fingerprint_of
from noonmark.core.monitoring.recent import Rates, percentile
from noonmark.store.alerts.queries import (
    DeadCause,
    FailingJob,
    LateByRule,
    LateGroup,
    LateTimer,
    LongRun,
    Silence,
    StuckRuns,
)

_LONGEST_ERROR = 300


def runaways(rows: Iterable[LongRun], rates: Mapping[UUID, Rates]) -> list[FoundAlert]:
    """Return one alert per job, about its longest run."""
    found: dict[UUID, FoundAlert] = {}
    for row in rows:
        if row.job_id in found:
            continue
        found[row.job_id] = FoundAlert(
            AlertKind.RUNAWAY,
            fingerprint_of(AlertKind.RUNAWAY, row.job_id),
            f"A run of {_job(row.name, row.job_id)} has taken {row.elapsed:.0f} s so far,"
            f" {row.elapsed / max(row.usual_seconds, 0.001):.1f} times its usual duration.",
            row.namespace,
            row.job_id,
            row.run_id,
            {
                "job_name": row.name,
                "elapsed_seconds": round(row.elapsed, 3),
                "usual_seconds": round(row.usual_seconds, 3),
                "usual_rests_on_runs": row.runs,
                "last_hour": _rates(rates.get(row.job_id)),
            },
        )
    return list(found.values())


@dataclass(slots=True)
class _Late:
    """The late instants of one job, or of the one-time jobs of a namespace."""

    namespace: str
    job_id: UUID | None
    name: str | None
    since: datetime
    count: int = 0
    counted: bool = True
    run_id: UUID | None = None
    pools: set[str] = field(default_factory=set)
    not_planned: bool = False


def late(
    timers: Iterable[LateTimer], groups: Iterable[LateGroup], by_rule: Iterable[LateByRule]
) -> list[FoundAlert]:
    """Return one alert per recurring job or job with its own limit, and one per namespace for the rest."""
    found: dict[tuple[str, UUID | None], _Late] = {}

    def entry(namespace: str, job_id: UUID | None, name: str | None, since: datetime) -> _Late:
        key = (namespace, job_id)
        if key not in found:
            found[key] = _Late(namespace, job_id, name, since)
        found[key].since = min(found[key].since, since)
        found[key].count += 1
        return found[key]

    for timer in timers:
        one = entry(timer.namespace, timer.job_id if timer.recurring else None, timer.name, timer.since)
        one.pools.add(timer.pool)
        one.not_planned = True
    for group in groups:
        one = entry(group.namespace, group.job_id, group.name, group.since)
        one.pools.update(group.pools)
        one.count += group.runs - 1
        one.run_id = group.run_id
    for job in by_rule:
        if job.since is not None and job.namespace is not None:
            one = entry(job.namespace, job.job_id, job.name, job.since)
            one.pools.add(job.pool or "")
            # For a job with its own limit, the query finds only the oldest instant.
            one.counted = False
            one.run_id = job.run_id
            one.not_planned = job.run_id is None
    return [_late(one) for one in found.values()]


def _late(one: _Late) -> FoundAlert:
    whose = (
        f"of {_job(one.name, one.job_id)}"
        if one.job_id is not None
        else f"of one-time jobs in namespace {one.namespace}"
    )
    how_many = f"{one.count} {'instant' if one.count == 1 else 'instants'}" if one.counted else "Instants"
    verb = "was" if one.counted and one.count == 1 else "were"
    details: dict[str, Any] = {
        "job_name": one.name if one.job_id is not None else None,
        "since": format_instant(one.since),
        "count": one.count if one.counted else None,
        "pools": sorted(one.pools),
        "planned": not one.not_planned,
    }
    return FoundAlert(
        AlertKind.LATE,
        fingerprint_of(AlertKind.LATE, *([one.job_id] if one.job_id else ["once", one.namespace])),
        f"{how_many} {whose} {verb} not started in time; the oldest was due at {format_instant(one.since)}"
        f"{' and no trigger has planned it' if one.not_planned else ''}.",
        one.namespace,
        one.job_id,
        one.run_id,
        details,
    )


def stuck(row: StuckRuns, *, more_than: int, silence: float) -> list[FoundAlert]:
    """Return one alert for the installation, or none."""
    if row.runs <= more_than or row.since is None:
        return []
    return [
        FoundAlert(
            AlertKind.STUCK,
            fingerprint_of(AlertKind.STUCK),
            f"{row.runs} runs are owned by {row.workers} workers that have sent no heartbeat for"
            f" {silence:g} s; check that a trigger is running to requeue them.",
            run_id=row.run_id,
            details={"runs": row.runs, "workers": row.workers, "since": format_instant(row.since)},
        )
    ]


def failing(rows: Iterable[FailingJob], rates: Mapping[UUID, Rates]) -> list[FoundAlert]:
    """Return one alert per job."""
    return [
        FoundAlert(
            AlertKind.FAILING,
            fingerprint_of(AlertKind.FAILING, row.job_id),
            f"The last {row.failures} attempts of {_job(row.name, row.job_id)} failed with the same cause:"
            f" {_short(row.last_error)}",
            row.namespace,
            row.job_id,
            row.run_id,
            {
                "job_name": row.name,
                "failures": row.failures,
                "cause": row.cause,
                "error": _short(row.last_error),
                "failed_at": format_instant(row.failed_at) if row.failed_at else None,
                "last_hour": _rates(rates.get(row.job_id)),
            },
        )
        for row in rows
    ]


def dead(rows: Iterable[DeadCause]) -> list[FoundAlert]:
    """Return one alert per cause and job, unless a later run of the job succeeded."""
    return [_dead(row) for row in rows if row.last_success_at is None or row.last_success_at <= row.died_at]


def _dead(row: DeadCause) -> FoundAlert:
    count = f"{row.letters:,} or more" if row.more else f"{row.letters:,}"
    runs, theirs = ("run", "its") if row.letters == 1 else ("runs", "their")
    whose = (
        _job(row.name, row.job_id)
        if row.job_id is not None
        else f"one-time jobs in namespace {row.namespace}"
    )
    return FoundAlert(
        AlertKind.DEAD,
        fingerprint_of(AlertKind.DEAD, row.namespace, row.job_id or "once", row.fingerprint),
        f"{count} {runs} of {whose} used up {theirs} attempts: {_short(row.error or row.reason)}",
        row.namespace,
        row.job_id,
        row.run_id,
        {
            "job_name": row.name,
            "count": row.letters,
            "cause": row.fingerprint,
            "kind": row.kind,
            "reason": row.reason,
            "error": _short(row.error),
            "attempts": row.attempts,
            "died_at": format_instant(row.died_at),
        },
    )


def silent(row: Silence, *, after: float) -> list[FoundAlert]:
    """Return one alert for the installation, or none."""
    signs = [
        text
        for text, seen in (
            ("instants that no trigger has planned", row.instants_due),
            ("runs that no worker has started", row.runs_late),
            ("messages that no dispatcher has sent to Kafka", row.unsent),
        )
        if seen
    ]
    if row.seconds < after or not signs:
        return []
    return [
        FoundAlert(
            AlertKind.SILENT,
            fingerprint_of(AlertKind.SILENT),
            f"No outcome of a worker has arrived since {format_instant(row.heard_at)}, but there are"
            f" {', '.join(signs)}.",
            details={"silent_since": format_instant(row.heard_at), "signs": signs},
        )
    ]


def _job(name: str | None, job_id: UUID | None) -> str:
    return f"job {name}" if name else f"job {job_id}"


def _short(text: str | None) -> str:
    line = " ".join((text or "").split())
    return line if len(line) <= _LONGEST_ERROR else line[: _LONGEST_ERROR - 1] + "…"


def _rates(row: Rates | None) -> dict[str, Any] | None:
    """Return the counts and durations of a job's last hour."""
    if row is None:
        return None
    return {
        "succeeded": row.succeeded,
        "failed": row.failed,
        "dead": row.dead,
        "skipped": row.skipped,
        "p50_seconds": percentile(row.seconds_buckets, 0.5),
        "p99_seconds": percentile(row.seconds_buckets, 0.99),
    }
