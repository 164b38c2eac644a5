"""The ledger's side of a history: what Postgres holds about some namespaces."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime
from typing import Any

import psycopg

from noonmark.core.workflows.stored import definition_of
from noonmark.store.database.instants import read_any_instant
from noonmark.verify import History
from noonmark.verify.history import (
    Attempt,
    DeadLetter,
    Graph,
    Job,
    Message,
    OpenState,
    Rejection,
    Run,
    Version,
    Worker,
)

EFFECTS = "effects"
"""Where handlers of the tests write in the transaction of their run's outcome."""

LEFT_OVER = (
    ("outbox", "(run_id is null and run_ids is null) or namespace = any (%(ns)s)"),
    (
        "start_batches",
        "run_ids && (select coalesce(array_agg(id), '{}') from runs where namespace = any (%(ns)s))",
    ),
    ("slots", "run_id in (select id from runs where namespace = any (%(ns)s))"),
    ("limit_slots", "run_id in (select id from runs where namespace = any (%(ns)s))"),
    ("waits", "run_id in (select id from runs where namespace = any (%(ns)s))"),
    ("workflows", "run_id in (select id from runs where namespace = any (%(ns)s))"),
    (
        "timers",
        (
            "namespace = any (%(ns)s) and (run_id is not null or fire_at > '9999-12-31'"
            " or fire_at < noonmark_now() + interval '1 year')"
        ),
    ),
)


def read_ledger(
    connection: psycopg.Connection, found: History, namespaces: list[str], sources: list[str]
) -> None:
    """Add to a history what the database holds."""
    names = {"ns": namespaces, "sources": sources}

    def rows(query: str) -> Iterator[tuple[Any, ...]]:
        return iter(connection.execute(query, names).fetchall())

    read_any_instant(connection)
    found.judged_at = next(rows("select noonmark_now()"))[0]
    # Tests replace `noonmark_now`; the targets and the registration of workers use the machine's clock.
    found.clocks_agree = next(
        rows("select abs(extract(epoch from noonmark_now() - clock_timestamp())) < 0.2")
    )[0]
    found.jobs = [
        Job(*row)
        for row in rows(
            "select id::text, namespace, coalesce(name, ''), state, version, created_at, updated_at, shard"
            " from jobs where namespace = any (%(ns)s)"
        )
    ]
    found.versions = list(_versions(rows))
    found.runs = [
        Run(*row)
        for row in rows(
            "select id::text, job_id::text, job_version, namespace, scheduled_for, last_scheduled_for, origin,"
            " request_id, state, reason, attempt, fence, lane, queued_at, started_at, finished_at, losses, result::text, error,"
            " pool, owner, epoch, start_by, instants, shard, zone_data, holds_slot, null, null, due_at"
            " from runs"
            " where namespace = any (%(ns)s)"
        )
    ]
    mine = "run_id in (select id from runs where namespace = any (%(ns)s))"
    found.attempts = [
        Attempt(*row)
        for row in rows(
            "select run_id::text, fence, attempt, outcome, started_at, finished_at, error, worker, scheduled_for"
            " from attempts"
            f" where {mine}"
        )
    ]
    found.dead_letters = [
        DeadLetter(*row)
        for row in rows(
            "select run_id::text, namespace, attempts, reason, error, scheduled_for, job_id::text, kind, name,"
            f" fingerprint, died_at from dead_letters where {mine}"
        )
    ]
    found.messages += [
        Message("outbox", *row)
        for row in rows(
            f"select seq, run_id::text, fence, namespace, job_version, scheduled_for from outbox where {mine}"
            " union all"
            " select seq, run::text, fence, namespace, version, due from outbox,"
            " unnest(run_ids, job_versions, instants) as u (run, version, due)"
            " where run in (select id from runs where namespace = any (%(ns)s))"
        )
    ]
    found.workers = [
        Worker(*row)
        for row in rows(
            "select id, pool, pid, epoch, started_at, coalesce(lapsed_at, left_at), beat_at from workers"
            " order by id"
        )
    ]
    found.shards = next(rows("select shards from install"))[0]
    found.zone_releases = {row[0] for row in rows("select id from zone_data")}
    both = (
        f"select run_id::text from slots where {mine} union select run_id::text from limit_slots where {mine}"
        " union select holder::text from timers, noonmark_rowless_holder(job_id, after_at) as holder"
        " where kind in (1, 3) and holder is not null"
    )
    found.slot_holders = {row[0] for row in rows(both)}
    found.timers = {row[0]: row[1] for row in rows(f"select run_id::text, fire_at from timers where {mine}")}
    found.limits = {
        (row[0], row[1]): row[2]
        for row in rows(
            "select namespace, name, max_running from limits"
            " where namespace = any (%(ns)s) and max_running is not null"
        )
    }
    # What was refused on a topic may be anybody's, because bytes that are not an event have no sender.
    found.rejections = [
        Rejection(*row)
        for row in rows("select topic, partition, record_offset, event_id, reason from rejections")
    ]
    found.known_events = {
        row[0] for row in rows("select event_id from inbox where source = any (%(sources)s)")
    }
    _add_workflows(found, rows, mine)
    found.outbox_seconds = next(
        rows("select coalesce(extract(epoch from noonmark_now() - min(created_at)), 0)::float8 from outbox")
    )[0]
    for table, where in LEFT_OVER:
        found.left_over[table] = next(rows(f"select count(*) from {table} where {where}"))[0]


