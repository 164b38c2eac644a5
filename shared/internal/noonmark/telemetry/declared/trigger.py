"""Metrics of the trigger, and of Postgres as one trigger measures it."""

from __future__ import annotations

from noonmark.telemetry.declared import buckets, labels
from noonmark.telemetry.declared.declaring import Part

_declare = Part("trigger")

CLAIM_BATCH_SIZE = _declare.histogram(
    "claim_batch_size",
    {},
    buckets.BATCH,
    "Due timers claimed in one transaction.",
    "Always at `claim_batch`: the trigger is behind. Add a trigger process.",
)
CLAIM_SECONDS = _declare.histogram(
    "claim_seconds",
    {"statement": labels.CLAIM_STATEMENTS},
    buckets.STATEMENT,
    "Seconds of one claim statement in Postgres, with the round trip.",
    "Rising with the same batch size: check for an open snapshot (oldest xmin), dead rows, vacuum.",
)
CLAIMED = _declare.counter(
    "claimed_total",
    {"lane": labels.LANES},
    "Runs created by claims.",
    "Flat while jobs are due: check the trigger's `/livez` and `owned_shards`.",
)
DUE_TIMERS = _declare.gauge(
    "due_timers",
    ("lane",),
    "Due timers not yet claimed, counted up to 1,000 per shard and kind. Reported by one trigger.",
    "Growing: triggers do not keep up, or claims stop because the outbox is full.",
)
DUE_OLDEST = _declare.gauge(
    "due_oldest_seconds",
    ("lane",),
    "Age in seconds of the oldest due timer not yet claimed; 0 if none. Reported by one trigger.",
    "Over a few seconds: check `outbox_oldest_seconds`, `owned_shards` and the trigger's log.",
)
PLANNING_BROKEN = _declare.counter(
    "planning_broken_total",
    {},
    "Jobs set to `broken` because their schedule could not be planned.",
    "List them with `noonmark job list --state broken`. Correct the schedule and apply the job again.",
)
BACKFILL_RUNS = _declare.counter(
    "backfill_runs_total",
    {},
    "Runs queued by backfills.",
    "Flat while `noonmark backfill list` shows running backfills: the list says what they wait for.",
)
LAPSED_WORKERS = _declare.counter(
    "lapsed_workers_total",
    {},
    "Workers whose lease expired without a shutdown.",
    "See `lost_runs_total`. Also check that workers can reach Postgres.",
)
SELF_PAUSES = _declare.counter(
    "self_pauses_total",
    {},
    "Jobs paused automatically after consecutive equal failures (`pause_after_failures`).",
    "Find the reason with `noonmark job list --state paused -o wide`, fix the cause, resume the job.",
)
WAITING_RUNS = _declare.gauge(
    "waiting_runs",
    ("reason",),
    "Waiting runs, by the reason that they wait for. Reported by one trigger.",
    "`limit`, `fairness`: find the limit or cap that is too low with `noonmark limit list` or "
    "`noonmark namespace list`.",
)
PROMOTED = _declare.counter(
    "promoted_total",
    {"lane": labels.LANES},
    "Waiting runs that were promoted to `queued`.",
    "Flat while `waiting_runs` grows: see `waiting_runs`.",
)
PROMOTIONS_BLOCKED = _declare.counter(
    "promotions_blocked_total",
    {"reason": labels.GATE_REASONS},
    "Checks of waiting runs that could not be promoted.",
    "Far above `promoted_total`: runs that need several limits at once keep moving between queues.",
)
WORKFLOW_FACTS = _declare.counter(
    "workflow_facts_total",
    {},
    "Timers of workflows that triggers took: a task ended, or a workflow run is to open or to stop.",
    "Flat while workflow runs are under way: check the trigger's `/livez` and `owned_shards`.",
)
WORKFLOW_FACTS_OLDEST = _declare.gauge(
    "workflow_facts_oldest_seconds",
    ("lane",),
    "Age in seconds of the oldest due timer of a workflow not yet taken; 0 if none. Reported by one trigger.",
    "Over a few seconds: tasks have ended and nothing follows. Check the trigger's log and `owned_shards`.",
)
WORKFLOW_PASS_SECONDS = _declare.histogram(
    "workflow_pass_seconds",
    {},
    buckets.STATEMENT,
    "Seconds of one pass that advances workflows, with its transaction.",
    "Rising with the same number of facts: check for an open snapshot (oldest xmin), dead rows, vacuum.",
)
WORKFLOW_TASKS = _declare.counter(
    "workflow_tasks_total",
    {"decision": ("queued", "waiting", "skipped")},
    "Tasks of workflow runs, by what was decided about them.",
    "`skipped` rises after failures: `noonmark run tasks` shows which tasks, and why.",
)
WORKFLOWS_OPENED = _declare.counter(
    "workflows_opened_total",
    {},
    "Workflow runs whose first tasks were decided.",
    "Flat while workflows are due: check dispatchers, which hand them over, and triggers.",
)
WORKFLOWS_BROKEN = _declare.counter(
    "workflows_broken_total",
    {},
    "Times that a workflow run could not be advanced; it is tried again every minute.",
    "The trigger's log has the run and the reason (`workflow_not_advanced`).",
)
ZONE_DATA_INFO = _declare.gauge(
    "zone_data_info",
    ("version", "active"),
    "Always 1. The labels have the version of this trigger's zone data, and whether it is the active one.",
    '`active="no"`: the trigger claims no job with a time zone. Run `noonmark zones activate`, or restart it '
    "with the active version. See docs/time-zones.md.",
)
DEAD_LETTERS = _declare.gauge(
    "dead_letters",
    (),
    "Dead letters not yet redriven or discarded, counted up to 100,000. Reported by one trigger.",
    "Read `noonmark dead list`, then redrive or discard them.",
)
WORKERS = _declare.gauge(
    "workers",
    ("pool", "state"),
    "Workers by state. `silent`: no heartbeat for half of the lease. Reported by one trigger.",
    "No `live` workers and a backlog: start workers. `silent`: check the node and its network.",
)
POOL_SLOTS = _declare.gauge(
    "pool_slots",
    ("pool", "state"),
    "Execution slots of a pool's workers that are not draining, `free` or `busy`. Reported by one trigger.",
    "None free for a long time while `start_backlog` grows: add workers or slots.",
)
NAMESPACE_RUNS = _declare.gauge(
    "namespace_runs",
    ("namespace", "state"),
    "Runs that are `waiting` or `running`, and dead letters (`dead`), of the 50 namespaces with the most."
    " All others are in `_other`. Reported by one trigger.",
    "One namespace far above the others: give it a cap with `noonmark namespace set`.",
)
OLDEST_XMIN = _declare.gauge(
    "oldest_xmin_seconds",
    (),
    "Age in seconds of the oldest transaction with an open snapshot in Postgres. Vacuum cannot remove rows"
    " deleted since then. Reported by one trigger.",
    "Over a few minutes: claims scan dead rows. Find the session in `pg_stat_activity` and terminate it.",
)
DEAD_ROWS = _declare.gauge(
    "dead_rows",
    ("table",),
    "Dead rows in the tables with the most changes, as estimated by Postgres. Reported by one trigger.",
    "Always growing: autovacuum does not keep up, or `oldest_xmin_seconds` is high.",
)
DATABASE_CONNECTIONS = _declare.gauge(
    "database_connections",
    ("state",),
    "Connections of noonmark's services to this database, from Postgres. Reported by one trigger.",
    "Near `max_connections`: use a pooler for api, intake and workers, or lower `NOONMARK_API_CONNECTIONS`.",
)
