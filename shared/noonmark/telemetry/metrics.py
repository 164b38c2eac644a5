"""Every metric of every service, declared once.

docs/metrics.md is printed from this module:

    python -m noonmark.telemetry.metrics > docs/metrics.md

Label values are bounded: they come from the lists in `labels.LABELS`, from registered pools or from a
fixed number of partitions and slices, never from jobs. Count per batch: `inc(n)`, `observe_many`.
"""

from __future__ import annotations

import platform
import sys
from importlib.metadata import version
from typing import Final

from noonmark.telemetry.declaring import REGISTRY as REGISTRY  # noqa: PLC0414 - with the metrics on it
from noonmark.telemetry.declaring import TABLE as TABLE  # noqa: PLC0414 - likewise
from noonmark.telemetry.declaring import counter, gauge, histogram
from noonmark.telemetry.labels import LABELS

START_DELAY_BUCKETS: Final = (
    *(0.001, 0.002, 0.005, 0.01, 0.015, 0.02, 0.025, 0.03, 0.04, 0.05, 0.075, 0.1, 0.15, 0.2, 0.3, 0.5),
    *(1, 2, 5, 10, 30, 60, 300, 900, 3600),
)
_DURATION_BUCKETS: Final = (
    *(0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5),
    *(1, 2.5, 5, 10, 30, 60, 300, 900, 3600),
)
_STATEMENT_BUCKETS: Final = (
    0.0005,
    0.001,
    0.0025,
    0.005,
    0.01,
    0.025,
    0.05,
    0.1,
    0.25,
    0.5,
    1,
    2.5,
    5,
    10,
    30,
)
_BATCH_BUCKETS: Final = (1, 2, 5, 10, 20, 50, 100, 200, 500, 1000, 2000, 5000, 10_000)

# --- Runs -----------------------------------------------------------------------------------------
RUNS_SETTLED = counter(
    "runs_settled_total",
    ("state", "lane"),
    "Runs that reached a verdict, by the state they ended in.",
    "A rising share of `dead` or `unknown`: read `noonmark run list --state dead` and the last errors.",
)
START_DELAY = histogram(
    "start_delay_seconds",
    ("lane",),
    START_DELAY_BUCKETS,
    "Seconds from the due instant to the start of the handler.",
    "High while `start_backlog` is high: add workers or slots. High alone: look at `claim_seconds` and "
    "`outbox_oldest_seconds`.",
)
ATTEMPT_DURATION = histogram(
    "attempt_duration_seconds",
    ("kind", "outcome"),
    _DURATION_BUCKETS,
    "Seconds from the start of an attempt to its outcome.",
    "Compare with the jobs' timeouts; many `timed_out` means a slow target or a timeout that is too short.",
)
RUNS_IN_STATE = gauge(
    "runs_in_state",
    ("state",),
    "Unfinished runs that are `waiting`, `queued` or `running`, counted in Postgres now and then.",
    "Growing `queued`: workers do not keep up. Growing `waiting`: look at the wait reasons.",
)
LOST_RUNS = counter(
    "lost_runs_total",
    (),
    "Running runs taken from a worker whose lease ended.",
    "Find out why workers vanish: memory limit, node loss, a handler that kills its process.",
)
HANDED_BACK = counter(
    "handed_back_total",
    (),
    "Runs a worker gave back unfinished, at a drain or because it did not hold them in memory.",
    "Normal at deployments; steady growth otherwise means `drain_seconds` is too short.",
)
RESENT_RUNS = counter(
    "resent_runs_total",
    (),
    "Queued runs sent again because their message had provably vanished.",
    "Any growth: a topic was deleted, truncated, or its retention is shorter than the backlog.",
)
PARKED_RUNS = counter(
    "parked_runs_total",
    (),
    "Runs set aside because Kafka refused their message for good (unknown topic, too large).",
    "Read the reason in `noonmark run list --state waiting`; make the pool's topics or shorten the payload.",
)
FENCED_WRITES = counter(
    "fenced_writes_total",
    ("service", "statement"),
    "Writes that matched no row because a newer fence, owner or epoch had taken over.",
    "A few follow every lost worker. A steady rate: leases are shorter than pauses of the processes.",
)

