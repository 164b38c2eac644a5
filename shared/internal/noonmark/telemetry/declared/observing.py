"""Metrics of observer and watchdog."""

from __future__ import annotations

from noonmark.telemetry.declared import labels
from noonmark.telemetry.declared.declaring import Part

_observer = Part("observer")
_watchdog = Part("watchdog")

ALERTS_OPEN = _observer.gauge(
    "alerts_open",
    ("kind",),
    "Open alerts.",
    "Read `noonmark alert list`, or GET /v1/alerts.",
)
ALERTS = _observer.counter(
    "alerts_total",
    {"kind": labels.ALERT_KINDS, "change": labels.ALERT_CHANGES},
    "Alerts raised and resolved.",
    "Many alerts of one kind open and resolve: the threshold is too tight. See docs/alerts.md.",
)
ALERT_DELIVERIES = _observer.counter(
    "alert_deliveries_total",
    {"channel": (), "result": ()},
    "Attempts to deliver a change of an alert, by result.",
    "`failed`: the observer's log has the receiver's answer.",
)
ALERT_DELIVERIES_WAITING = _observer.gauge(
    "alert_deliveries_waiting",
    ("channel",),
    "Changes of alerts that wait to be delivered.",
    "Growing: the receiver is unreachable. The observer retries.",
)
OBSERVER_LAG = _observer.gauge(
    "observer_lag_seconds",
    (),
    "Seconds that outcomes wait until the observer processes them; 0 if none wait.",
    "Growing: the observer does not keep up, or cannot read the topic. Its alerts are late.",
)
WATCHDOG_BEATS = _watchdog.counter(
    "watchdog_beats_total",
    {"result": labels.BEAT_RESULTS},
    "Heartbeats of the watchdog, by result.",
    "`failed`: the external URL does not answer. `withheld`: see `watchdog_part_ok`.",
)
WATCHDOG_PART_OK = _watchdog.gauge(
    "watchdog_part_ok",
    ("part",),
    "1 while a part makes progress, else 0.",
    "0: that part is dead or hangs, and the watchdog no longer calls the external URL.",
)
