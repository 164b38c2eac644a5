"""Metrics of applications' outboxes, which dispatchers relay."""

from __future__ import annotations

from noonmark.telemetry.declaring import Part

_declare = Part("dispatcher")

APP_OUTBOX_OLDEST = _declare.gauge(
    "app_outbox_oldest_seconds",
    ("outbox",),
    "Seconds for which the first waiting row of an application's outbox has waited. Every dispatcher measures"
    " it: take the highest.",
    "Growing: no dispatcher relays it; look at `app_outbox_reachable` and the dispatchers' log.",
)
APP_OUTBOX_ROWS = _declare.gauge(
    "app_outbox_rows",
    ("outbox", "state"),
    "Rows of an application's outbox, `waiting` or `parked`, counted up to 100,000.",
    "`parked`: `noonmark outbox status` shows what is wrong with them.",
)
APP_OUTBOX_RELAYED = _declare.counter(
    "app_outbox_relayed_total",
    ("outbox", "result"),
    "Rows of an application's outbox that were dealt with; those `rejected` are parked.",
    "Some `duplicate` follow a crash of a dispatcher; they are harmless.",
)
APP_OUTBOX_REACHABLE = _declare.gauge(
    "app_outbox_reachable",
    ("outbox",),
    "1 while an application's outbox is being relayed, 0 while its database cannot be reached or refuses.",
    "0 on every dispatcher: look at the application's database, and at the dispatchers' log.",
)
