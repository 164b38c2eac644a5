"""Metrics of the relay, and of how far everybody is behind."""

from __future__ import annotations

from noonmark.telemetry.declared import buckets
from noonmark.telemetry.declaring import Part

_declare = Part("dispatcher")

RELAY_BATCH_SIZE = _declare.histogram(
    "relay_batch_size",
    (),
    buckets.BATCH,
    "Outbox rows sent by one relay round.",
    "At `relay_batch` all the time: add a dispatcher.",
)
RELAY_SECONDS = _declare.histogram(
    "relay_seconds",
    (),
    buckets.STATEMENT,
    "Seconds of one relay round: read, produce, acknowledgements, delete.",
    "Rising: look at the brokers' produce latency.",
)
OUTBOX_OLDEST = _declare.gauge(
    "outbox_oldest_seconds",
    ("slice",),
    "Age in seconds of the oldest unsent outbox row.",
    "Above `outbox_age_limit_seconds` claims stop: Kafka is away or refuses. See the dispatcher's log.",
)
OUTBOX_ROWS = _declare.gauge(
    "outbox_rows",
    ("slice",),
    "Unsent outbox rows.",
    "As for `outbox_oldest_seconds`.",
)
EVENTS_REFUSED = _declare.gauge(
    "events_refused",
    ("topic",),
    "Events in the outbox that Kafka refuses as they are: no such topic, too large, not allowed.",
    "Make the topic or grant WRITE: they are tried again each minute. "
    "See [kinds.md](kinds.md#refused-events).",
)
START_BACKLOG = _declare.gauge(
    "start_backlog",
    ("pool", "lane", "partition"),
    "Run messages not yet started. The figure for scaling and alerts.",
    "Growing: add workers to the pool or slots to its workers.",
)
START_BACKLOG_SECONDS = _declare.gauge(
    "start_backlog_seconds",
    ("pool", "lane"),
    "Age in seconds of the oldest run message not yet started.",
    "Compare with the lane's objective; growing in `low` only is the price of a busy `high`.",
)
START_BACKLOG_PARTITION_SECONDS = _declare.gauge(
    "start_backlog_partition_seconds",
    ("pool", "lane", "partition"),
    "The same of each partition.",
    "One partition far above the others: its worker hangs, see `/livez` of the pool's workers.",
)
COMMIT_LAG = _declare.gauge(
    "commit_lag",
    ("pool", "lane", "partition"),
    "Messages after the committed offset, as Kafka's own tools show it. One long run can hold it.",
    "No alarm by itself; high with a flat `start_backlog` means a long run, not a delay.",
)
SUBMISSIONS_LAG = _declare.gauge(
    "submissions_lag",
    ("topic", "partition"),
    "Submission events that intake has not committed yet.",
    "Growing: add intake processes, up to the number of partitions.",
)
SUBMISSIONS_OLDEST = _declare.gauge(
    "submissions_oldest_seconds",
    ("topic",),
    "Age in seconds of the oldest submission event that intake has not committed yet.",
    "As for `submissions_lag`; growing with no intake at work: start one.",
)
