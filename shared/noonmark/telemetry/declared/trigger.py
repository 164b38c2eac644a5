"""Metrics of what the trigger does."""

from __future__ import annotations

from noonmark.telemetry.declared import buckets
from noonmark.telemetry.declaring import Part

_declare = Part("trigger")

CLAIM_BATCH_SIZE = _declare.histogram(
    "claim_batch_size",
    (),
    buckets.BATCH,
    "Due timers taken by one claim transaction.",
    "At `claim_batch` all the time: the trigger is behind; add a trigger process.",
)
CLAIM_SECONDS = _declare.histogram(
    "claim_seconds",
    ("statement",),
    buckets.STATEMENT,
    "Seconds one claiming statement took in Postgres, round trip included.",
    "Rising with the same batch size: look for a held snapshot (oldest xmin), dead rows, vacuum.",
)
CLAIMED = _declare.counter(
    "claimed_total",
    ("lane",),
    "Runs written by claims.",
    "Flat while jobs are due: see the trigger's `/livez` and `owned_shards`.",
)
DUE_TIMERS = _declare.gauge(
    "due_timers",
    ("lane",),
    "Timers whose instant has come and that nobody has claimed; counted up to 1,000 per shard and kind. Shown"
    " by one trigger.",
    "Growing: triggers do not keep up, or claims are held back because the outbox is full.",
)
DUE_OLDEST = _declare.gauge(
    "due_oldest_seconds",
    ("lane",),
    "Seconds since the oldest of these instants; 0 when there is none. Shown by one trigger.",
    "Over a few seconds: look at `outbox_oldest_seconds`, `owned_shards` and the trigger's log.",
)
PLANNING_BROKEN = _declare.counter(
    "planning_broken_total",
    (),
    "Jobs set to `broken` because their schedule could not be planned.",
    "Read `noonmark job list --state broken`; correct the schedule and apply the job again.",
)
BACKFILL_RUNS = _declare.counter(
    "backfill_runs_total",
    (),
    "Runs queued by backfills.",
    "Flat while `noonmark backfill list` shows running ones: read there what they wait for.",
)
LAPSED_WORKERS = _declare.counter(
    "lapsed_workers_total",
    (),
    "Workers whose lease ended without a goodbye.",
    "As for `lost_runs_total`; also check that workers reach Postgres.",
)
SELF_PAUSES = _declare.counter(
    "self_pauses_total",
    (),
    "Jobs that paused themselves after equal failures in a row (`pause_after_failures`).",
    "Read the reason in `noonmark job list --state paused -o wide`, mend the cause, resume the job.",
)
WAITING_RUNS = _declare.gauge(
    "waiting_runs",
    ("reason",),
    "Runs that wait, by what they wait for; shown by one trigger.",
    "`limit`, `fairness`: `noonmark limit list` and `noonmark namespace list` say whose figures are too low.",
)
PROMOTED = _declare.counter(
    "promoted_total",
    ("lane",),
    "Runs queued that had waited for room.",
    "Flat while `waiting_runs` grows: see there.",
)
PROMOTIONS_BLOCKED = _declare.counter(
    "promotions_blocked_total",
    ("reason",),
    "Looks at waiting runs that had to go on waiting.",
    "Far above `promoted_total`: runs that need several limits at once keep changing lines.",
)
ZONE_DATA_INFO = _declare.gauge(
    "zone_data_info",
    ("version", "active"),
    "Always 1; the labels say with which zone data this trigger plans, and whether they are the active ones.",
    '`active="no"`: it claims no job with a time zone. See docs/time-zones.md: `noonmark zones activate`, or '
    "restart it with the active version.",
)
DEAD_LETTERS = _declare.gauge(
    "dead_letters",
    (),
    "Dead letters that wait for somebody, counted up to 100,000. Shown by one trigger.",
    "Read `noonmark dead list`; redrive or discard them.",
)
WORKERS = _declare.gauge(
    "workers",
    ("pool", "state"),
    "Workers by state; `silent` have sent no heartbeat for half of their lease. Shown by one trigger.",
    "No `live` one while the pool has a backlog: start workers. `silent`: check the node and its network.",
)
POOL_SLOTS = _declare.gauge(
    "pool_slots",
    ("pool", "state"),
    "Execution slots of a pool's workers that are not draining, `free` or `busy`. Shown by one trigger.",
    "None free for long while `start_backlog` grows: add workers or slots.",
)
NAMESPACE_RUNS = _declare.gauge(
    "namespace_runs",
    ("namespace", "state"),
    "Runs `waiting` and `running` and dead letters (`dead`) of the 50 namespaces with the most of them; the"
    " rest is `_other`. Shown by one trigger.",
    "One namespace far above the others: give it a cap with `noonmark namespace set`.",
)
OLDEST_XMIN = _declare.gauge(
    "oldest_xmin_seconds",
    (),
    "Seconds since the oldest transaction began that still holds a snapshot in Postgres; what was deleted"
    " since cannot be vacuumed. Shown by one trigger.",
    "Over a few minutes claims walk dead rows: end the session, see `pg_stat_activity`.",
)
DEAD_ROWS = _declare.gauge(
    "dead_rows",
    ("table",),
    "Dead rows in the tables that see the most changes, as Postgres estimates them. Shown by one trigger.",
    "Growing without end: autovacuum does not keep up, or `oldest_xmin_seconds` is high.",
)
DATABASE_CONNECTIONS = _declare.gauge(
    "database_connections",
    ("state",),
    "Connections of noonmark's services to this database, as Postgres sees them. Shown by one trigger.",
    "Near `max_connections`: use a pooler for api, intake and workers, or lower `NOONMARK_API_CONNECTIONS`.",
)
LEADS = _declare.gauge(
    "leads",
    ("role",),
    "1 where this process does what one of its role does for all, else 0.",
    "The sum over a role's processes must be 1; none for over 10 s: look at their logs.",
)
LEADER_CHANGES = _declare.counter(
    "leader_changes_total",
    ("role",),
    "Times that this process began or ceased to lead its role.",
    "As for `owner_changes_total`.",
)
OWNED_SHARDS = _declare.gauge(
    "owned_shards",
    ("role",),
    "Shards (trigger) or outbox slices (dispatcher) that this process owns.",
    "The sum over all processes must equal the number fixed at install; less for over 10 s: an owner hangs.",
)
SHARDS = _declare.gauge(
    "shards",
    ("role",),
    "Shards (trigger) or outbox slices (dispatcher) fixed at install.",
    "For comparison with the sum of `owned_shards`.",
)
OWNER_CHANGES = _declare.counter(
    "owner_changes_total",
    ("role",),
    "Shards or slices won or lost by this process.",
    "Steady growth without deployments: beats arrive late, look for CPU starvation.",
)
