"""Metrics of application outboxes, which dispatchers relay."""

from __future__ import annotations

from noonmark.telemetry.declared.declaring import Part

_declare = Part("dispatcher")

APP_OUTBOX_OLDEST = _declare.gauge(
    "app_outbox_oldest_seconds",
    ("outbox",),
    "Seconds that the first waiting row of an application outbox has waited. Every dispatcher reports it:"
    " use the maximum.",
    "Growing: no dispatcher relays it. Check `app_outbox_reachable` and the dispatchers' log.",
)
APP_OUTBOX_ROWS = _declare.gauge(
    "app_outbox_rows",
    ("outbox", "state"),
    "Rows of an application outbox, `waiting` or `parked`, counted up to 100,000.",
    "`parked`: `noonmark outbox status` shows the reasons.",
)
APP_OUTBOX_RELAYED = _declare.counter(
    "app_outbox_relayed_total",
    {"outbox": (), "result": ()},
    "Processed rows of an application outbox, by result. `rejected` rows are parked.",
    "Some `duplicate` rows follow a crash of a dispatcher. They are harmless.",
)
APP_OUTBOX_REACHABLE = _declare.gauge(
    "app_outbox_reachable",
    ("outbox",),
    "1 if the dispatcher can relay an application outbox, 0 if its database is unreachable or refuses.",
    "0 on every dispatcher: check the application's database and the dispatchers' log.",
)