def _add_workflows(found: History, rows: Any, mine: str) -> None:
    """Add the graphs of workflows, what is kept of open runs, and which runs their timers are about."""
    tasks: dict[tuple[str, int], list[tuple[str, Any]]] = {}
    deadlines = {}
    query = (
        "select job_id::text, version, key, graph, deadline from workflow_tasks"
        " join (select id, version, work -> 'deadline_seconds' from jobs union all"
        "       select job_id, version, work -> 'deadline_seconds' from job_versions) as u (id, version, deadline)"
        " using (version)"
        " where u.id = job_id and job_id in (select id from jobs where namespace = any (%(ns)s))"
        " order by job_id, version, task_no"
    )
    for job, version, key, graph, deadline in rows(query):
        tasks.setdefault((job, version), []).append((key, graph))
        deadlines[job, version] = deadline
    found.graphs = {at: Graph(definition_of(some), deadlines[at]) for at, some in tasks.items()}
    found.open_states = [
        OpenState(*row)
        for row in rows(
            f"select run_id::text, generation, progress, choices, stopping from workflows where {mine}"
        )
    ]
    found.reported = {row[0] for row in rows(f"select run_id::text from timers where kind = 5 and {mine}")}


def _versions(rows: Any) -> Iterator[Version]:
    since: dict[str, datetime] = {}
    query = (
        "select id::text, version, schedule, created_at, null::timestamptz, work, policy from jobs"
        " where namespace = any (%(ns)s) union all"
        " select job_id::text, old.version, old.schedule, jobs.created_at, replaced_at, old.work, old.policy"
        " from job_versions as old join jobs on jobs.id = job_id where namespace = any (%(ns)s)"
    )
    for job, version, schedule, created_at, until, work, stored in sorted(rows(query), key=lambda r: r[:2]):
        policy = stored or {}
        yield Version(
            job,
            version,
            schedule,
            since.get(job, created_at),
            until,
            max_attempts(work.get("retry") or {}),
            work.get("delivery", "at_least_once"),
            policy.get("overlap", "allow"),
            tuple((name, key) for name, key in policy.get("limits", ())),
            isinstance(work.get("payload"), dict) and "callback" in work["payload"],
        )
        if until is not None:
            since[job] = until


def max_attempts(retry: dict[str, Any]) -> int | None:
    """What a stored retry policy allows; None where it does not say."""
    retries = retry.get("max_retries")
    return None if retries is None else int(retries) + 1
