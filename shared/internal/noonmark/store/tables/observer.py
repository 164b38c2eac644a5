"""Tables of the observer. See `tables`."""

from __future__ import annotations

from typing import Final

from sqlalchemy import ARRAY, BigInteger, Boolean, Double, Integer, LargeBinary, Table, Text, Uuid
from sqlalchemy.dialects.postgresql import JSONB

from noonmark.store.tables.parts import INSTANT, may, metadata, must

alerts: Final = Table(
    "alerts",
    metadata,
    must("id", Uuid(), key=True),
    must("fingerprint", Text()),
    must("kind", Text()),
    must("severity", Text()),
    may("namespace", Text()),
    may("job_id", Uuid()),
    may("run_id", Uuid()),
    must("summary", Text()),
    must("details", JSONB()),
    must("raised_at", INSTANT),
    must("seen_at", INSTANT),
    may("resolved_at", INSTANT),
)

alert_deliveries: Final = Table(
    "alert_deliveries",
    metadata,
    must("alert_id", Uuid(), key=True),
    must("change", Text(), key=True),
    must("channel", Text(), key=True),
    must("attempts", Integer()),
    must("due_at", INSTANT),
    may("last_error", Text()),
    may("sent_at", INSTANT),
)

process_progress: Final = Table(
    "process_progress",
    metadata,
    must("service", Text(), key=True),
    must("id", Uuid(), key=True),
    must("host", Text()),
    must("pid", Integer()),
    must("seen_at", INSTANT),
    must("progressed_at", INSTANT),
    may("stuck", Text()),
)

observer_offsets: Final = Table(
    "observer_offsets",
    metadata,
    must("topic", Text(), key=True),
    must("partition", Integer(), key=True),
    must("next_offset", BigInteger()),
    must("caught_up", Boolean()),
    must("read_at", INSTANT),
)

observer_events: Final = Table(
    "observer_events",
    metadata,
    must("event_id", Uuid(), key=True),
    must("read_at", INSTANT),
)

job_stats: Final = Table(
    "job_stats",
    metadata,
    must("job_id", Uuid(), key=True),
    must("namespace", Text()),
    must("kind", Text()),
    must("runs", BigInteger()),
    may("usual_seconds", Double()),
    must("failures", Integer()),
    may("failure_cause", Text()),
    may("last_error", Text()),
    may("last_run_id", Uuid()),
    may("last_failure_at", INSTANT),
    may("last_success_at", INSTANT),
    may("recent", LargeBinary()),
)

outcome_windows: Final = Table(
    "outcome_windows",
    metadata,
    must("window_at", INSTANT, key=True),
    must("job_id", Uuid(), key=True),
    must("namespace", Text(), key=True),
    must("kind", Text(), key=True),
    must("succeeded", Integer()),
    must("failed", Integer()),
    must("dead", Integer()),
    must("skipped", Integer()),
    must("other", Integer()),
    must("seconds_buckets", ARRAY(Integer())),
)

observer_state: Final = Table(
    "observer_state",
    metadata,
    must("only_row", Boolean(), key=True),
    must("heard_at", INSTANT),
    must("walked_to", Uuid()),
    must("ruled_to", Uuid()),
    must("died_until", INSTANT),
)

late_runs: Final = Table(
    "late_runs",
    metadata,
    must("run_id", Uuid(), key=True),
    must("scheduled_for", INSTANT),
    must("job_id", Uuid()),
    must("namespace", Text()),
    must("pool", Text()),
    must("recurring", Boolean()),
)

late_rules: Final = Table(
    "late_rules",
    metadata,
    must("job_id", Uuid(), key=True),
    must("late_after_seconds", Double()),
)
