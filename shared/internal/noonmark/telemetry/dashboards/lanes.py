"""Where work waits: in timers, in the outbox, in Kafka, or for a limit."""

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
    description="Where work waits: in timers, in the outbox, in Kafka, or for a limit.",
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
                    "One partition far above the others: its worker hangs.",
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
                    "Messages after the committed offset, as in Kafka's tools. If it is high and the"
                    " backlog is flat, there is a long run and no delay.",
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
                    "Growing: triggers are behind, or the outbox is full and claims stop.",
                    [Query(f"max by (lane) (noonmark_due_timers{{{OF_LANE}}})", "{{lane}}")],
                ),
                Panel(
                    "Oldest due timer",
                    "Pages above one minute.",
                    [Query(f"max by (lane) (noonmark_due_oldest_seconds{{{OF_LANE}}})", "{{lane}}")],
                    unit="s",
                    thresholds=((60, "red"),),
                ),
                Panel(
                    "Claimed per second",
                    "Flat while timers are due: check `owned_shards`.",
                    [Query(rate_by("lane", "noonmark_claimed_total", OF_LANE), "{{lane}}")],
                    unit="reqps",
                    stacked=True,
                ),
                Panel(
                    "Time of a claim (p95)",
                    "Rising with the same batch size: an open snapshot, dead rows.",
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
                    "Skipped instants",
                    "By reason. `misfired`: later than the grace time.",
                    [Query(rate_by("reason", "noonmark_skipped_total", IN), "{{reason}}")],
                    unit="reqps",
                ),
                Panel(
                    "Waiting runs",
                    "`limit`, `fairness`: find the limit or cap that is too low with `noonmark limit list`"
                    " or `noonmark namespace list`.",
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
                    "By slice. Above 10 s, claims of that slice stop.",
                    [Query(f"max by (slice) (noonmark_outbox_oldest_seconds{{{IN}}})", "slice {{slice}}")],
                    unit="s",
                    thresholds=((10, "yellow"), (30, "red")),
                ),
                Panel(
                    "Outbox rows",
                    "By slice. Claims of a lane stop at 20,000 rows.",
                    [Query(f"max by (slice) (noonmark_outbox_rows{{{IN}}})", "slice {{slice}}")],
                    stacked=True,
                ),
                Panel(
                    "Time of a relay round (p95)",
                    "Rising: check the brokers' produce latency.",
                    [Query(quantile(0.95, "", "noonmark_relay_seconds", IN), "p95")],
                    unit="s",
                ),
                Panel(
                    "Events refused by Kafka",
                    "Create the topic, or grant WRITE.",
                    [Query(f"max by (topic) (noonmark_events_refused{{{IN}}})", "{{topic}}")],
                    thresholds=((1, "red"),),
                ),
            ),
        ),
        Row(
            "Submissions",
            (
                Panel(
                    "Oldest waiting submission",
                    "By topic.",
                    [Query(f"max by (topic) (noonmark_submissions_oldest_seconds{{{IN}}})", "{{topic}}")],
                    unit="s",
                    thresholds=((60, "red"),),
                ),
                Panel(
                    "Waiting submissions",
                    "Growing: add intake processes, up to the number of partitions.",
                    [Query(f"sum by (topic) (noonmark_submissions_lag{{{IN}}})", "{{topic}}")],
                ),
                Panel(
                    "Ingested per second",
                    "By result.",
                    [Query(rate_by("result", "noonmark_submissions_total", IN), "{{result}}")],
                    unit="reqps",
                    stacked=True,
                ),
                Panel(
                    "Application outboxes",
                    "Time that the first waiting row has waited.",
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
