"""Tables between Kafka and the services, and tables of the services themselves. See `tables`."""

from __future__ import annotations

from typing import Final

from sqlalchemy import (
    ARRAY,
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

from noonmark.store.tables.parts import INSTANT, may, metadata, must

inbox: Final = Table(
    "inbox",
    metadata,
    must("event_key", Uuid(), key=True),
    must("received_at", INSTANT),
    must("source", Text()),
    must("event_id", Text()),
)

rejections: Final = Table(
    "rejections",
    metadata,
    must("id", BigInteger(), key=True),
    must("topic", Text()),
    must("partition", Integer()),
    must("record_offset", BigInteger()),
    may("event_source", Text()),
    may("event_id", Text()),
    must("reason", Text()),
    must("errors", JSONB()),
    may("value", LargeBinary()),
    must("truncated", Boolean()),
    must("received_at", INSTANT),
)

outbox: Final = Table(
    "outbox",
    metadata,
    must("seq", BigInteger(), key=True),
    must("slice", SmallInteger(), key=True),
    must("lane", SmallInteger(), key=True),
    must("created_at", INSTANT),
    may("run_id", Uuid()),
    may("job_id", Uuid()),
    may("scheduled_for", INSTANT),
    may("fence", Integer()),
    may("job_version", Integer()),
    may("namespace", Text()),
    may("pool", Text()),
    may("topic", Text()),
    may("key", LargeBinary()),
    may("value", LargeBinary()),
    may("headers", LargeBinary()),
    may("refusal", Text()),
    may("run_ids", ARRAY(Uuid())),
    may("job_ids", ARRAY(Uuid())),
    may("instants", ARRAY(INSTANT)),
    may("job_versions", ARRAY(Integer())),
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
    may("slots", Integer()),
    may("draining_at", INSTANT),
    may("release", Text()),
    must("capabilities", ARRAY(Text())),
)

members: Final = Table(
    "members",
    metadata,
    must("role", Text(), key=True),
    must("id", Uuid(), key=True),
    must("host", Text()),
    must("pid", Integer()),
    must("joined_at", INSTANT),
    must("beat_at", INSTANT),
    may("release", Text()),
    must("capabilities", ARRAY(Text())),
)

lease_watch: Final = Table(
    "lease_watch",
    metadata,
    must("only_row", Boolean(), key=True),
    must("timeline", Integer()),
    must("postmaster_started_at", INSTANT),
    must("last_pass_at", INSTANT),
    must("continuous_since", INSTANT),
)

topic_progress: Final = Table(
    "topic_progress",
    metadata,
    must("topic", Text(), key=True),
    must("passed_until", INSTANT),
    must("measured_at", INSTANT),
    may("lost_at", INSTANT),
)
