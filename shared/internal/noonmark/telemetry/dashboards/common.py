"""Shared parts of dashboards: variables, label matchers, queries and panels."""

from __future__ import annotations

from typing import Final

from noonmark.core.states import Lane
from noonmark.telemetry.dashboards.parts import Panel, Query, Threshold, Variable

_DOCS: Final = "https://github.com/noonmark/noonmark/blob/main/docs"
LINKS: Final = {"Runbooks": f"{_DOCS}/monitoring.md#alerts", "Metrics": f"{_DOCS}/metrics.md"}

NAMESPACE: Final = Variable("namespace", "Installation", "label_values(noonmark_build_info, namespace)")
POOL: Final = Variable(
    "pool", "Pool", 'label_values(noonmark_start_backlog_seconds{namespace=~"$namespace"}, pool)'
)
LANE: Final = Variable("lane", "Lane", values=[lane.label for lane in Lane])
KIND: Final = Variable(
    "kind",
    "Kind",
    'label_values(noonmark_attempt_duration_seconds_count{namespace=~"$namespace"}, kind)',
)

IN: Final = 'namespace=~"$namespace"'
OF_POOL: Final = f'{IN},pool=~"$pool"'
OF_LANE: Final = f'{IN},lane=~"$lane"'
OF_POOL_AND_LANE: Final = f'{OF_POOL},lane=~"$lane"'
OF_KIND: Final = f'{IN},kind=~"$kind"'
RATE: Final = "[$__rate_interval]"


def quantile(share: float, by: str, metric: str, matchers: str) -> str:
    """Return the query of a quantile of a histogram, by one label or none."""
    rate = f"rate({metric}_bucket{{{matchers}}}{RATE})"
    labels = f"{by}, le" if by else "le"
    return f"histogram_quantile({share:g}, sum by ({labels}) ({rate}))"


def rate_by(by: str, metric: str, matchers: str) -> str:
    """Return the query of a counter's rate, summed by one label."""
    return f"sum by ({by}) (rate({metric}{{{matchers}}}{RATE}))"


def stat(title: str, description: str, expr: str, *, unit: str = "short", bad: float | None = None) -> Panel:
    """Return a panel with one value, red from `bad` on."""
    thresholds: tuple[Threshold, ...] = ((bad, "red"),) if bad is not None else ()
    return Panel(
        title,
        description,
        [Query(expr, "")],
        unit=unit,
        kind="stat",
        width=4,
        height=5,
        thresholds=thresholds,
    )


START_DELAY: Final = Panel(
    "Start delay",
    "Seconds from the due instant to the start of the handler. If the backlog is high too, add"
    " workers. Otherwise check the claims and the outbox.",
    [
        Query(f"lane:noonmark_start_delay_seconds:p50_rate5m{{{IN}}}", "p50 {{lane}}"),
        Query(f"lane:noonmark_start_delay_seconds:p99_rate5m{{{IN}}}", "p99 {{lane}}"),
    ],
    unit="s",
)
BURN: Final = Panel(
    "Burn rate of the start objective",
    "How fast late starts use up the budget of 30 days. At 1 the budget lasts 30 days. Pages above 14.4.",
    [
        Query(
            f"lane:noonmark_start_slo_errors:ratio_rate1h{{{IN}}}"
            " / on (lane) group_left () noonmark:start_slo_error_budget",
            "{{lane}}, 1 h",
        ),
        Query(
            f"lane:noonmark_start_slo_errors:ratio_rate6h{{{IN}}}"
            " / on (lane) group_left () noonmark:start_slo_error_budget",
            "{{lane}}, 6 h",
        ),
    ],
    thresholds=((1, "yellow"), (14.4, "red")),
)
BACKLOG_SECONDS: Final = Panel(
    "Oldest run not yet started",
    "Age of the oldest run message not yet started. Compare with the lane's objective: high 5 s, normal 30 s,"
    " low 300 s.",
    [Query(f"lane:noonmark_start_backlog_seconds:max{{{OF_POOL_AND_LANE}}}", "{{pool}} {{lane}}")],
    unit="s",
    thresholds=((30, "yellow"), (300, "red")),
)
BACKLOG: Final = Panel(
    "Runs waiting in Kafka",
    "Run messages not yet started, by pool and lane. Growing: add workers or slots.",
    [Query(f"lane:noonmark_start_backlog:sum{{{OF_POOL_AND_LANE}}}", "{{pool}} {{lane}}")],
    stacked=True,
)
FAILURES: Final = Panel(
    "Failure rate",
    "Share of attempts that failed or timed out, by kind. `noonmark dead groups` lists the causes.",
    [Query(f"kind:noonmark_attempt_failures:ratio_rate5m{{{OF_KIND}}}", "{{kind}}")],
    unit="percentunit",
    thresholds=((0.25, "red"),),
)
