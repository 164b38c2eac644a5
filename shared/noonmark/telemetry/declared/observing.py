"""Metrics of observer and watchdog."""

from __future__ import annotations

from noonmark.telemetry.declaring import Part

_observer = Part("observer")
_watchdog = Part("watchdog")

ALERTS_OPEN = _observer.gauge(
    "alerts_open",
    ("kind",),
    "Alerts that are open.",
    "Read `noonmark alert list`, or GET /v1/alerts.",
)
ALERTS = _observer.counter(
    "alerts_total",
    ("kind", "change"),
    "Alerts raised and resolved.",
    "Many of one kind that come and go: its threshold is too close, see docs/alerts.md.",
)
ALERT_DELIVERIES = _observer.counter(
    "alert_deliveries_total",
    ("channel", "result"),
    "Tries to tell a change of an alert, by what came of them.",
    "`failed`: the observer's log says what the receiver answered.",
)
ALERT_DELIVERIES_WAITING = _observer.gauge(
    "alert_deliveries_waiting",
    ("channel",),
    "Changes of alerts that are still to be told.",
    "Growing: the receiver is away; they are tried again.",
)
OBSERVER_LAG = _observer.gauge(
    "observer_lag_seconds",
    (),
    "Seconds that outcomes waited to be counted, of the last ones or of what still waits; 0: nothing waits.",
    "Growing: the observer does not keep up, or cannot read the topic; what it knows is of the past.",
)
WATCHDOG_BEATS = _watchdog.counter(
    "watchdog_beats_total",
    ("result",),
    "Beats of the watchdog, by what came of them.",
    "`failed`: the outside URL does not answer. `withheld`: see `watchdog_part_ok`.",
)
WATCHDOG_PART_OK = _watchdog.gauge(
    "watchdog_part_ok",
    ("part",),
    "1 while a part makes progress, else 0.",
    "0: that part is dead or hangs; the outside URL is not called any more.",
)