# --- Trigger --------------------------------------------------------------------------------------
CLAIM_BATCH_SIZE = histogram(
    "claim_batch_size",
    (),
    _BATCH_BUCKETS,
    "Due timers taken by one claim transaction.",
    "At `claim_batch` all the time: the trigger is behind; add a trigger process.",
)
CLAIM_SECONDS = histogram(
    "claim_seconds",
    ("statement",),
    _STATEMENT_BUCKETS,
    "Seconds one claiming statement took in Postgres, round trip included.",
    "Rising with the same batch size: look for a held snapshot (oldest xmin), dead rows, vacuum.",
)
CLAIMED = counter(
    "claimed_total",
    ("lane",),
    "Runs written by claims.",
    "Flat while jobs are due: see the trigger's `/livez` and `owned_shards`.",
)
PLANNING_BROKEN = counter(
    "planning_broken_total",
    (),
    "Jobs set to `broken` because their schedule could not be planned.",
    "Read `noonmark job list --state broken`; correct the schedule and apply the job again.",
)
BACKFILL_RUNS = counter(
    "backfill_runs_total",
    (),
    "Runs queued by backfills.",
    "Flat while `noonmark backfill list` shows running ones: read there what they wait for.",
)
LAPSED_WORKERS = counter(
    "lapsed_workers_total",
    (),
    "Workers whose lease ended without a goodbye.",
    "As for `lost_runs_total`; also check that workers reach Postgres.",
)
SELF_PAUSES = counter(
    "self_pauses_total",
    (),
    "Jobs that paused themselves after equal failures in a row (`pause_after_failures`).",
    "Read the reason in `noonmark job list --state paused -o wide`, mend the cause, resume the job.",
)
WAITING_RUNS = gauge(
    "waiting_runs",
    ("reason",),
    "Runs that wait, by what they wait for; shown by one trigger.",
    "`limit`, `fairness`: `noonmark limit list` and `noonmark namespace list` say whose figures are too low.",
)
PROMOTED = counter(
    "promoted_total",
    ("lane",),
    "Runs queued that had waited for room.",
    "Flat while `waiting_runs` grows: see there.",
)
PROMOTIONS_BLOCKED = counter(
    "promotions_blocked_total",
    ("reason",),
    "Looks at waiting runs that had to go on waiting.",
    "Far above `promoted_total`: runs that need several limits at once keep changing lines.",
)
ZONE_DATA_INFO = gauge(
    "zone_data_info",
    ("version", "active"),
    "Always 1; the labels say with which zone data this trigger plans, and whether they are the active ones.",
    '`active="no"`: it claims no job with a time zone. See docs/time-zones.md: `noonmark zones activate`, or '
    "restart it with the active version.",
)
OWNED_SHARDS = gauge(
    "owned_shards",
    ("role",),
    "Shards (trigger) or outbox slices (dispatcher) that this process owns.",
    "The sum over all processes must equal the number fixed at install; less for over 10 s: an owner hangs.",
)
OWNER_CHANGES = counter(
    "owner_changes_total",
    ("role",),
    "Shards or slices won or lost by this process.",
    "Steady growth without deployments: beats arrive late, look for CPU starvation.",
)

# --- Dispatcher -----------------------------------------------------------------------------------
RELAY_BATCH_SIZE = histogram(
    "relay_batch_size",
    (),
    _BATCH_BUCKETS,
    "Outbox rows sent by one relay round.",
    "At `relay_batch` all the time: add a dispatcher.",
)
RELAY_SECONDS = histogram(
    "relay_seconds",
    (),
    _STATEMENT_BUCKETS,
    "Seconds of one relay round: read, produce, acknowledgements, delete.",
    "Rising: look at the brokers' produce latency.",
)
OUTBOX_OLDEST = gauge(
    "outbox_oldest_seconds",
    ("slice",),
    "Age in seconds of the oldest unsent outbox row.",
    "Above `outbox_age_limit_seconds` claims stop: Kafka is away or refuses. See the dispatcher's log.",
)
OUTBOX_ROWS = gauge(
    "outbox_rows",
    ("slice",),
    "Unsent outbox rows.",
    "As for `outbox_oldest_seconds`.",
)
EVENTS_REFUSED = gauge(
    "events_refused",
    ("topic",),
    "Events in the outbox that Kafka refuses as they are: no such topic, too large, not allowed.",
    "Make the topic or grant WRITE: they are tried again each minute. "
    "See [kinds.md](kinds.md#refused-events).",
)
START_BACKLOG = gauge(
    "start_backlog",
    ("pool", "lane", "partition"),
    "Run messages not yet started. The figure for scaling and alerts.",
    "Growing: add workers to the pool or slots to its workers.",
)
START_BACKLOG_SECONDS = gauge(
    "start_backlog_seconds",
    ("pool", "lane"),
    "Age in seconds of the oldest run message not yet started.",
    "Compare with the lane's objective; growing in `low` only is the price of a busy `high`.",
)
COMMIT_LAG = gauge(
    "commit_lag",
    ("pool", "lane", "partition"),
    "Messages after the committed offset, as Kafka's own tools show it. One long run can hold it.",
    "No alarm by itself; high with a flat `start_backlog` means a long run, not a delay.",
)
SUBMISSIONS_LAG = gauge(
    "submissions_lag",
    ("topic", "partition"),
    "Submission events that intake has not committed yet.",
    "Growing: add intake processes, up to the number of partitions.",
)

