"""Metrics of a worker."""

from __future__ import annotations

from noonmark.telemetry.declared import labels
from noonmark.telemetry.declared.declaring import Part

_declare = Part("worker")

MESSAGE_REJECTED = _declare.counter(
    "message_rejected_total",
    {"reason": labels.MESSAGE_REJECTION_REASONS},
    "Rejected run messages: malformed, not signed by a dispatcher, or not equal to the ledger.",
    "`noonmark rejection list` shows some of them. Any growth of `bad_signature`: another producer writes to "
    "the run topics, or keys differ between services.",
)
DUPLICATE_MESSAGES = _declare.counter(
    "duplicate_messages_total",
    {"lane": labels.LANES},
    "Run messages that started nothing: duplicates, and messages with an old fence.",
    "Some follow every crash, rebalance, pause or cancel. A steady rate: someone replays the run topics.",
)
WORKER_SLOTS = _declare.gauge(
    "worker_slots",
    ("state",),
    "Execution slots of this worker, `free` or `busy`.",
    "No free slot for a long time while `start_backlog` grows: add workers.",
)
OFFSET_COMMIT_ERRORS = _declare.counter(
    "offsets_commit_errors_total",
    {},
    "Offset commits that Kafka refused. The worker retries them. Nothing is lost.",
    "Steady growth: the group keeps rebalancing. See the worker's log.",
)
HEARTBEAT_AGE = _declare.gauge(
    "heartbeat_age_seconds",
    (),
    "Seconds since Postgres last confirmed this worker's heartbeat.",
    "Near `lease_seconds`: the worker is about to lose its runs. Check Postgres and the network.",
)
