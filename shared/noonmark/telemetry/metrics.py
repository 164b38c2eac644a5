"""Every metric of every service: the one place where they are imported from.

docs/metrics.md is printed from this module:

    python -m noonmark.telemetry.metrics > docs/metrics.md

They are declared in `noonmark.telemetry.declared`, each once. Label values are bounded: they come from the
lists in `labels.LABELS`, from registered pools, from a fixed number of partitions and slices or from the
namespaces with the most runs, never from jobs. Count per batch: `inc(n)`, `observe_many`.
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
from noonmark.telemetry.declared.dispatcher import (
    COMMIT_LAG,
    EVENTS_REFUSED,
    OUTBOX_OLDEST,
    OUTBOX_ROWS,
    RELAY_BATCH_SIZE,
    RELAY_SECONDS,
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
from noonmark.telemetry.declared.observing import (
    ALERT_DELIVERIES,
    ALERT_DELIVERIES_WAITING,
    ALERTS,
    ALERTS_OPEN,
    OBSERVER_LAG,
    WATCHDOG_BEATS,
    WATCHDOG_PART_OK,
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
    LEADER_CHANGES,
    LEADS,
    NAMESPACE_RUNS,
    OLDEST_XMIN,
    OWNED_SHARDS,
    OWNER_CHANGES,
    PLANNING_BROKEN,
    POOL_SLOTS,
    PROMOTED,
    PROMOTIONS_BLOCKED,
    SELF_PAUSES,
    SHARDS,
    WAITING_RUNS,
    WORKERS,
    ZONE_DATA_INFO,
)
from noonmark.telemetry.declared.worker import (
    DUPLICATE_MESSAGES,
    HEARTBEAT_AGE,
    MESSAGE_REJECTED,
    OFFSET_COMMIT_ERRORS,
    WORKER_SLOTS,
)
from noonmark.telemetry.declaring import REGISTRY, TABLE
from noonmark.telemetry.labels import LABELS

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
    "WAITING_RUNS",
    "WATCHDOG_BEATS",
    "WATCHDOG_PART_OK",
    "WORKERS",
    "WORKER_SLOTS",
    "ZONE_DATA_INFO",
    "page",
]

_ORDER: Final = ("every", "trigger", "dispatcher", "intake", "api", "worker", "observer", "watchdog")


def page() -> str:
    """Return the text of docs/metrics.md."""
    lines = [
        "# Metrics",
        "",
        "Every service shows these at `/metrics` of its own port. This page is printed by",
        "`python -m noonmark.telemetry.metrics`; do not edit it by hand.",
        "",
        "A gauge has series only where it is measured, and only while it is: what one trigger or dispatcher",
        "measures for all moves with the lead, so take the `max` over the processes. The column *from* names",
        "the service that measures.",
        "",
        "| name | type | labels | from | what it says | what to do |",
        "|---|---|---|---|---|---|",
    ]
    for row in sorted(TABLE, key=lambda row: _ORDER.index(row.shown_by)):
        labels = ", ".join(f"`{label}`" for label in row.labels)
        lines.append(
            f"| `{row.name}` | {row.kind} | {labels} | {row.shown_by} | {row.meaning} | {row.action} |"
        )
    lines += ["", "## Labels", "", "| label | values |", "|---|---|"]
    lines += [f"| `{label}` | {values} |" for label, values in LABELS.items()]
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    sys.stdout.write(page())
