"""Tables of an installation's configuration: namespaces, limits, calendars, pools, keys. See `tables`."""

from __future__ import annotations

from typing import Final

from sqlalchemy import ARRAY, BigInteger, Boolean, Double, Integer, LargeBinary, SmallInteger, Table, Text
from sqlalchemy.dialects.postgresql import JSONB

from noonmark.store.tables.parts import INSTANT, may, metadata, must

install: Final = Table(
    "install",
    metadata,
    must("only_row", Boolean(), key=True),
    must("shards", SmallInteger()),
    must("created_at", INSTANT),
    must("ledger_floor", INSTANT),
    must("facts", BigInteger()),
    must("cursor_key", LargeBinary()),
)

zone_data: Final = Table(
    "zone_data",
    metadata,
    must("id", SmallInteger(), key=True),
    must("version", Text()),
    must("active", Boolean()),
    may("activated_at", INSTANT),
    may("timers", Integer()),
    may("moved", Integer()),
)

namespaces: Final = Table(
    "namespaces",
    metadata,
    must("name", Text(), key=True),
    must("timezone", Text()),
    may("paused_at", INSTANT),
    may("pause_reason", Text()),
    may("max_in_flight", Integer()),
    may("max_jobs", Integer()),
    must("created_at", INSTANT),
    must("updated_at", INSTANT),
)

limits: Final = Table(
    "limits",
    metadata,
    must("namespace", Text(), key=True),
    must("name", Text(), key=True),
    may("max_running", Integer()),
    may("rate_count", Integer()),
    may("rate_seconds", Double()),
    may("burst", Integer()),
    must("updated_at", INSTANT),
)

calendars: Final = Table(
    "calendars",
    metadata,
    must("namespace", Text(), key=True),
    must("name", Text(), key=True),
    must("digest", Text()),
    must("updated_at", INSTANT),
)

calendar_contents: Final = Table(
    "calendar_contents",
    metadata,
    must("digest", Text(), key=True),
    must("body", JSONB()),
    must("created_at", INSTANT),
)

pools: Final = Table(
    "pools",
    metadata,
    must("name", Text(), key=True),
    must("created_at", INSTANT),
)

pool_keys: Final = Table(
    "pool_keys",
    metadata,
    must("pool", Text(), key=True),
    must("key_id", Text(), key=True),
    must("secret", LargeBinary()),
    must("created_at", INSTANT),
    may("retired_at", INSTANT),
)

signing_keys: Final = Table(
    "signing_keys",
    metadata,
    must("namespace", Text(), key=True),
    must("key_id", Text(), key=True),
    must("secret", Text()),
    must("created_at", INSTANT),
    may("retired_at", INSTANT),
)

api_keys: Final = Table(
    "api_keys",
    metadata,
    must("key_id", Text(), key=True),
    must("name", Text()),
    must("secret_hash", LargeBinary()),
    may("signing_secret", LargeBinary()),
    must("signs", Boolean()),
    must("grants", JSONB()),
    must("platform", Boolean()),
    may("scopes", ARRAY(Text())),
    may("rate_per_minute", Integer()),
    must("created_at", INSTANT),
    must("created_by", Text()),
    may("expires_at", INSTANT),
    may("last_used_at", INSTANT),
    may("revoked_at", INSTANT),
)

audit_log: Final = Table(
    "audit_log",
    metadata,
    must("id", BigInteger(), key=True),
    must("at", INSTANT),
    must("actor", Text()),
    must("actor_name", Text()),
    must("action", Text()),
    may("namespace", Text()),
    may("object", Text()),
    must("outcome", Text()),
    may("reason", Text()),
    may("before", JSONB()),
    may("after", JSONB()),
    must("request_id", Text()),
    may("address", Text()),
)

idempotency: Final = Table(
    "idempotency",
    metadata,
    must("namespace", Text(), key=True),
    must("key", Text(), key=True),
    must("request_hash", LargeBinary()),
    must("status", SmallInteger()),
    must("body", JSONB()),
    must("made_at", INSTANT),
)
