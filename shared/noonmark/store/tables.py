"""The tables as SQLAlchemy Core sees them, for reads.

`tests/integration/test_tables_equal_migration.py` keeps them equal to what the migrations make. What each
table is for stands in the migration. Nothing here creates or changes a table.
"""

from __future__ import annotations

from typing import Final

from sqlalchemy import (
    ARRAY,
    JSON,
    BigInteger,
    Boolean,
    Double,
    Integer,
    LargeBinary,
    SmallInteger,
    Table,
    Text,
    Uuid,
)
from sqlalchemy.dialects.postgresql import JSONB

from noonmark.store.observer_tables import alert_deliveries, alerts
from noonmark.store.setup_tables import (
    api_keys,
    audit_log,
    calendar_contents,
    calendars,
    idempotency,
    install,
    limits,
    namespaces,
    pool_keys,
    pools,
    signing_keys,
    zone_data,
)
from noonmark.store.table_parts import INSTANT, may, metadata, must
from noonmark.store.transport_tables import (
    inbox,
    lease_watch,
    members,
    outbox,
    rejections,
    topic_progress,
)

__all__ = [
    "alert_deliveries",
    "alerts",
    "api_keys",
    "attempt_logs",
    "attempts",
    "audit_log",
    "backfills",
    "buckets",
    "calendar_contents",
    "calendars",
    "callbacks",
    "dead_letters",
    "idempotency",
    "inbox",
    "install",
    "job_labels",
    "job_versions",
    "jobs",
    "lease_watch",
    "limit_slots",
    "limits",
    "members",
    "metadata",
    "namespaces",
    "outbox",
    "pool_keys",
    "pools",
    "rejections",
    "run_notes",
    "runs",
    "signing_keys",
    "slots",
    "start_batches",
    "timers",
    "tombstones",
    "topic_progress",
    "waits",
    "workers",
    "zone_data",
]

jobs: Final = Table(
    "jobs",
    metadata,
    must("id", Uuid(), key=True),
    must("namespace", Text()),
    may("name", Text()),
    must("kind", Text()),
    may("handler", Text()),
    must("lane", SmallInteger()),
    must("pool", Text()),
    must("shard", SmallInteger()),
    may("schedule", JSONB()),
    may("policy", JSONB()),
    must("work", JSON()),
    may("labels", JSONB()),
    may("description", Text()),
    may("owner", Text()),
    may("idempotency_key", Text()),
    must("unique_name", Boolean()),
    must("state", Text()),
    may("state_reason", Text()),
    may("paused_at", INSTANT),
    may("paused_by", Text()),
    may("resumed_at", INSTANT),
    may("resume_choice", Text()),
    must("version", Integer()),
    may("event_sequence", BigInteger()),
    must("created_at", INSTANT),
    must("updated_at", INSTANT),
)

job_versions: Final = Table(
    "job_versions",
    metadata,
    must("job_id", Uuid(), key=True),
    must("version", Integer(), key=True),
    may("name", Text()),
    must("kind", Text()),
    may("handler", Text()),
    may("lane", SmallInteger()),
    may("pool", Text()),
    must("work", JSON()),
    may("schedule", JSONB()),
    may("policy", JSONB()),
    may("labels", JSONB()),
    may("description", Text()),
    may("owner", Text()),
    must("replaced_at", INSTANT),
)

job_labels: Final = Table(
    "job_labels",
    metadata,
    must("namespace", Text(), key=True),
    must("key", Text(), key=True),
    must("value", Text(), key=True),
    must("job_id", Uuid(), key=True),
)

tombstones: Final = Table(
    "tombstones",
    metadata,
    must("namespace", Text(), key=True),
    must("name", Text(), key=True),
    must("event_sequence", BigInteger()),
    must("made_at", INSTANT),
)

timers: Final = Table(
    "timers",
    metadata,
    must("fire_at", INSTANT),
    must("scheduled_for", INSTANT),
    may("after_at", INSTANT),
    must("job_id", Uuid()),
    may("run_id", Uuid()),
    must("job_version", Integer()),
    may("runs_left", Integer()),
    may("after_offset", Integer()),
    must("shard", SmallInteger()),
    must("lane", SmallInteger()),
    must("kind", SmallInteger()),
    must("namespace", Text()),
    must("pool", Text()),
)

runs: Final = Table(
    "runs",
    metadata,
    must("id", Uuid(), key=True),
    must("scheduled_for", INSTANT, key=True),
    may("queued_at", INSTANT),
    may("started_at", INSTANT),
    may("finished_at", INSTANT),
    may("start_by", INSTANT),
    may("last_scheduled_for", INSTANT),
    must("job_id", Uuid()),
    may("owner", BigInteger()),
    must("job_version", Integer()),
    may("epoch", Integer()),
    must("fence", Integer()),
    must("attempt", Integer()),
    must("instants", Integer()),
    must("lane", SmallInteger()),
    must("shard", SmallInteger()),
    must("losses", SmallInteger()),
    may("zone_data", SmallInteger()),
    must("holds_slot", Boolean()),
    must("state", Text()),
    may("reason", Text()),
    must("origin", Text()),
    must("request_id", Text()),
    must("namespace", Text()),
    must("pool", Text()),
    may("result", JSON()),
    may("error", Text()),
)

