"""Two tenants with a row of each in every table that holds rows of tenants."""

from __future__ import annotations

from typing import Any
from uuid import UUID

import psycopg

from noonmark.core.ids import uuid7

TENANTS = ("acme", "rival")

# Of one tenant; `%(job)s` is its job, `%(run)s` its run, `%(n)s` its namespace.
_ROWS = """
insert into namespaces (name) values (%(n)s);
insert into limits (namespace, name, max_running) values (%(n)s, 'api', 1);
insert into calendar_contents (digest, body) values (%(n)s, '{}');
insert into calendars (namespace, name, digest) values (%(n)s, 'holidays', %(n)s);
insert into signing_keys (namespace, key_id, secret) values (%(n)s, '1', 'whsec_x');
insert into idempotency (namespace, key, request_hash, status, body) values (%(n)s, 'k', '', 202, '{}');
insert into audit_log (actor, actor_name, action, namespace, outcome, request_id)
    values ('key:x', 'x', 'job.create', %(n)s, 'done', 'r');
insert into api_keys (key_id, name, secret_hash, grants, created_by)
    values (%(n)s, 'x', sha256('x'), jsonb_build_object(%(n)s::text, 'viewer'), 'x');
insert into tombstones (namespace, name, event_sequence) values (%(n)s, 'gone', 1);
insert into jobs (id, namespace, kind, lane, pool, shard, work, labels, unique_name, state, version, created_at, updated_at)
    values (%(job)s, %(n)s, 'python', 1, 'default', 0, '{}', '{"team": "x"}', false, 'active', 2, now(), now());
insert into job_versions (job_id, version, kind, work) values (%(job)s, 1, 'python', '{}');
insert into timers (fire_at, scheduled_for, job_id, job_version, shard, lane, kind, namespace, pool)
    values (now(), now(), %(job)s, 1, 0, 1, 0, %(n)s, 'default');
insert into runs (id, scheduled_for, job_id, job_version, fence, lane, shard, state, origin, namespace, pool)
    values (%(run)s, now(), %(job)s, 1, 1, 1, 0, 'waiting', 'schedule', %(n)s, 'default');
insert into workflow_tasks (job_id, version, task_no, key, kind, lane, pool, work, graph, document)
    values (%(job)s, 1, 0, 'a', 'python', 1, 'default', '{}', '{}', '{}');
insert into workflows (run_id, scheduled_for, job_id, job_version, shard, generation, progress, choices, opened_at)
    values (%(run)s, now(), %(job)s, 1, 0, 1, '', '', now());
insert into backfills (id, job_id, namespace, pool, shard, job_version, schedule, mode, from_at, until_at, ended_to, state,
                       total, created_at, updated_at)
    values (%(run)s, %(job)s, %(n)s, 'default', 0, 1, '{}', 'all', now(), now(), now(), 'done', 1, now(), now());
insert into slots (key, slot_no, run_id, taken_at) values (%(job)s, 0, %(run)s, now());
insert into limit_slots (key, slot_no, run_id, namespace) values (%(job)s, 0, %(run)s, %(n)s);
insert into buckets (key, tokens, filled_at) values (%(job)s, 1, now());
insert into waits (run_id, scheduled_for, job_id, reason, since, key, namespace)
    select id, scheduled_for, job_id, 'limit', now(), %(job)s, %(n)s from runs where id = %(run)s;
insert into callbacks (run_id, scheduled_for, job_id, fence, worker, token_hash, opened_at)
    select id, scheduled_for, job_id, 1, 1, sha256('x'), now() from runs where id = %(run)s;
insert into attempts (run_id, scheduled_for, fence, attempt, outcome, finished_at)
    select id, scheduled_for, 1, 1, 'failed', now() from runs where id = %(run)s;
insert into attempt_logs (run_id, scheduled_for, fence, attempt, stdout, stderr, log, dropped, written_at)
    select id, scheduled_for, 1, 1, '', '', '', 0, now() from runs where id = %(run)s;
insert into run_notes (run_id, scheduled_for, fence, message, written_at)
    select id, scheduled_for, 1, '', now() from runs where id = %(run)s;
insert into dead_letters (run_id, scheduled_for, job_id, namespace, attempts, reason, fingerprint, died_at)
    values (%(run)s, now(), %(job)s, %(n)s, 1, 'x', 'x', now());
insert into outbox (slice, lane, created_at, run_id, job_id, namespace, pool, scheduled_for, fence, job_version)
    values (0, 1, now(), %(run)s, %(job)s, %(n)s, 'default', now(), 1, 1);
insert into start_batches (worker, epoch, first_scheduled_for, last_scheduled_for, started_at, overdue_at, run_ids)
    values (1, 1, now(), now(), now(), now(), array[%(run)s::uuid]);
insert into alerts (id, fingerprint, kind, severity, namespace, summary, raised_at, seen_at)
    values (%(run)s, %(n)s, 'dead', 'warning', %(n)s, 'x', now(), now());
insert into alert_deliveries (alert_id, change, channel, due_at) values (%(run)s, 'raised', 'webhook', now());
insert into job_stats (job_id, namespace, kind, runs, failures) values (%(job)s, %(n)s, 'python', 1, 0);
insert into outcome_windows (window_at, job_id, namespace, kind, succeeded, failed, dead, skipped, other, seconds_buckets)
    values (now(), %(job)s, %(n)s, 'python', 1, 0, 0, 0, 0, '{}');
insert into late_rules (job_id, late_after_seconds) values (%(job)s, 60);
insert into late_runs (run_id, scheduled_for, job_id, namespace, pool, recurring)
    values (%(run)s, now(), %(job)s, %(n)s, 'default', false);
insert into observer_events (event_id, read_at) values (%(run)s, now());
insert into observer_offsets (topic, partition, next_offset, caught_up, read_at) values (%(n)s, 0, 0, true, now());
insert into observer_state (heard_at, walked_to, ruled_to, died_until) values (now(), %(run)s, %(run)s, now()) on conflict do nothing;
insert into inbox (event_key, received_at, source, event_id) values (%(run)s, now(), %(n)s, 'x');
insert into rejections (topic, partition, record_offset, reason, errors, truncated, received_at)
    values (%(n)s, 0, 0, 'x', '[]', false, now());
"""

