"""The labels of metrics and the values that they take: each a list that is bounded."""

from __future__ import annotations

from typing import Final

from noonmark.core.words import AttemptOutcome, Lane, SkipReason, WaitReason

REJECTION_REASONS: Final = (
    "malformed",
    "invalid",
    "too_large",
    "unauthorised",
    "conflict",
    "unknown_pool",
    "unknown_kind",
    "unknown_handler",
    "unknown_limit",
    "quota",
    "not_found",
)
MESSAGE_REJECTION_REASONS: Final = (
    *("malformed", "too_large", "invalid", "bad_signature", "unknown_key", "wrong_topic"),
    "mismatch",
)
SERVICES: Final = ("api", "intake", "trigger", "dispatcher", "worker")
ALERT_KINDS: Final = ("runaway", "late", "stuck", "failing", "dead", "silent")
CHANNELS: Final = ("webhook", "alertmanager")

LABELS: Final[dict[str, str]] = {
    "active": "`yes`, `no`",
    "change": "`raised`, `resolved`",
    "channel": ", ".join(f"`{channel}`" for channel in CHANNELS),
    "kind": "kind of job: `http`, `grpc`, `script`, `python`, `kafka`, `unknown` where it was not at hand; of"
    " alerts: " + ", ".join(f"`{kind}`" for kind in ALERT_KINDS),
    "lane": ", ".join(f"`{lane.label}`" for lane in Lane),
    "method": "an HTTP method; `any` where no route has the path",
    "loop": "a named loop of the service, fixed in code",
    "namespace": "a namespace; `_other` for those that are not among the 50 with the most runs",
    "outcome": ", ".join(f"`{outcome}`" for outcome in AttemptOutcome),
    "outbox": "name of an application's outbox in `NOONMARK_APP_OUTBOXES`",
    "part": "`postgres`, `kafka`, `trigger`, `dispatcher`, `observer`: what the watchdog looks at",
    "partition": "partition number of a topic made by noonmark",
    "pool": "a registered pool",
    "python": "version of Python",
    "reason": "a fixed list per metric (rejections: "
    + ", ".join(f"`{reason}`" for reason in REJECTION_REASONS)
    + "; messages: "
    + ", ".join(f"`{reason}`" for reason in MESSAGE_REJECTION_REASONS)
    + "; waits: "
    + ", ".join(f"`{reason}`" for reason in WaitReason)
    + "; verdicts of instants without a run: "
    + ", ".join(f"`{reason}`" for reason in SkipReason)
    + ")",
    "result": "`accepted`, `duplicate`, `stale`, `rejected`; of alerts told and beats of the watchdog:"
    " `sent`, `failed`, `given_up`; `sent`, `failed`, `withheld`, `no_url`",
    "role": "`trigger` (shards), `dispatcher` (slices), `observer` (one, for who leads)",
    "route": "the pattern of a route, as in the OpenAPI document; `none` where none has the path",
    "status": "an HTTP status",
    "service": ", ".join(f"`{service}`" for service in SERVICES),
    "slice": "outbox slice number, fixed at install",
    "state": "a state of the thing counted, from docs/glossary.md; of workers: `live`, `silent`, `draining`;"
    " of connections: `active`, `idle`, `idle_in_transaction`, `other`",
    "statement": "name of a file in `shared/noonmark/store/sql`",
    "table": "a table of docs/data-model.md; `runs` for all days together",
    "topic": "a submissions topic",
    "type": "`create`, `update`, `cancel`, `pause`, `resume`, `trigger`, `run_cancel`, `run_complete`,"
    " `unknown`",
    "version": "version of noonmark; of the zone data, such as `2026f`",
}