# --- API ------------------------------------------------------------------------------------------
API_REQUESTS = counter(
    "api_requests_total",
    ("route", "method", "status"),
    "Requests answered by the API.",
    "Many 5xx: its log names them by request id. Many 401 or 403: a client has wrong credentials.",
)
API_REQUEST_SECONDS = histogram(
    "api_request_seconds",
    ("route",),
    (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0),
    "Seconds from a request's headers to the end of its answer.",
    "Compare with the load of Postgres; raise NOONMARK_API_CONNECTIONS, or run more instances.",
)

# --- Outboxes of applications ---------------------------------------------------------------------
APP_OUTBOX_OLDEST = gauge(
    "app_outbox_oldest_seconds",
    ("outbox",),
    "Seconds for which the first waiting row of an application's outbox has waited. Every dispatcher measures"
    " it: take the highest.",
    "Growing: no dispatcher relays it; look at `app_outbox_reachable` and the dispatchers' log.",
)
APP_OUTBOX_ROWS = gauge(
    "app_outbox_rows",
    ("outbox", "state"),
    "Rows of an application's outbox, `waiting` or `parked`, counted up to 100,000.",
    "`parked`: `noonmark outbox status` shows what is wrong with them.",
)
APP_OUTBOX_RELAYED = counter(
    "app_outbox_relayed_total",
    ("outbox", "result"),
    "Rows of an application's outbox that were dealt with; those `rejected` are parked.",
    "Some `duplicate` follow a crash of a dispatcher; they are harmless.",
)
APP_OUTBOX_REACHABLE = gauge(
    "app_outbox_reachable",
    ("outbox",),
    "1 while an application's outbox is being relayed, 0 while its database cannot be reached or refuses.",
    "0 on every dispatcher: look at the application's database, and at the dispatchers' log.",
)

# --- Intake ---------------------------------------------------------------------------------------
SUBMISSIONS = counter(
    "submissions_total",
    ("type", "result"),
    "Submission events taken in, by what became of them.",
    "Many `stale` or `duplicate`: a publisher sends again; it is harmless.",
)
REJECTIONS = counter(
    "rejections_total",
    ("reason",),
    "Submission events refused. Each has a row in `rejections` and an event on the rejections topic.",
    "Read `noonmark rejection list` and tell the publisher.",
)

# --- Worker ---------------------------------------------------------------------------------------
MESSAGE_REJECTED = counter(
    "message_rejected_total",
    ("reason",),
    "Run messages that were not believed: broken, not signed by a dispatcher, or not what the ledger says.",
    "`noonmark rejection list` shows some. Any growth of `bad_signature`: someone else writes to the run "
    "topics, or keys differ between services.",
)
DUPLICATE_MESSAGES = counter(
    "duplicate_messages_total",
    ("lane",),
    "Run messages that started nothing: repeated ones, and those of a queueing that is over.",
    "Some follow every crash, rebalance, pause or cancel. A steady rate: somebody replays the run topics.",
)
WORKER_SLOTS = gauge(
    "worker_slots",
    ("state",),
    "Execution slots of this worker, `free` or `busy`.",
    "No free slot for long while `start_backlog` grows: add workers.",
)
OFFSET_COMMIT_ERRORS = counter(
    "offsets_commit_errors_total",
    (),
    "Offset commits that Kafka refused. They are tried again; nothing is lost.",
    "Steady growth: rebalances without end, see the worker's log.",
)
HEARTBEAT_AGE = gauge(
    "heartbeat_age_seconds",
    (),
    "Seconds since Postgres last confirmed this worker's heartbeat.",
    "Near `lease_seconds` the worker is about to lose its runs: check Postgres and the network.",
)

# --- Every service --------------------------------------------------------------------------------
LOOP_ITERATIONS = counter(
    "loop_iterations_total",
    ("loop",),
    "Rounds made by a loop of the service.",
    "Very high with nothing to do: a loop that spins; report it.",
)
LAST_PROGRESS = gauge(
    "last_progress_timestamp_seconds",
    ("loop",),
    "Unix time at which the loop last made progress.",
    "Standing still: the loop hangs; `/livez` names it.",
)
BUILD_INFO = gauge(
    "build_info",
    ("version", "python"),
    "Always 1; the labels say what runs.",
    "Different versions side by side are fine during a deployment only.",
)
BUILD_INFO.labels(version("noonmark"), platform.python_version()).set(1)


def page() -> str:
    """Return the text of docs/metrics.md."""
    lines = [
        "# Metrics",
        "",
        "Every service shows these at `/metrics` of its own port. This page is printed by",
        "`python -m noonmark.telemetry.metrics`; do not edit it by hand.",
        "",
        "| name | type | labels | what it says | what to do |",
        "|---|---|---|---|---|",
    ]
    for row in TABLE:
        labels = ", ".join(f"`{label}`" for label in row.labels)
        lines.append(f"| `{row.name}` | {row.kind} | {labels} | {row.meaning} | {row.action} |")
    lines += ["", "## Labels", "", "| label | values |", "|---|---|"]
    lines += [f"| `{label}` | {values} |" for label, values in LABELS.items()]
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    sys.stdout.write(page())
