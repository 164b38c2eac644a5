"""All metrics of all services. Import metrics from this module.

It also prints docs/metrics.md:

    python -m noonmark.telemetry.metrics > docs/metrics.md

`noonmark.telemetry.declared` declares each metric once. Label values are bounded: they come from the lists in
`labels.LABELS`, from registered pools, from a fixed number of partitions and slices, or from the namespaces
with the most runs, never from jobs. Count once per batch: `inc(n)`, `observe_many`.
"""

from __future__ import annotations

import sys
from typing import Final

from noonmark.telemetry.declared.api import (
    API_REQUEST_SECONDS,
    API_REQUESTS,
)
from noonmark.telemetry.declared.app_outboxes import (
    APP_OUTBOX_OLDEST,
    APP_OUTBOX_REACHABLE,
    APP_OUTBOX_RELAYED,
    APP_OUTBOX_ROWS,
)
from noonmark.telemetry.declared.declaring import REGISTRY, TABLE, metrics_of, rows_of
from noonmark.telemetry.declared.dispatcher import (
    COMMIT_LAG,
    EVENTS_REFUSED,
    OUTBOX_OLDEST,
    OUTBOX_ROWS,
    RELAY_BATCH_SIZE,
    RELAY_SECONDS,
    RUN_MESSAGES,
    START_BACKLOG,
    START_BACKLOG_PARTITION_SECONDS,
    START_BACKLOG_SECONDS,
    SUBMISSIONS_LAG,
    SUBMISSIONS_OLDEST,
)
from noonmark.telemetry.declared.intake import (
    REJECTIONS,
    SUBMISSIONS,
)
from noonmark.telemetry.declared.labels import LABELS, SERVICES
from noonmark.telemetry.declared.observing import (
    ALERT_DELIVERIES,
    ALERT_DELIVERIES_WAITING,
    ALERTS,
    ALERTS_OPEN,
    OBSERVER_LAG,
    WATCHDOG_BEATS,
    WATCHDOG_PART_OK,
)
from noonmark.telemetry.declared.ownership import (
    LEADER_CHANGES,
    LEADS,
    OWNED_SHARDS,
    OWNER_CHANGES,
    SHARDS,
)
from noonmark.telemetry.declared.runs import (
    ATTEMPT_DURATION,
    DEAD_RUNS,
    FENCED_WRITES,
    HANDED_BACK,
    LOST_RUNS,
    PARKED_RUNS,
    RESENT_RUNS,
    RETRIES,
    RUNS_IN_STATE,
    RUNS_SETTLED,
    SKIPPED,
    START_DELAY,
    START_SLO,
    START_SLO_GOOD,
)
from noonmark.telemetry.declared.service import (
    BUILD_INFO,
    LAST_PROGRESS,
    LOOP_ITERATIONS,
)
from noonmark.telemetry.declared.trigger import (
    BACKFILL_RUNS,
    CLAIM_BATCH_SIZE,
    CLAIM_SECONDS,
    CLAIMED,
    DATABASE_CONNECTIONS,
    DEAD_LETTERS,
    DEAD_ROWS,
    DUE_OLDEST,
    DUE_TIMERS,
    LAPSED_WORKERS,
    NAMESPACE_RUNS,
    OLDEST_XMIN,
    PLANNING_BROKEN,
    POOL_SLOTS,
    PROMOTED,
    PROMOTIONS_BLOCKED,
    SELF_PAUSES,
    WAITING_RUNS,
    WORKERS,
    WORKFLOW_FACTS,
    WORKFLOW_FACTS_OLDEST,
    WORKFLOW_PASS_SECONDS,
    WORKFLOW_TASKS,
    WORKFLOWS_BROKEN,
    WORKFLOWS_OPENED,
    ZONE_DATA_INFO,
)
from noonmark.telemetry.declared.verify import (
    VERIFY_COMPLETED,
    VERIFY_FINDINGS,
    VERIFY_PERIOD,
    VERIFY_RUNS,
)
from noonmark.telemetry.declared.worker import (
    DUPLICATE_MESSAGES,
    HEARTBEAT_AGE,
    MESSAGE_REJECTED,
    OFFSET_COMMIT_ERRORS,
    WORKER_SLOTS,
)