workers: Final = Table(
    "workers",
    metadata,
    must("id", BigInteger(), key=True),
    must("pool", Text()),
    must("host", Text()),
    must("pid", Integer()),
    must("epoch", Integer()),
    must("lease_seconds", Double()),
    must("started_at", INSTANT),
    must("beat_at", INSTANT),
    may("lapsed_at", INSTANT),
    may("left_at", INSTANT),
    must("catalogue", JSONB()),
)

start_batches: Final = Table(
    "start_batches",
    metadata,
    must("id", BigInteger(), key=True),
    must("worker", BigInteger()),
    must("epoch", Integer()),
    must("first_scheduled_for", INSTANT),
    must("last_scheduled_for", INSTANT),
    must("started_at", INSTANT),
    must("overdue_at", INSTANT),
    must("run_ids", ARRAY(Uuid())),
)

backfills: Final = Table(
    "backfills",
    metadata,
    must("id", Uuid(), key=True),
    must("job_id", Uuid()),
    must("namespace", Text()),
    must("pool", Text()),
    must("shard", SmallInteger()),
    must("job_version", Integer()),
    must("schedule", JSONB()),
    must("mode", Text()),
    must("from_at", INSTANT),
    must("until_at", INSTANT),
    may("next_at", INSTANT),
    must("ended_to", INSTANT),
    must("state", Text()),
    may("state_reason", Text()),
    must("total", Integer()),
    must("instants", Integer()),
    must("queued", Integer()),
    may("requested_by", Text()),
    must("created_at", INSTANT),
    must("updated_at", INSTANT),
    may("finished_at", INSTANT),
)

slots: Final = Table(
    "slots",
    metadata,
    must("key", Uuid(), key=True),
    must("slot_no", SmallInteger(), key=True),
    must("run_id", Uuid()),
    must("taken_at", INSTANT),
)

limit_slots: Final = Table(
    "limit_slots",
    metadata,
    must("key", Uuid(), key=True),
    must("slot_no", Integer(), key=True),
    must("run_id", Uuid()),
    must("namespace", Text()),
    may("limit_name", Text()),
)

buckets: Final = Table(
    "buckets",
    metadata,
    must("key", Uuid(), key=True),
    must("tokens", Double()),
    must("filled_at", INSTANT),
)

waits: Final = Table(
    "waits",
    metadata,
    must("run_id", Uuid(), key=True),
    must("scheduled_for", INSTANT),
    must("job_id", Uuid()),
    must("reason", Text()),
    must("since", INSTANT),
    may("key", Uuid()),
    may("lane", SmallInteger()),
    may("namespace", Text()),
    may("limit_name", Text()),
    may("limit_key", Text()),
    may("start_by", INSTANT),
)

callbacks: Final = Table(
    "callbacks",
    metadata,
    must("run_id", Uuid(), key=True),
    must("scheduled_for", INSTANT),
    must("job_id", Uuid()),
    must("fence", Integer()),
    must("worker", BigInteger()),
    must("token_hash", LargeBinary()),
    must("opened_at", INSTANT),
    may("deadline_at", INSTANT),
)

attempts: Final = Table(
    "attempts",
    metadata,
    must("run_id", Uuid(), key=True),
    must("scheduled_for", INSTANT),
    must("fence", Integer(), key=True),
    must("attempt", Integer()),
    may("worker", BigInteger()),
    must("outcome", Text()),
    may("error", Text()),
    may("started_at", INSTANT),
    must("finished_at", INSTANT),
)

attempt_logs: Final = Table(
    "attempt_logs",
    metadata,
    must("run_id", Uuid(), key=True),
    must("scheduled_for", INSTANT),
    must("fence", Integer(), key=True),
    must("attempt", Integer()),
    must("stdout", Text()),
    must("stderr", Text()),
    must("log", Text()),
    must("dropped", BigInteger()),
    must("written_at", INSTANT),
)

run_notes: Final = Table(
    "run_notes",
    metadata,
    must("run_id", Uuid(), key=True),
    must("scheduled_for", INSTANT),
    must("fence", Integer()),
    may("progress", Double()),
    must("message", Text()),
    may("checkpoint", JSON()),
    must("written_at", INSTANT),
)

dead_letters: Final = Table(
    "dead_letters",
    metadata,
    must("run_id", Uuid(), key=True),
    must("scheduled_for", INSTANT),
    must("job_id", Uuid()),
    must("namespace", Text()),
    must("attempts", Integer()),
    must("reason", Text()),
    may("error", Text()),
    may("kind", Text()),
    may("name", Text()),
    must("fingerprint", Text()),
    must("died_at", INSTANT),
)
