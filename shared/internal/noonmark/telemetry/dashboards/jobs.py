"""Jobs by kind and lane, and how to inspect a single one."""

from __future__ import annotations

from typing import Final

from noonmark.telemetry.dashboards.common import (
    BURN,
    FAILURES,
    IN,
    KIND,
    LANE,
    LINKS,
    NAMESPACE,
    OF_KIND,
    OF_LANE,
    RATE,
    START_DELAY,
    quantile,
    rate_by,
)
from noonmark.telemetry.dashboards.parts import Dashboard, Panel, Query, Row

_SINGLE_JOB: Final = """\
Metrics have no label per job, because each job would add a series. To inspect a single job, use:

| question | command | API |
|---|---|---|
| why it has not run | `noonmark why JOB` | `GET /v1/jobs/{id}/why` |
| its last runs | `noonmark run list --job JOB --limit 20` | `GET /v1/runs?job={id}` |
| one run, its attempts, its log | `noonmark run show RUN`, `noonmark run logs RUN` | `GET /v1/runs/{id}` |
| its open alerts | `noonmark alert list` | `GET /v1/alerts` |
| dead letters by cause | `noonmark dead groups --job JOB` | `GET /v1/dead-letters` |
"""

JOB_DETAIL: Final = Dashboard(
    uid="job-detail",
    title="noonmark / Jobs",
    description="Jobs by kind and lane: durations, failures, retries, dead letters and alerts.",
    variables=(NAMESPACE, KIND, LANE),
    links=LINKS,
    rows=(
        Row(
            "A single job",
            (Panel("Inspect a single job", "", kind="text", text=_SINGLE_JOB, width=24, height=7),),
        ),
        Row(
            "Attempts",
            (
                Panel(
                    "Attempts per second",
                    "By kind and outcome.",
                    [
                        Query(
                            "sum by (kind, outcome)"
                            f" (rate(noonmark_attempt_duration_seconds_count{{{OF_KIND}}}{RATE}))",
                            "{{kind}} {{outcome}}",
                        )
                    ],
                    unit="reqps",
                    stacked=True,
                ),
                FAILURES,
                Panel(
                    "Duration of an attempt",
                    "Compare the p99 with the jobs' timeouts.",
                    [
                        Query(
                            quantile(0.5, "kind", "noonmark_attempt_duration_seconds", OF_KIND),
                            "p50 {{kind}}",
                        ),
                        Query(
                            f"kind:noonmark_attempt_duration_seconds:p99_rate5m{{{OF_KIND}}}",
                            "p99 {{kind}}",
                        ),
                    ],
                    unit="s",
                ),
                Panel(
                    "Durations",
                    "Number of attempts by duration, for the selected kinds.",
                    [
                        Query(
                            "sum by (le)"
                            f" (increase(noonmark_attempt_duration_seconds_bucket{{{OF_KIND}}}{RATE}))",
                            "{{le}}",
                        )
                    ],
                    unit="s",
                    kind="heatmap",
                ),
            ),
        ),
        Row(
            "Failures",
            (
                Panel(
                    "Retries per second",
                    "By kind. A target that recovers receives all retries at once.",
                    [Query(rate_by("kind", "noonmark_retries_total", OF_KIND), "{{kind}}")],
                    unit="reqps",
                    width=8,
                ),
                Panel(
                    "New dead letters",
                    "Runs that became dead letters within an hour, by kind.",
                    [
                        Query(
                            f"sum by (kind) (increase(noonmark_dead_runs_total{{{OF_KIND}}}[1h]))", "{{kind}}"
                        )
                    ],
                    width=8,
                ),
                Panel(
                    "Jobs paused automatically, or broken",
                    "Within an hour: paused after equal failures in a row, or broken by an invalid schedule.",
                    [
                        Query(
                            f"sum(increase(noonmark_self_pauses_total{{{IN}}}[1h]))", "paused automatically"
                        ),
                        Query(f"sum(increase(noonmark_planning_broken_total{{{IN}}}[1h]))", "broken"),
                    ],
                    width=8,
                ),
            ),
        ),
        Row(
            "Starts",
            (
                START_DELAY,
                BURN,
                Panel(
                    "Start delays",
                    "Number of runs by start delay, for the selected lanes.",
                    [
                        Query(
                            f"sum by (le) (increase(noonmark_start_delay_seconds_bucket{{{OF_LANE}}}{RATE}))",
                            "{{le}}",
                        )
                    ],
                    unit="s",
                    kind="heatmap",
                ),
                Panel(
                    "Starts within the objective",
                    "Share of starts in the selected time range, by lane.",
                    [
                        Query(
                            f"sum by (lane) (increase(noonmark_start_slo_good_total{{{OF_LANE}}}[$__range]))"
                            f" / sum by (lane) (increase(noonmark_start_slo_total{{{OF_LANE}}}[$__range]))",
                            "{{lane}}",
                        )
                    ],
                    unit="percentunit",
                    kind="stat",
                ),
            ),
        ),
        Row(
            "Alerts of the observer",
            (
                Panel(
                    "Open alerts",
                    "Runaway, late, stuck, failing, dead, silent: `noonmark alert list` names the jobs.",
                    [Query(f"max by (kind) (noonmark_alerts_open{{{IN}}})", "{{kind}}")],
                    width=8,
                    stacked=True,
                ),
                Panel(
                    "Raised and resolved",
                    "Within ten minutes. If alerts of one kind keep resolving, its threshold is too tight.",
                    [
                        Query(
                            f"sum by (kind, change) (increase(noonmark_alerts_total{{{IN}}}[10m]))",
                            "{{kind}} {{change}}",
                        )
                    ],
                    width=8,
                ),
                Panel(
                    "The observer itself",
                    "Age of the events that it processes, and changes of alerts that wait to be delivered.",
                    [
                        Query(f"max(noonmark_observer_lag_seconds{{{IN}}})", "lag, seconds"),
                        Query(
                            f"max by (channel) (noonmark_alert_deliveries_waiting{{{IN}}})",
                            "{{channel}}, waiting",
                        ),
                    ],
                    width=8,
                ),
            ),
        ),
    ),
)
