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
    Column,
    DateTime,
    Double,
    Integer,
    LargeBinary,
    MetaData,
    SmallInteger,
    Table,
    Text,
    Uuid,
)
from sqlalchemy.dialects.postgresql import JSONB

metadata: Final = MetaData()

_INSTANT: Final = DateTime(timezone=True)


def _must(name: str, kind: object, *, key: bool = False) -> Column[object]:
    return Column(name, kind, primary_key=key, nullable=False)  # type: ignore[arg-type]


def _may(name: str, kind: object) -> Column[object]:
    return Column(name, kind, nullable=True)  # type: ignore[arg-type]


install: Final = Table(
    "install",
    metadata,
    _must("only_row", Boolean(), key=True),
    _must("shards", SmallInteger()),
    _must("created_at", _INSTANT),
    _must("ledger_floor", _INSTANT),
    _must("facts", BigInteger()),
)

zone_data: Final = Table(
    "zone_data",
    metadata,
    _must("id", SmallInteger(), key=True),
    _must("version", Text()),
    _must("active", Boolean()),
    _may("activated_at", _INSTANT),
    _may("timers", Integer()),
    _may("moved", Integer()),
)

namespaces: Final = Table(
    "namespaces",
    metadata,
    _must("name", Text(), key=True),
    _must("timezone", Text()),
    _may("paused_at", _INSTANT),
    _may("pause_reason", Text()),
    _must("created_at", _INSTANT),
    _must("updated_at", _INSTANT),
)

calendars: Final = Table(
    "calendars",
    metadata,
    _must("namespace", Text(), key=True),
    _must("name", Text(), key=True),
    _must("digest", Text()),
    _must("updated_at", _INSTANT),
)

calendar_contents: Final = Table(
    "calendar_contents",
    metadata,
    _must("digest", Text(), key=True),
    _must("body", JSONB()),
    _must("created_at", _INSTANT),
)

pools: Final = Table(
    "pools",
    metadata,
    _must("name", Text(), key=True),
    _must("created_at", _INSTANT),
)

pool_keys: Final = Table(
    "pool_keys",
    metadata,
    _must("pool", Text(), key=True),
    _must("key_id", Text(), key=True),
    _must("secret", LargeBinary()),
    _must("created_at", _INSTANT),
    _may("retired_at", _INSTANT),
)

jobs: Final = Table(
    "jobs",
    metadata,
    _must("id", Uuid(), key=True),
    _must("namespace", Text()),
    _may("name", Text()),
    _must("kind", Text()),
    _may("handler", Text()),
    _must("lane", SmallInteger()),
    _must("pool", Text()),
    _must("shard", SmallInteger()),
    _may("schedule", JSONB()),
    _may("policy", JSONB()),
    _must("work", JSON()),
    _may("labels", JSONB()),
    _may("description", Text()),
    _may("owner", Text()),
    _may("idempotency_key", Text()),
    _must("unique_name", Boolean()),
    _must("state", Text()),
    _may("state_reason", Text()),
    _may("paused_at", _INSTANT),
    _may("paused_by", Text()),
    _may("resumed_at", _INSTANT),
    _may("resume_choice", Text()),
    _must("version", Integer()),
    _may("event_sequence", BigInteger()),
    _must("created_at", _INSTANT),
    _must("updated_at", _INSTANT),
)

job_versions: Final = Table(
    "job_versions",
    metadata,
    _must("job_id", Uuid(), key=True),
    _must("version", Integer(), key=True),
    _must("kind", Text()),
    _may("handler", Text()),
    _must("work", JSON()),
    _may("schedule", JSONB()),
    _may("policy", JSONB()),
    _must("replaced_at", _INSTANT),
)

tombstones: Final = Table(
    "tombstones",
    metadata,
    _must("namespace", Text(), key=True),
    _must("name", Text(), key=True),
    _must("event_sequence", BigInteger()),
    _must("made_at", _INSTANT),
)

timers: Final = Table(
    "timers",
    metadata,
    _must("fire_at", _INSTANT),
    _must("scheduled_for", _INSTANT),
    _may("after_at", _INSTANT),
    _must("job_id", Uuid()),
    _may("run_id", Uuid()),
    _must("job_version", Integer()),
    _may("runs_left", Integer()),
    _may("after_offset", Integer()),
    _must("shard", SmallInteger()),
    _must("lane", SmallInteger()),
    _must("kind", SmallInteger()),
    _must("namespace", Text()),
    _must("pool", Text()),
)

runs: Final = Table(
    "runs",
    metadata,
    _must("id", Uuid(), key=True),
    _must("scheduled_for", _INSTANT, key=True),
    _may("queued_at", _INSTANT),
    _may("started_at", _INSTANT),
    _may("finished_at", _INSTANT),
    _may("start_by", _INSTANT),
    _may("last_scheduled_for", _INSTANT),
    _must("job_id", Uuid()),
    _may("owner", BigInteger()),
    _must("job_version", Integer()),
    _may("epoch", Integer()),
    _must("fence", Integer()),
    _must("attempt", Integer()),
    _must("instants", Integer()),
    _must("lane", SmallInteger()),
    _must("shard", SmallInteger()),
    _must("losses", SmallInteger()),
    _may("zone_data", SmallInteger()),
    _must("holds_slot", Boolean()),
    _must("state", Text()),
    _may("reason", Text()),
    _must("origin", Text()),
    _must("request_id", Text()),
    _must("namespace", Text()),
    _must("pool", Text()),
    _may("result", JSON()),
    _may("error", Text()),
)

