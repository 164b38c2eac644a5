"""Where work waits: in timers, in the outbox, in Kafka, or for room."""

from __future__ import annotations

from typing import Final

from noonmark.telemetry.dashboards.common import (
    BACKLOG,
    BACKLOG_SECONDS,
    BURN,
    IN,
    LANE,
    LINKS,
    NAMESPACE,
    OF_LANE,
    OF_POOL_AND_LANE,
    POOL,
    START_DELAY,
    quantile,
    rate_by,
)
from noonmark.telemetry.dashboards.parts import Dashboard, Panel, Query, Row

LANES_AND_LAG: Final = Dashboard(
    uid="lanes-and-lag",
    title="noonmark / Lanes and lag",
    description="Where work waits: in timers, in the outbox, in Kafka, or for room.",
    variables=(NAMESPACE, POOL, LANE),
    links=LINKS,
    rows=(
        Row(
            "Kafka to workers",
            (
                BACKLOG_SECONDS,
                BACKLOG,
                Panel(
                    "Oldest by partition",
                    "One partition far above the others: the worker that has it hangs.",
                    [
                        Query(
                            f"topk(12, noonmark_start_backlog_partition_seconds{{{OF_POOL_AND_LANE}}})",
                            "{{pool}} {{lane}} {{partition}}",
                        )
                    ],
                    unit="s",
                ),
                Panel(
                    "Commit lag",
                    "Messages after the committed offset, as Kafka's tools show it. High with a flat"
                    " backlog: one long run, not a delay.",
                    [
                        Query(
                            f"sum by (pool, lane) (noonmark_commit_lag{{{OF_POOL_AND_LANE}}})",
                            "{{pool}} {{lane}}",
                        )
                    ],
                ),
                START_DELAY,
                BURN,
            ),
        ),
        Row(
            "Timers to outbox",
            (
                Panel(
                    "Timers due and not claimed",
                    "Growing: triggers are behind, or held back by the outbox.",
                    [Query(f"max by (lane) (noonmark_due_timers{{{OF_LANE}}})", "{{lane}}")],
                ),
                Panel(
                    "Oldest due timer",
                    "Over a minute it pages.",
                    [Query(f"max by (lane) (noonmark_due_oldest_seconds{{{OF_LANE}}})", "{{lane}}")],
                    unit="s",
                    thresholds=((60, "red"),),
                ),
                Panel(
                    "Claimed per second",
                    "Flat while timers are due: look at `owned_shards`.",
                    [Query(rate_by("lane", "noonmark_claimed_total", OF_LANE), "{{lane}}")],
                    unit="reqps",
                    stacked=True,
                ),
                Panel(
                    "Time of a claim (p95)",
                    "Rising with the same batch size: a held snapshot, dead rows.",
                    [
                        Query(
                            quantile(0.95, "statement", "noonmark_claim_seconds", IN),
                            "{{statement}}",
                        )
                    ],
                    unit="s",
                    thresholds=((1, "red"),),
                ),
                Panel(
                    "Instants without a run",
                    "By the reason of their verdict. `misfired`: they came too late.",
                    [Query(rate_by("reason", "noonmark_skipped_total", IN), "{{reason}}")],
                    unit="reqps",
                ),
                Panel(
                    "Runs that wait for room",
                    "`limit`, `fairness`: `noonmark limit list` and `noonmark namespace list` say whose"
                    " figures are low.",
                    [Query(f"max by (reason) (noonmark_waiting_runs{{{IN}}})", "{{reason}}")],
                    stacked=True,
                ),
            ),
        ),
        Row(
            "Outbox to Kafka",
            (
                Panel(
                    "Oldest outbox row",
                    "By slice. Over 10 s claims of that slice stop.",
                    [Query(f"max by (slice) (noonmark_outbox_oldest_seconds{{{IN}}})", "slice {{slice}}")],
                    unit="s",
                    thresholds=((10, "yellow"), (30, "red")),
                ),
                Panel(
                    "Outbox rows",
                    "By slice. At 20,000 of a lane claims stop.",
                    [Query(f"max by (slice) (noonmark_outbox_rows{{{IN}}})", "slice {{slice}}")],
                    stacked=True,
                ),
                Panel(
                    "Time of a relay round (p95)",
                    "Rising: the brokers' produce latency.",
                    [Query(quantile(0.95, "", "noonmark_relay_seconds", IN), "p95")],
                    unit="s",
                ),
                Panel(
                    "Events that Kafka refuses",
                    "Make the topic, or grant WRITE.",
                    [Query(f"max by (topic) (noonmark_events_refused{{{IN}}})", "{{topic}}")],
                    thresholds=((1, "red"),),
                ),
            ),
        ),
        Row(
            "Submissions",
            (
                Panel(
                    "Oldest submission not taken in",
                    "By topic.",
                    [Query(f"max by (topic) (noonmark_submissions_oldest_seconds{{{IN}}})", "{{topic}}")],
                    unit="s",
                    thresholds=((60, "red"),),
                ),
                Panel(
                    "Submissions that wait",
                    "Growing: add intake processes, up to the partitions.",
                    [Query(f"sum by (topic) (noonmark_submissions_lag{{{IN}}})", "{{topic}}")],
                ),
                Panel(
                    "Taken in per second",
                    "By what became of them.",
                    [Query(rate_by("result", "noonmark_submissions_total", IN), "{{result}}")],
                    unit="reqps",
                    stacked=True,
                ),
                Panel(
                    "Outboxes of applications",
                    "How long the first waiting row has waited.",
                    [
                        Query(
                            f"max by (outbox) (noonmark_app_outbox_oldest_seconds{{{IN}}})",
                            "{{outbox}}",
                        )
                    ],
                    unit="s",
                    thresholds=((60, "red"),),
                ),
            ),
        ),
    ),
)
