"""Overview: is work late, does it fail, and are all services running?"""

from __future__ import annotations

from typing import Final

from noonmark.telemetry.dashboards.common import (
    BACKLOG,
    BACKLOG_SECONDS,
    BURN,
    FAILURES,
    IN,
    KIND,
    LANE,
    LINKS,
    NAMESPACE,
    OF_LANE,
    OF_POOL,
    OF_POOL_AND_LANE,
    POOL,
    START_DELAY,
    quantile,
    rate_by,
    stat,
)
from noonmark.telemetry.dashboards.parts import Dashboard, Panel, Query, Row

_ROUTES: Final = quantile(0.99, "route", "noonmark_api_request_seconds", f'{IN},route!~".*/events"')

OVERVIEW: Final = Dashboard(
    uid="overview",
    title="noonmark / Overview",
    description="Is work late, does it fail, and are all services running?",
    variables=(NAMESPACE, POOL, LANE, KIND),
    links=LINKS,
    rows=(
        Row(
            "At a glance",
            (
                stat(
                    "Oldest run not started",
                    "Across all pools and lanes.",
                    f"max(lane:noonmark_start_backlog_seconds:max{{{OF_POOL_AND_LANE}}})",
                    unit="s",
                    bad=300,
                ),
                stat(
                    "Oldest due timer",
                    "Due and not claimed. Above a minute, triggers are behind or claims stop.",
                    f"max(noonmark_due_oldest_seconds{{{OF_LANE}}})",
                    unit="s",
                    bad=60,
                ),
                stat(
                    "Oldest outbox row",
                    "Above 10 s claims stop. Check Kafka and the dispatchers.",
                    f"max(noonmark_outbox_oldest_seconds{{{IN}}})",
                    unit="s",
                    bad=10,
                ),
                stat(
                    "Dead letters",
                    "Runs that used up their attempts. Redrive or discard them.",
                    f"max(noonmark_dead_letters{{{IN}}})",
                    bad=1,
                ),
                stat(
                    "Open alerts of jobs",
                    "Alerts raised by the observer. See `noonmark alert list`.",
                    f"sum(max by (namespace, kind) (noonmark_alerts_open{{{IN}}}))",
                    bad=1,
                ),
                stat(
                    "Live workers",
                    "In the selected pools.",
                    f'sum(max by (namespace, pool) (noonmark_workers{{{OF_POOL},state="live"}}))',
                ),
            ),
        ),
        Row("Work", (START_DELAY, BURN, BACKLOG_SECONDS, BACKLOG)),
        Row(
            "Outcomes",
            (
                Panel(
                    "Runs settled per second",
                    "By final state.",
                    [
                        Query(
                            f"sum by (state) (lane:noonmark_runs_settled:rate5m{{{OF_LANE}}})",
                            "{{state}}",
                        )
                    ],
                    unit="reqps",
                    stacked=True,
                ),
                FAILURES,
                Panel(
                    "Unfinished runs",
                    "Growing `queued`: workers do not keep up. Growing `waiting`: check the reasons.",
                    [Query(f"max by (state) (noonmark_runs_in_state{{{IN}}})", "{{state}}")],
                    stacked=True,
                ),
                Panel(
                    "Largest namespaces",
                    "Waiting and running runs of the noonmark namespaces with the most of them.",
                    [
                        # Prometheus renames a label that the target has too, unless `honor_labels` is set.
                        Query(
                            "topk(10, sum by (tenant) (label_replace(label_replace("
                            "max by (namespace, exported_namespace, state)"
                            ' (noonmark_namespace_runs{state!="dead"}),'
                            ' "tenant", "$1", "namespace", "(.+)"),'
                            ' "tenant", "$1", "exported_namespace", "(.+)")))',
                            "{{tenant}}",
                        )
                    ],
                ),
            ),
        ),
        Row(
            "Services",
            (
                Panel(
                    "Processes",
                    "Processes that Prometheus can scrape, by service.",
                    [Query(f'sum by (job) (up{{{IN},job=~"noonmark-.+"}})', "{{job}}")],
                ),
                Panel(
                    "Time since last progress",
                    "Of the slowest loop of each service. Above 180 s a loop hangs.",
                    [
                        Query(
                            f"max by (job) (time() - noonmark_last_progress_timestamp_seconds{{{IN}}})",
                            "{{job}}",
                        )
                    ],
                    unit="s",
                    thresholds=((180, "red"),),
                ),
                Panel(
                    "Shards owned",
                    "The sum over all processes must equal the number fixed at install.",
                    [
                        Query(f"sum by (role) (noonmark_owned_shards{{{IN}}})", "{{role}}"),
                        Query(f"max by (role) (noonmark_shards{{{IN}}})", "{{role}}, at install"),
                    ],
                ),
                Panel(
                    "Releases",
                    "More than one version is expected only during a deployment.",
                    [Query(f"count by (job, version) (noonmark_build_info{{{IN}}})", "")],
                    kind="table",
                ),
            ),
        ),
        Row(
            "API",
            (
                Panel(
                    "Requests by status",
                    "Many 5xx: find them in the API's log by request id.",
                    [Query(rate_by("status", "noonmark_api_requests_total", IN), "{{status}}")],
                    unit="reqps",
                    stacked=True,
                ),
                Panel(
                    "Slowest routes (p99)",
                    "Without event streams, which are long-lived.",
                    [
                        Query(
                            f"topk(5, {_ROUTES})",
                            "{{route}}",
                        )
                    ],
                    unit="s",
                ),
            ),
        ),
        Row(
            "Postgres",
            (
                Panel(
                    "Oldest snapshot",
                    "Vacuum cannot remove rows deleted since then. Above 5 minutes claims become slow.",
                    [Query(f"max(noonmark_oldest_xmin_seconds{{{IN}}})", "oldest xmin")],
                    unit="s",
                    width=8,
                    thresholds=((300, "red"),),
                ),
                Panel(
                    "Dead rows",
                    "In the tables with the most changes, as estimated by Postgres.",
                    [Query(f"max by (table) (noonmark_dead_rows{{{IN}}})", "{{table}}")],
                    width=8,
                ),
                Panel(
                    "Connections",
                    "Of noonmark's services. Near `max_connections`: use a pooler.",
                    [Query(f"max by (state) (noonmark_database_connections{{{IN}}})", "{{state}}")],
                    width=8,
                    stacked=True,
                ),
            ),
        ),
    ),
)
