"""Workers: pools, leases, slots and memory."""

from __future__ import annotations

from typing import Final

from noonmark.telemetry.dashboards.common import (
    IN,
    LINKS,
    NAMESPACE,
    OF_POOL,
    POOL,
    RATE,
    rate_by,
)
from noonmark.telemetry.dashboards.parts import Dashboard, Panel, Query, Row

_OWN: Final = f'{IN},job=~"noonmark-worker.*"'

WORKERS: Final = Dashboard(
    uid="workers",
    title="noonmark / Workers",
    description="Are there enough workers, are they healthy, and what do they reject?",
    variables=(NAMESPACE, POOL),
    links=LINKS,
    rows=(
        Row(
            "Pools",
            (
                Panel(
                    "Workers by state",
                    "`silent`: no heartbeat for half of the lease. `draining`: accepts no new runs.",
                    [
                        Query(
                            f"max by (namespace, pool, state) (noonmark_workers{{{OF_POOL}}})",
                            "{{pool}} {{state}}",
                        )
                    ],
                    stacked=True,
                ),
                Panel(
                    "Slots in use",
                    "Share of a pool's slots that are busy. At 100 % with a backlog: add workers or slots.",
                    [Query(f"pool:noonmark_slots_busy:ratio{{{OF_POOL}}}", "{{pool}}")],
                    unit="percentunit",
                    thresholds=((0.9, "yellow"),),
                ),
                Panel(
                    "Slots",
                    "Execution slots of the workers that are not draining.",
                    [
                        Query(
                            f"max by (pool, state) (noonmark_pool_slots{{{OF_POOL}}})",
                            "{{pool}} {{state}}",
                        )
                    ],
                    stacked=True,
                ),
                Panel(
                    "Attempts per second",
                    "By outcome. Expect `handed_back` only during deployments.",
                    [Query(rate_by("outcome", "noonmark_attempt_duration_seconds_count", IN), "{{outcome}}")],
                    unit="reqps",
                    stacked=True,
                ),
            ),
        ),
        Row(
            "Leases",
            (
                Panel(
                    "Age of the heartbeat",
                    "Above the lease (15 s) a worker loses its runs. All late: Postgres. One late: its node.",
                    [Query(f"noonmark_heartbeat_age_seconds{{{IN}}}", "{{instance}}")],
                    unit="s",
                    thresholds=((7.5, "yellow"), (15, "red")),
                ),
                Panel(
                    "Workers and runs lost",
                    "Leases that expired without a shutdown, and the requeued runs, within ten minutes.",
                    [
                        Query(f"sum(increase(noonmark_lapsed_workers_total{{{IN}}}[10m]))", "workers"),
                        Query(f"sum(increase(noonmark_lost_runs_total{{{IN}}}[10m]))", "runs"),
                        Query(f"sum(increase(noonmark_handed_back_total{{{IN}}}[10m]))", "runs handed back"),
                    ],
                ),
                Panel(
                    "Fenced writes",
                    "Writes refused because a newer owner took over. A few follow every lost worker.",
                    [
                        Query(
                            f"sum by (job, statement) (rate(noonmark_fenced_writes_total{{{IN}}}{RATE}))",
                            "{{job}} {{statement}}",
                        )
                    ],
                    unit="reqps",
                ),
                Panel(
                    "Undeliverable runs",
                    "Parked (Kafka refuses the message) or sent again (the message was lost), within ten"
                    " minutes.",
                    [
                        Query(f"sum(increase(noonmark_parked_runs_total{{{IN}}}[10m]))", "set aside"),
                        Query(f"sum(increase(noonmark_resent_runs_total{{{IN}}}[10m]))", "sent again"),
                    ],
                ),
            ),
        ),
        Row(
            "Messages",
            (
                Panel(
                    "Messages refused",
                    "Any `bad_signature` or `mismatch`: another producer writes to the run topics.",
                    [Query(rate_by("reason", "noonmark_message_rejected_total", IN), "{{reason}}")],
                    unit="reqps",
                    thresholds=((0.001, "red"),),
                ),
                Panel(
                    "Duplicate messages",
                    "Some follow every crash, rebalance, pause or cancel.",
                    [Query(rate_by("lane", "noonmark_duplicate_messages_total", IN), "{{lane}}")],
                    unit="reqps",
                ),
                Panel(
                    "Offset commits refused",
                    "Steady growth: the group keeps rebalancing.",
                    [
                        Query(
                            f"sum by (instance) (rate(noonmark_offsets_commit_errors_total{{{IN}}}{RATE}))",
                            "{{instance}}",
                        )
                    ],
                    unit="reqps",
                ),
            ),
        ),
        Row(
            "Processes",
            (
                Panel(
                    "Busy slots by worker",
                    "One worker far below the others receives no work: check its `/readyz`.",
                    [Query(f'noonmark_worker_slots{{{IN},state="busy"}}', "{{instance}}")],
                    width=8,
                ),
                Panel(
                    "CPU",
                    "Cores used by each worker process, without handlers in separate processes.",
                    [Query(f"rate(process_cpu_seconds_total{{{_OWN}}}{RATE})", "{{instance}}")],
                    width=8,
                ),
                Panel(
                    "Memory",
                    "Resident memory of each worker process.",
                    [Query(f"process_resident_memory_bytes{{{_OWN}}}", "{{instance}}")],
                    unit="bytes",
                    width=8,
                ),
            ),
        ),
    ),
)
