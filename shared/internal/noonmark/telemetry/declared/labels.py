"""Labels of metrics and their values. Each list of values is bounded."""

from __future__ import annotations

from typing import Final

from noonmark.core.monitoring.alerts import AlertChange, AlertKind
from noonmark.core.states import AttemptOutcome, Lane, RunState, SkipReason, TimerKind, WaitReason
from noonmark.core.transitions import VERDICTS

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
SERVICES: Final = ("trigger", "dispatcher", "intake", "api", "worker", "observer", "watchdog")
ALERT_KINDS: Final = tuple(AlertKind)
ALERT_CHANGES: Final = tuple(AlertChange)
CHANNELS: Final = ("webhook", "alertmanager")
DELIVERY_RESULTS: Final = ("sent", "failed", "given_up")
BEAT_RESULTS: Final = ("sent", "failed", "withheld", "no_url")
LANES: Final = tuple(lane.label for lane in Lane)
FINAL_STATES: Final = tuple(state for state in RunState if state in VERDICTS)
UNKNOWN_KIND: Final = "unknown"
"""The label value if the kind of a run's job is not available."""

KINDS: Final = ("http", "grpc", "script", "python", "kafka")
WORKER_OUTCOMES: Final = tuple(outcome for outcome in AttemptOutcome if outcome is not AttemptOutcome.LOST)
"""How an attempt ends for its worker; a lost attempt ends for the trigger."""

GATE_REASONS: Final = (WaitReason.OVERLAP, WaitReason.LIMIT, WaitReason.FAIRNESS)
"""What a waiting run can be blocked by when it is checked."""

CLAIM_STATEMENTS: Final = tuple(
    f"claim_{kind.name.lower()}" for kind in TimerKind if kind is not TimerKind.ADVANCE
)
FENCED_STATEMENTS: Final = ("finish", "log", "note")
SUBMISSION_RESULTS: Final = ("accepted", "duplicate", "stale", "rejected")
SUBMISSION_TYPES: Final = (
    *("create", "update", "cancel", "pause", "resume", "trigger", "run_cancel", "run_complete"),
    "unknown",
)

LABELS: Final[dict[str, str]] = {
    "active": "`yes`, `no`",
    "change": "`raised`, `resolved`",
    "channel": ", ".join(f"`{channel}`" for channel in CHANNELS),
    "decision": "`queued`, `waiting`, `skipped`",
    "kind": "kind of job: "
    + ", ".join(f"`{kind}`" for kind in KINDS)
    + f", `{UNKNOWN_KIND}` if not available; of alerts: "
    + ", ".join(f"`{kind}`" for kind in ALERT_KINDS),
    "lane": ", ".join(f"`{lane}`" for lane in LANES),
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
    "result": ", ".join(f"`{result}`" for result in SUBMISSION_RESULTS)
    + "; of alert deliveries and watchdog heartbeats: "
    + ", ".join(f"`{result}`" for result in DELIVERY_RESULTS)
    + "; "
    + ", ".join(f"`{result}`" for result in BEAT_RESULTS),
    "role": "`trigger` (shards), `dispatcher` (slices), `observer` (one, held by the leader)",
    "route": "the pattern of a route, as in the OpenAPI document; `none` if no route matches the path",
    "rule": "a rule that `noonmark verify` checks, such as `S3`: docs/verify.md",
    "status": "an HTTP status",
    "service": "`worker`",
    "slice": "outbox slice number, fixed at install",
    "state": "a state from docs/glossary.md; of workers: `live`, `silent`, `draining`;"
    " of connections: `active`, `idle`, `idle_in_transaction`, `other`",
    "statement": "name of a file in a folder `sql` below `shared/internal/noonmark/store`",
    "table": "a table in docs/data-model.md; `runs` for all ledger days together",
    "topic": "a submissions topic",
    "type": ", ".join(f"`{word}`" for word in SUBMISSION_TYPES),
    "version": "version of noonmark; or of the zone data, such as `2026f`",
}
