"""Metrics of runs, whoever settles or moves them."""

from __future__ import annotations

from typing import Final

from noonmark.telemetry.declaring import Part

_declare = Part("every")

_START_DELAY_BUCKETS: Final = (
    *(0.001, 0.002, 0.005, 0.01, 0.015, 0.02, 0.025, 0.03, 0.04, 0.05, 0.075, 0.1, 0.15, 0.2, 0.3, 0.5),
    *(1, 2, 5, 10, 30, 60, 300, 900, 3600),
)
_DURATION_BUCKETS: Final = (
    *(0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5),
    *(1, 2.5, 5, 10, 30, 60, 300, 900, 3600),
)

RUNS_SETTLED = _declare.counter(
    "runs_settled_total",
    ("state", "lane"),
    "Runs that reached a verdict, by the state they ended in.",
    "A rising share of `dead` or `unknown`: read `noonmark run list --state dead` and the last errors.",
)
START_DELAY = _declare.histogram(
    "start_delay_seconds",
    ("lane",),
    _START_DELAY_BUCKETS,
    "Seconds from the due instant to the start of the handler.",
    "High while `start_backlog` is high: add workers or slots. High alone: look at `claim_seconds` and "
    "`outbox_oldest_seconds`.",
)
ATTEMPT_DURATION = _declare.histogram(
    "attempt_duration_seconds",
    ("kind", "outcome"),
    _DURATION_BUCKETS,
    "Seconds from the start of an attempt to its outcome.",
    "Compare with the jobs' timeouts; many `timed_out` means a slow target or a timeout that is too short.",
)
RUNS_IN_STATE = _declare.gauge(
    "runs_in_state",
    ("state",),
    "Unfinished runs that are `waiting`, `queued` or `running`, counted in Postgres now and then.",
    "Growing `queued`: workers do not keep up. Growing `waiting`: look at the wait reasons.",
)
START_SLO = _declare.counter(
    "start_slo_total",
    ("lane",),
    "Runs started for the first time that count for the start objective; those of backfills do not.",
    "Compare with `start_slo_good_total`: the share that is missing burns the objective's budget.",
)
START_SLO_GOOD = _declare.counter(
    "start_slo_good_total",
    ("lane",),
    "Those of them that started within their lane's `NOONMARK_START_OBJECTIVE_SECONDS` of their instant.",
    "As for `start_delay_seconds`.",
)
SKIPPED = _declare.counter(
    "skipped_total",
    ("reason",),
    "Due instants whose verdict is that they did not run, by reason.",
    "`misfired`: claims were late or stood still. `overlap`: runs take longer than the period.",
)
RETRIES = _declare.counter(
    "retries_total",
    ("kind",),
    "Attempts that will be made again, because they failed or were snoozed; by kind of job.",
    "A steady rate of one kind: read the last errors in `noonmark run list --state retrying`.",
)
DEAD_RUNS = _declare.counter(
    "dead_runs_total",
    ("kind",),
    "Runs that died: their attempts are used up, by kind of job.",
    "Read `noonmark dead list`; mend the cause, then `noonmark dead redrive`.",
)
LOST_RUNS = _declare.counter(
    "lost_runs_total",
    (),
    "Running runs taken from a worker whose lease ended.",
    "Find out why workers vanish: memory limit, node loss, a handler that kills its process.",
)
HANDED_BACK = _declare.counter(
    "handed_back_total",
    (),
    "Runs a worker gave back unfinished, at a drain or because it did not hold them in memory.",
    "Normal at deployments; steady growth otherwise means `drain_seconds` is too short.",
)
RESENT_RUNS = _declare.counter(
    "resent_runs_total",
    (),
    "Queued runs sent again because their message had provably vanished.",
    "Any growth: a topic was deleted, truncated, or its retention is shorter than the backlog.",
)
PARKED_RUNS = _declare.counter(
    "parked_runs_total",
    (),
    "Runs set aside because Kafka refused their message for good (unknown topic, too large).",
    "Read the reason in `noonmark run list --state waiting`; make the pool's topics or shorten the payload.",
)
FENCED_WRITES = _declare.counter(
    "fenced_writes_total",
    ("service", "statement"),
    "Writes that matched no row because a newer fence, owner or epoch had taken over.",
    "A few follow every lost worker. A steady rate: leases are shorter than pauses of the processes.",
)
