"""Labels of metrics and their values. Each list of values is bounded."""

from __future__ import annotations

from typing import Final

from noonmark.core.states import AttemptOutcome, Lane, SkipReason, WaitReason

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
    "kind": "kind of job: `http`, `grpc`, `script`, `python`, `kafka`, `unknown` if not available; of"
    " alerts: " + ", ".join(f"`{kind}`" for kind in ALERT_KINDS),
    "lane": ", ".join(f"`{lane.label}`" for lane in Lane),
    "method": "an HTTP method; `any` if no route matches the path",
    "loop": "a named loop of the service, fixed in code",
    "namespace": "a namespace; `_other` for all but the 50 with the most runs",
    "outcome": ", ".join(f"`{outcome}`" for outcome in AttemptOutcome),
    "outbox": "name of an application outbox in `NOONMARK_APP_OUTBOXES`",
    "part": "`postgres`, `kafka`, `trigger`, `dispatcher`, `observer`: the parts that the watchdog checks",
    "partition": "partition number of a topic that noonmark created",
    "pool": "a registered pool",
    "python": "version of Python",
    "reason": "a fixed list per metric (rejections: "
    + ", ".join(f"`{reason}`" for reason in REJECTION_REASONS)
    + "; messages: "
    + ", ".join(f"`{reason}`" for reason in MESSAGE_REJECTION_REASONS)
    + "; waits: "
    + ", ".join(f"`{reason}`" for reason in WaitReason)
    + "; skipped instants: "
    + ", ".join(f"`{reason}`" for reason in SkipReason)
    + ")",
    "result": "`accepted`, `duplicate`, `stale`, `rejected`; of alert deliveries and watchdog heartbeats:"
    " `sent`, `failed`, `given_up`; `sent`, `failed`, `withheld`, `no_url`",
    "role": "`trigger` (shards), `dispatcher` (slices), `observer` (one, held by the leader)",
    "route": "the pattern of a route, as in the OpenAPI document; `none` if no route matches the path",
    "rule": "a rule that `noonmark verify` checks, such as `S3`: docs/verify.md",
    "status": "an HTTP status",
    "service": ", ".join(f"`{service}`" for service in SERVICES),
    "slice": "outbox slice number, fixed at install",
    "state": "a state from docs/glossary.md; of workers: `live`, `silent`, `draining`;"
    " of connections: `active`, `idle`, `idle_in_transaction`, `other`",
    "statement": "name of a file in a folder `sql` below `shared/internal/noonmark/store`",
    "table": "a table in docs/data-model.md; `runs` for all ledger days together",
    "topic": "a submissions topic",
    "type": "`create`, `update`, `cancel`, `pause`, `resume`, `trigger`, `run_cancel`, `run_complete`,"
    " `unknown`",
    "version": "version of noonmark; or of the zone data, such as `2026f`",
}
