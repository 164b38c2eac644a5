"""Metrics of a worker."""

from __future__ import annotations

from noonmark.telemetry.declaring import Part

_declare = Part("worker")

MESSAGE_REJECTED = _declare.counter(
    "message_rejected_total",
    ("reason",),
    "Run messages that were not believed: broken, not signed by a dispatcher, or not what the ledger says.",
    "`noonmark rejection list` shows some. Any growth of `bad_signature`: someone else writes to the run "
    "topics, or keys differ between services.",
)
DUPLICATE_MESSAGES = _declare.counter(
    "duplicate_messages_total",
    ("lane",),
    "Run messages that started nothing: repeated ones, and those of a queueing that is over.",
    "Some follow every crash, rebalance, pause or cancel. A steady rate: somebody replays the run topics.",
)
WORKER_SLOTS = _declare.gauge(
    "worker_slots",
    ("state",),
    "Execution slots of this worker, `free` or `busy`.",
    "No free slot for long while `start_backlog` grows: add workers.",
)
OFFSET_COMMIT_ERRORS = _declare.counter(
    "offsets_commit_errors_total",
    (),
    "Offset commits that Kafka refused. They are tried again; nothing is lost.",
    "Steady growth: rebalances without end, see the worker's log.",
)
HEARTBEAT_AGE = _declare.gauge(
    "heartbeat_age_seconds",
    (),
    "Seconds since Postgres last confirmed this worker's heartbeat.",
    "Near `lease_seconds` the worker is about to lose its runs: check Postgres and the network.",
)