__all__ = [
    "ALERTS",
    "ALERTS_OPEN",
    "ALERT_DELIVERIES",
    "ALERT_DELIVERIES_WAITING",
    "API_REQUESTS",
    "API_REQUEST_SECONDS",
    "APP_OUTBOX_OLDEST",
    "APP_OUTBOX_REACHABLE",
    "APP_OUTBOX_RELAYED",
    "APP_OUTBOX_ROWS",
    "ATTEMPT_DURATION",
    "BACKFILL_RUNS",
    "BUILD_INFO",
    "CLAIMED",
    "CLAIM_BATCH_SIZE",
    "CLAIM_SECONDS",
    "COMMIT_LAG",
    "DATABASE_CONNECTIONS",
    "DEAD_LETTERS",
    "DEAD_ROWS",
    "DEAD_RUNS",
    "DUE_OLDEST",
    "DUE_TIMERS",
    "DUPLICATE_MESSAGES",
    "EVENTS_REFUSED",
    "FENCED_WRITES",
    "HANDED_BACK",
    "HEARTBEAT_AGE",
    "LABELS",
    "LAPSED_WORKERS",
    "LAST_PROGRESS",
    "LEADER_CHANGES",
    "LEADS",
    "LOOP_ITERATIONS",
    "LOST_RUNS",
    "MESSAGE_REJECTED",
    "NAMESPACE_RUNS",
    "OBSERVER_LAG",
    "OFFSET_COMMIT_ERRORS",
    "OLDEST_XMIN",
    "OUTBOX_OLDEST",
    "OUTBOX_ROWS",
    "OWNED_SHARDS",
    "OWNER_CHANGES",
    "PARKED_RUNS",
    "PLANNING_BROKEN",
    "POOL_SLOTS",
    "PROMOTED",
    "PROMOTIONS_BLOCKED",
    "REGISTRY",
    "REJECTIONS",
    "RELAY_BATCH_SIZE",
    "RELAY_SECONDS",
    "RESENT_RUNS",
    "RETRIES",
    "RUNS_IN_STATE",
    "RUNS_SETTLED",
    "RUN_MESSAGES",
    "SELF_PAUSES",
    "SHARDS",
    "SKIPPED",
    "START_BACKLOG",
    "START_BACKLOG_PARTITION_SECONDS",
    "START_BACKLOG_SECONDS",
    "START_DELAY",
    "START_SLO",
    "START_SLO_GOOD",
    "SUBMISSIONS",
    "SUBMISSIONS_LAG",
    "SUBMISSIONS_OLDEST",
    "TABLE",
    "VERIFY_COMPLETED",
    "VERIFY_FINDINGS",
    "VERIFY_PERIOD",
    "VERIFY_RUNS",
    "WAITING_RUNS",
    "WATCHDOG_BEATS",
    "WATCHDOG_PART_OK",
    "WORKERS",
    "WORKER_SLOTS",
    "WORKFLOWS_BROKEN",
    "WORKFLOWS_OPENED",
    "WORKFLOW_FACTS",
    "WORKFLOW_FACTS_OLDEST",
    "WORKFLOW_PASS_SECONDS",
    "WORKFLOW_TASKS",
    "ZONE_DATA_INFO",
    "metrics_of",
    "page",
    "rows_of",
]

_ORDER: Final = (
    "every",
    "trigger",
    "dispatcher",
    "intake",
    "api",
    "worker",
    "observer",
    "watchdog",
    "verify",
)


_EXPORTS: Final = """
A service exports only the metrics that it can change; the column *from* names these services. `every` means
all services, and `verify` the command `noonmark verify`, which writes its metrics to the file of
`--metrics-file`. All services also export `process_*` and `python_gc_*` of the Prometheus client.

A gauge has series only in the process that measures it, and only while that process does so. The leading
trigger or dispatcher measures some gauges for all, so use `max` over the processes.

If [tracing](tracing.md) is on, the buckets of histograms of seconds have exemplars with the `trace_id` of a
run or request, for scrapers that ask for OpenMetrics.

`/metrics?name[]=NAME` has the series of this name alone, which costs the service far less. Several names are
possible, such as `/metrics?name[]=noonmark_runs_settled_total&name[]=process_cpu_seconds_total`.
"""

_SERIES: Final = """
## Series

Counters and histograms start at 0 for every value of their labels that is known when the service starts:
lanes, states, reasons, kinds, outcomes, results, statements, roles and types. `rate` and `increase` ignore
the first value of a series that appears later, so they would miss the first event. The others:

- Loops, roles, channels of alerts and application outboxes start at 0, too, once the service has read its
  configuration.
- `noonmark_api_requests_total` starts at 0 for each route with its success status, 500 and 503: another 234
  series. Other statuses appear with their first request.
- `noonmark_api_request_seconds` appears with the first request of a route: the buckets of all routes would be
  more series than everything else that the API exports.
- Gauges appear when they are measured.

So many series of counters and histograms exist in each process from its start. Jobs, runs and namespaces add
none.

| service | metrics | series at the start |
|---|---|---|
"""


def page() -> str:
    """Return the text of docs/metrics.md."""
    lines = [
        "# Metrics",
        "",
        "Every service exports its metrics at `/metrics` on its metrics port. This page is generated by",
        "`python -m noonmark.telemetry.metrics`; do not edit it by hand.",
        *_EXPORTS.splitlines(),
        "",
        "| name | type | labels | from | meaning | action |",
        "|---|---|---|---|---|---|",
    ]
    for row in sorted(TABLE, key=lambda row: min(map(_ORDER.index, row.shown_by))):
        labels = ", ".join(f"`{label}`" for label in row.labels)
        shown_by = ", ".join(sorted(row.shown_by, key=_ORDER.index))
        lines.append(f"| `{row.name}` | {row.kind} | {labels} | {shown_by} | {row.meaning} | {row.action} |")
    lines += _SERIES.splitlines()
    lines += [
        f"| {service} | {len(rows)} | {sum(row.series for row in rows)} |"
        for service in sorted(SERVICES, key=_ORDER.index)
        if (rows := rows_of(service))
    ]
    lines += ["", "## Labels", "", "| label | values |", "|---|---|"]
    lines += [f"| `{label}` | {values} |" for label, values in LABELS.items()]
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    sys.stdout.write(page())
