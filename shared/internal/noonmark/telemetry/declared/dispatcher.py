"""Metrics of the relay, and of lag."""

from __future__ import annotations

from noonmark.telemetry.declared import buckets
from noonmark.telemetry.declared.declaring import Part

_declare = Part("dispatcher")

RELAY_BATCH_SIZE = _declare.histogram(
    "relay_batch_size",
    {},
    buckets.BATCH,
    "Runs or events sent in one relay round.",
    "Always at `relay_batch`: add a dispatcher.",
)
RUN_MESSAGES = _declare.counter(
    "run_messages_total",
    {},
    "Run messages that Kafka acknowledged; under load, one has many runs.",
    "As many as runs under load: a worker of the pool is of release 0.2, or Kafka refuses large messages.",
)
RELAY_SECONDS = _declare.histogram(
    "relay_seconds",
    {},
    buckets.STATEMENT,
    "Seconds of one relay round: read, produce, wait for acknowledgements, delete.",
    "Rising: check the brokers' produce latency.",
)
OUTBOX_OLDEST = _declare.gauge(
    "outbox_oldest_seconds",
    ("slice",),
    "Age in seconds of the oldest unsent outbox row.",
    "Above `outbox_age_limit_seconds` claims stop: Kafka is unreachable or refuses. See the log.",
)
OUTBOX_ROWS = _declare.gauge(
    "outbox_rows",
    ("slice",),
    "Unsent outbox rows.",
    "See `outbox_oldest_seconds`.",
)
EVENTS_REFUSED = _declare.gauge(
    "events_refused",
    ("topic",),
    "Events in the outbox that Kafka refuses: topic missing, event too large, or access denied.",
    "Create the topic or grant WRITE. The dispatcher retries every minute. "
    "See [kinds.md](kinds.md#refused-events).",
)
START_BACKLOG = _declare.gauge(
    "start_backlog",
    ("pool", "lane", "partition"),
    "Queued runs not yet started. Use it for scaling and alerts.",
    "Growing: add workers to the pool, or slots to its workers.",
)
START_BACKLOG_SECONDS = _declare.gauge(
    "start_backlog_seconds",
    ("pool", "lane"),
    "Age in seconds of the oldest queued run not yet started.",
    "Compare with the lane's objective. Growing only in `low`: a busy `high` lane has priority.",
)
START_BACKLOG_PARTITION_SECONDS = _declare.gauge(
    "start_backlog_partition_seconds",
    ("pool", "lane", "partition"),
    "Age in seconds of the oldest queued run not yet started, by partition.",
    "One partition far above the others: its worker hangs. Check `/livez` of the pool's workers.",
)
COMMIT_LAG = _declare.gauge(
    "commit_lag",
    ("pool", "lane", "partition"),
    "Messages after the committed offset, as in Kafka's own tools. One long run can keep it high.",
    "Do not alert on it. If it is high and `start_backlog` is flat, there is a long run and no delay.",
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
    "See `submissions_lag`. Growing with no running intake: start one.",
)
