"""The labels of metrics and the values that they take: each a list that is bounded."""

from __future__ import annotations

from typing import Final

from noonmark.core.words import AttemptOutcome, Lane, WaitReason

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

LABELS: Final[dict[str, str]] = {
    "active": "`yes`, `no`",
    "kind": "kind of job: `http`, `grpc`, `script`, `python`, `kafka`",
    "lane": ", ".join(f"`{lane.label}`" for lane in Lane),
    "method": "an HTTP method; `any` where no route has the path",
    "loop": "a named loop of the service, fixed in code",
    "outcome": ", ".join(f"`{outcome}`" for outcome in AttemptOutcome),
    "outbox": "name of an application's outbox in `NOONMARK_APP_OUTBOXES`",
    "partition": "partition number of a topic made by noonmark",
    "pool": "a registered pool",
    "python": "version of Python",
    "reason": "a fixed list per metric (rejections: "
    + ", ".join(f"`{reason}`" for reason in REJECTION_REASONS)
    + "; messages: "
    + ", ".join(f"`{reason}`" for reason in MESSAGE_REJECTION_REASONS)
    + "; waits: "
    + ", ".join(f"`{reason}`" for reason in WaitReason)
    + ")",
    "result": "`accepted`, `duplicate`, `stale`, `rejected`",
    "role": "`trigger` (shards), `dispatcher` (slices)",
    "route": "the pattern of a route, as in the OpenAPI document; `none` where none has the path",
    "status": "an HTTP status",
    "service": ", ".join(f"`{service}`" for service in SERVICES),
    "slice": "outbox slice number, fixed at install",
    "state": "a state of the thing counted, from docs/glossary.md",
    "statement": "name of a file in `shared/noonmark/store/sql`",
    "topic": "a submissions topic",
    "type": "`create`, `update`, `cancel`, `pause`, `resume`, `trigger`, `run_cancel`, `run_complete`,"
    " `unknown`",
    "version": "version of noonmark; of the zone data, such as `2026f`",
}
