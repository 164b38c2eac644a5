"""Details of single operations for the OpenAPI document: bodies, examples, headers.

A test sends every example to the application and validates the response against the document.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from noonmark.api.openapi.parts import ref


@dataclass(frozen=True, slots=True)
class Operation:
    """Details of one operation.

    Attributes:
        body: schema of a body that the route reads as plain JSON; None: FastAPI knows it.
        media_types: media types of that body.
        examples: example bodies by title.
        query: example values of query parameters.
        headers: headers of every success, in addition to the request id.
        sometimes: headers of some successes.
        answers: description of a success, if the operation does not make it clear.
        conflicts: True if it can respond 409.
        forbids: True if it can respond 403 although any credential can call it.
    """

    body: Mapping[str, Any] | None = None
    media_types: tuple[str, ...] = ("application/json",)
    examples: Mapping[str, Any] = field(default_factory=dict)
    query: Mapping[str, Any] = field(default_factory=dict)
    headers: tuple[str, ...] = ()
    sometimes: tuple[str, ...] = ()
    answers: str = ""
    conflicts: bool = False
    forbids: bool = False


_HTTP_JOB: Final = {
    "name": "send-invoice",
    "type": "http",
    "schedule": "0 9 * * 1",
    "max_retries": 3,
    "retry_delay_seconds": 60,
    "timeout_seconds": 30,
    "payload": {
        "url": "https://internal.example.com/billing/send",
        "method": "POST",
        "body": {"user_id": 42},
    },
}
_ONE_TIME_JOB: Final = {
    "name": "welcome-mail",
    "type": "http",
    "run_at": "2030-06-01T09:00:00Z",
    "payload": {"url": "https://internal.example.com/mails/welcome", "body": {"user_id": 42}},
}
_REASON: Final = {"With a reason": {"reason": "the target is down"}}
_TAGGED: Final = ("ETag",)

_JOBS: Final = {
    "jobs.create": Operation(
        body=ref("JobDocument"),
        examples={"An HTTP job every Monday": _HTTP_JOB, "Once, at an instant": _ONE_TIME_JOB},
        headers=("ETag", "Location"),
        answers="The job is accepted and committed.",
        conflicts=True,
    ),
    "jobs.create_bulk": Operation(
        examples={"Two jobs": {"jobs": [{**_HTTP_JOB, "name": "send-reminder"}, _ONE_TIME_JOB]}},
        answers="Each job was accepted or refused separately: see `items`.",
    ),
    "jobs.list": Operation(query={"state": ["active"], "label": ["team:billing"], "limit": 50}),
    "jobs.read": Operation(headers=_TAGGED),
    "jobs.replace": Operation(
        body=ref("JobDocument"),
        examples={"Tuesdays instead": {**_HTTP_JOB, "schedule": "0 9 * * 2"}},
        headers=_TAGGED,
        conflicts=True,
    ),
    "jobs.patch": Operation(
        body=ref("JobPatch"),
        media_types=("application/merge-patch+json", "application/json"),
        examples={"A longer timeout, and the default retries": {"timeout_seconds": 60, "max_retries": None}},
        headers=_TAGGED,
        conflicts=True,
    ),
    "jobs.delete": Operation(headers=_TAGGED, conflicts=True),
    "jobs.cancel": Operation(examples=_REASON, headers=_TAGGED, conflicts=True),
    "jobs.pause": Operation(examples=_REASON, headers=_TAGGED, conflicts=True),
    "jobs.resume": Operation(
        examples={"Only the latest instant of the pause": {"missed": "latest"}},
        headers=_TAGGED,
        conflicts=True,
    ),
    "jobs.trigger": Operation(
        examples={
            "With the job's own values": {},
            "With another payload and high priority": {
                "payload": {"url": "https://internal.example.com/billing/send", "body": {"user_id": 43}},
                "priority": "high",
            },
        },
        headers=("Location",),
        answers="The run is queued and committed.",
        conflicts=True,
    ),
    "jobs.preview_document": Operation(
        examples={
            "A schedule": {
                "schedule": {"cron": "30 2 * * *", "timezone": "America/New_York"},
                "from": "2026-03-07T00:00:00Z",
                "count": 3,
            },
            "A job document": {"document": _HTTP_JOB, "count": 5},
        },
    ),
    "jobs.preview": Operation(query={"count": 5}, conflicts=True),
    "jobs.diff": Operation(query={"from": 1, "to": 2}),
    "backfills.create": Operation(
        examples={
            "Preview of two weeks": {
                "from": "2026-03-01T00:00:00Z",
                "until": "2026-03-15T00:00:00Z",
                "dry_run": True,
            }
        },
        sometimes=("Location",),
        conflicts=True,
    ),
    "backfills.cancel": Operation(
        examples={"Including its queued runs": {"reason": "wrong range", "runs": True}}, conflicts=True
    ),
}
_RUNS: Final = {
    "runs.list": Operation(query={"state": ["dead"], "limit": 50}),
    "runs.read": Operation(headers=_TAGGED),
    "runs.tasks": Operation(query={"state": ["dead", "undecided"], "failed_first": True}),
    "runs.graph": Operation(headers=_TAGGED, conflicts=True),
    "runs.cancel": Operation(
        examples=_REASON, headers=_TAGGED, answers="The run is cancelled, or being cancelled.", conflicts=True
    ),
    "runs.retry": Operation(headers=_TAGGED, answers="The run is queued again.", conflicts=True),
    "runs.hold": Operation(headers=_TAGGED, answers="The workflow run is held.", conflicts=True),
    "runs.release": Operation(headers=_TAGGED, answers="The workflow run is not held.", conflicts=True),
    "runs.complete": Operation(
        examples={
            "The work is done": {
                "token": "the-token-of-the-call",
                "outcome": "succeeded",
                "result": {"seconds": 812},
            }
        },
        conflicts=True,
    ),
    "runs.cancel_many": Operation(
        examples={
            "Count the queued and waiting runs of a job": {
                "filter": {"job_name": "send-invoice", "state": ["queued", "waiting"]},
                "dry_run": True,
            }
        },
        conflicts=True,
    ),
    "dead-letters.redrive": Operation(
        examples={
            "Count the dead letters with one cause": {
                "filter": {"fingerprint": "0f1e2d3c4b5a6978"},
                "dry_run": True,
            }
        },
        conflicts=True,
    ),
    "dead-letters.discard": Operation(
        examples={
            "Count the dead letters of one job": {"filter": {"job_name": "send-invoice"}, "dry_run": True}
        },
        conflicts=True,
    ),
}
_REST: Final = {
    "documents.openapi": Operation(headers=_TAGGED),
    "documents.asyncapi": Operation(headers=_TAGGED),
    "documents.schema": Operation(headers=_TAGGED),
    "ids.find": Operation(query={"prefix": "0197a2b4", "kind": "run"}, forbids=True),
    "keys.create": Operation(
        examples={
            "For a pipeline that deploys jobs": {
                "name": "ci",
                "grants": {"default": "editor"},
                "expires_in_seconds": 7776000,
            }
        },
        headers=("Location",),
        answers="The key is created. Only this response contains its secret.",
        conflicts=True,
    ),
    "calendars.read": Operation(headers=_TAGGED),
    "calendars.put": Operation(
        body=ref("CalendarDocument"),
        examples={
            "Christmas, and two days off": {
                "yearly": ["12-25", "12-26"],
                "ranges": [{"first": "2026-12-30", "last": "2026-12-31"}],
            }
        },
        sometimes=_TAGGED,
    ),
    "calendars.delete": Operation(answers="Deleted.", conflicts=True),
    "limits.read": Operation(headers=_TAGGED),
    "limits.put": Operation(
        examples={"Three in flight, a hundred per minute": {"max_running": 3, "rate": "100/60s"}},
        headers=_TAGGED,
    ),
    "limits.delete": Operation(answers="Deleted.", conflicts=True),
    "namespaces.read": Operation(headers=_TAGGED),
    "namespaces.put": Operation(
        examples={
            "A time zone and two quotas": {
                "timezone": "Europe/Berlin",
                "max_in_flight": 200,
                "max_jobs": 5000,
            }
        },
        headers=_TAGGED,
    ),
    "namespaces.delete": Operation(answers="The namespace has the defaults again.", conflicts=True),
    "namespaces.pause": Operation(examples={"With a reason": {"reason": "data centre migration"}}),
    "namespaces.resume": Operation(examples={"Skip what came due": {"missed": "skip"}}),
    "keys.revoke": Operation(answers="The key is revoked.", conflicts=True),
}

OPERATIONS: Final[dict[str, Operation]] = {**_JOBS, **_RUNS, **_REST}