workers: Final = Table(
    "workers",
    metadata,
    _must("id", BigInteger(), key=True),
    _must("pool", Text()),
    _must("host", Text()),
    _must("pid", Integer()),
    _must("epoch", Integer()),
    _must("lease_seconds", Double()),
    _must("started_at", _INSTANT),
    _must("beat_at", _INSTANT),
    _may("lapsed_at", _INSTANT),
    _may("left_at", _INSTANT),
)

start_batches: Final = Table(
    "start_batches",
    metadata,
    _must("id", BigInteger(), key=True),
    _must("worker", BigInteger()),
    _must("epoch", Integer()),
    _must("first_scheduled_for", _INSTANT),
    _must("last_scheduled_for", _INSTANT),
    _must("started_at", _INSTANT),
    _must("overdue_at", _INSTANT),
    _must("run_ids", ARRAY(Uuid())),
)

backfills: Final = Table(
    "backfills",
    metadata,
    _must("id", Uuid(), key=True),
    _must("job_id", Uuid()),
    _must("namespace", Text()),
    _must("pool", Text()),
    _must("shard", SmallInteger()),
    _must("job_version", Integer()),
    _must("schedule", JSONB()),
    _must("mode", Text()),
    _must("from_at", _INSTANT),
    _must("until_at", _INSTANT),
    _may("next_at", _INSTANT),
    _must("ended_to", _INSTANT),
    _must("state", Text()),
    _may("state_reason", Text()),
    _must("total", Integer()),
    _must("instants", Integer()),
    _must("queued", Integer()),
    _may("requested_by", Text()),
    _must("created_at", _INSTANT),
    _must("updated_at", _INSTANT),
    _may("finished_at", _INSTANT),
)

slots: Final = Table(
    "slots",
    metadata,
    _must("key", Uuid(), key=True),
    _must("slot_no", SmallInteger(), key=True),
    _must("run_id", Uuid()),
    _must("taken_at", _INSTANT),
)

waits: Final = Table(
    "waits",
    metadata,
    _must("run_id", Uuid(), key=True),
    _must("scheduled_for", _INSTANT),
    _must("job_id", Uuid()),
    _must("reason", Text()),
    _must("since", _INSTANT),
)

attempts: Final = Table(
    "attempts",
    metadata,
    _must("run_id", Uuid(), key=True),
    _must("scheduled_for", _INSTANT),
    _must("fence", Integer(), key=True),
    _must("attempt", Integer()),
    _may("worker", BigInteger()),
    _must("outcome", Text()),
    _may("error", Text()),
    _may("started_at", _INSTANT),
    _must("finished_at", _INSTANT),
)

dead_letters: Final = Table(
    "dead_letters",
    metadata,
    _must("run_id", Uuid(), key=True),
    _must("scheduled_for", _INSTANT),
    _must("job_id", Uuid()),
    _must("namespace", Text()),
    _must("attempts", Integer()),
    _must("reason", Text()),
    _may("error", Text()),
    _must("died_at", _INSTANT),
)

inbox: Final = Table(
    "inbox",
    metadata,
    _must("event_key", Uuid(), key=True),
    _must("received_at", _INSTANT),
    _must("source", Text()),
    _must("event_id", Text()),
)

rejections: Final = Table(
    "rejections",
    metadata,
    _must("id", BigInteger(), key=True),
    _must("topic", Text()),
    _must("partition", Integer()),
    _must("record_offset", BigInteger()),
    _may("event_source", Text()),
    _may("event_id", Text()),
    _must("reason", Text()),
    _must("errors", JSONB()),
    _may("value", LargeBinary()),
    _must("truncated", Boolean()),
    _must("received_at", _INSTANT),
)

outbox: Final = Table(
    "outbox",
    metadata,
    _must("seq", BigInteger(), key=True),
    _must("slice", SmallInteger(), key=True),
    _must("lane", SmallInteger(), key=True),
    _must("created_at", _INSTANT),
    _may("run_id", Uuid()),
    _may("job_id", Uuid()),
    _may("scheduled_for", _INSTANT),
    _may("fence", Integer()),
    _may("job_version", Integer()),
    _may("namespace", Text()),
    _may("pool", Text()),
    _may("topic", Text()),
    _may("key", LargeBinary()),
    _may("value", LargeBinary()),
)

members: Final = Table(
    "members",
    metadata,
    _must("role", Text(), key=True),
    _must("id", Uuid(), key=True),
    _must("host", Text()),
    _must("pid", Integer()),
    _must("joined_at", _INSTANT),
    _must("beat_at", _INSTANT),
)

lease_watch: Final = Table(
    "lease_watch",
    metadata,
    _must("only_row", Boolean(), key=True),
    _must("timeline", Integer()),
    _must("postmaster_started_at", _INSTANT),
    _must("last_pass_at", _INSTANT),
    _must("continuous_since", _INSTANT),
)

topic_progress: Final = Table(
    "topic_progress",
    metadata,
    _must("topic", Text(), key=True),
    _must("passed_until", _INSTANT),
    _must("measured_at", _INSTANT),
    _may("lost_at", _INSTANT),
)
