"""Tables of what the observer keeps. See `tables`."""

from __future__ import annotations

from typing import Final

from sqlalchemy import Integer, Table, Text, Uuid
from sqlalchemy.dialects.postgresql import JSONB

from noonmark.store.table_parts import INSTANT, may, metadata, must

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
)
