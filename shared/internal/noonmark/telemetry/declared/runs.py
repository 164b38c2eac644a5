"""Metrics of runs."""

from __future__ import annotations

from typing import Final

from noonmark.core.states import SkipReason
from noonmark.telemetry.declared import labels
from noonmark.telemetry.declared.declaring import Part

_verdicts = Part("api", "intake", "trigger", "worker")
_skips = Part("trigger", "worker")
_trigger = Part("trigger")
_dispatcher = Part("dispatcher")
_worker = Part("worker")

_KINDS: Final = (*labels.KINDS, labels.UNKNOWN_KIND)

_START_DELAY_BUCKETS: Final = (
    *(0.001, 0.002, 0.005, 0.01, 0.015, 0.02, 0.025, 0.03, 0.04, 0.05, 0.075, 0.1, 0.15, 0.2, 0.3, 0.5),
    *(1, 2, 5, 10, 30, 60, 300, 900, 3600),
)
_DURATION_BUCKETS: Final = (
    *(0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5),
    *(1, 2.5, 5, 10, 30, 60, 300, 900, 3600),
)

RUNS_SETTLED = _verdicts.counter(
    "runs_settled_total",
    {"state": labels.FINAL_STATES, "lane": labels.LANES},
    "Runs that reached a verdict, by final state.",
    "A rising share of `dead` or `unknown`: check the last errors with `noonmark run list --state dead`.",
)
START_DELAY = _worker.histogram(
    "start_delay_seconds",
    {"lane": labels.LANES},
    _START_DELAY_BUCKETS,
    "Seconds from the due instant to the start of the handler.",
    "High with a high `start_backlog`: add workers or slots. High without it: check `claim_seconds` and "
    "`outbox_oldest_seconds`.",
)
ATTEMPT_DURATION = _worker.histogram(
    "attempt_duration_seconds",
    {"kind": labels.KINDS, "outcome": labels.WORKER_OUTCOMES},
    _DURATION_BUCKETS,
    "Seconds from the start of an attempt to its outcome.",
    "Compare with the jobs' timeouts. Many `timed_out`: the target is slow or the timeout too short.",
)
RUNS_IN_STATE = _dispatcher.gauge(
    "runs_in_state",
    ("state",),
    "Runs that are `waiting`, `queued` or `running`, counted in Postgres periodically.",
    "Growing `queued`: workers do not keep up. Growing `waiting`: check the wait reasons.",
)
START_SLO = _worker.counter(
    "start_slo_total",
    {"lane": labels.LANES},
    "First starts of runs that count for the start objective. Backfills do not count.",
    "Compare with `start_slo_good_total`: the difference uses up the error budget.",
)
START_SLO_GOOD = _worker.counter(
    "start_slo_good_total",
    {"lane": labels.LANES},
    "First starts within the lane's `NOONMARK_START_OBJECTIVE_SECONDS` after the due instant.",
    "See `start_delay_seconds`.",
)
SKIPPED = _skips.counter(
    "skipped_total",
    {"reason": tuple(SkipReason)},
    "Skipped due instants, by reason.",
    "`misfired`: claims were late or stopped. `overlap`: runs take longer than the period.",
)
RETRIES = _verdicts.counter(
    "retries_total",
    {"kind": _KINDS},
    "Attempts that will be retried because they failed or were snoozed, by kind of job.",
    "A steady rate of one kind: check the last errors with `noonmark run list --state retrying`.",
)
DEAD_RUNS = _verdicts.counter(
    "dead_runs_total",
    {"kind": _KINDS},
    "Runs that became dead letters because their attempts are used up, by kind of job.",
    "Read `noonmark dead list`, fix the cause, then run `noonmark dead redrive`.",
)
LOST_RUNS = _trigger.counter(
    "lost_runs_total",
    {},
    "Running runs of workers whose lease expired.",
    "Find out why workers disappear: memory limit, node loss, a handler that kills its process.",
)
HANDED_BACK = _worker.counter(
    "handed_back_total",
    {},
    "Runs that a worker handed back unfinished, during a drain or because they were not in its memory.",
    "Normal during deployments. Steady growth otherwise: `drain_seconds` is too short.",
)
RESENT_RUNS = _trigger.counter(
    "resent_runs_total",
    {},
    "Queued runs sent again because their message was provably lost.",
    "Any growth: a topic was deleted or truncated, or its retention is shorter than the backlog.",
)
PARKED_RUNS = _dispatcher.counter(
    "parked_runs_total",
    {},
    "Runs parked because Kafka permanently refused their message (unknown topic, too large).",
    "Reason: `noonmark run list --state waiting`. Create the pool's topics or shorten the payload.",
)
FENCED_WRITES = _worker.counter(
    "fenced_writes_total",
    {"service": ("worker",), "statement": labels.FENCED_STATEMENTS},
    "Writes that matched no row because of a newer fence, owner or epoch.",
    "A few follow every lost worker. A steady rate: leases are shorter than pauses of the processes.",
)