OF_TENANTS = {
    *("namespaces", "limits", "calendar_contents", "calendars", "idempotency", "audit_log", "api_keys"),
    *(
        "tombstones",
        "jobs",
        "job_versions",
        "timers",
        "job_labels",
        "runs",
        "backfills",
        "slots",
        "limit_slots",
        "buckets",
    ),
    *("waits", "callbacks", "attempts", "attempt_logs", "run_notes", "dead_letters", "outbox", "alerts"),
    *("alert_deliveries", "job_stats", "outcome_windows", "late_rules", "workflow_tasks", "workflows"),
}
"""Tables of which a tenant sees rows, and of those planted exactly one."""

OF_THE_INSTALLATION = {"inbox", "rejections", "start_batches"}
"""Tables that the role may read, and only those who see everything see rows of."""

HIDDEN = {
    *("pool_keys", "signing_keys", "observer_offsets", "observer_events", "observer_state", "late_runs"),
}
"""Tables that the role may not even name."""

OF_EVERYBODY = {
    *("install", "zone_data", "pools", "workers", "members", "lease_watch", "topic_progress"),
    "process_progress",
}


def plant(db: psycopg.Connection, tenants: tuple[str, ...] = TENANTS) -> dict[str, tuple[UUID, UUID]]:
    """Give each tenant a row in every table; return the ids of its job and its run."""
    ids: dict[str, tuple[UUID, UUID]] = {}
    for tenant in tenants:
        job, run = ids[tenant] = (uuid7(), uuid7())
        values: dict[str, Any] = {"n": tenant, "job": job, "run": run}
        with db.transaction():
            for statement in _ROWS.split(";\n"):
                if statement.strip():
                    db.execute(statement, values)  # type: ignore[arg-type]
    return ids
