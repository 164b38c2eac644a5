"""Fixed parts of the OpenAPI document: headers, security schemes, problems, schemas of bodies."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from noonmark.api.openapi.readable import without_defaults
from noonmark.core.access.roles import ROLE_FOR, Role
from noonmark.core.calendars.calendar import MAX_DATES, MAX_RANGES
from noonmark.schemas.export import definitions
from noonmark.schemas.jobs.documents import JobDocument

SCHEMA_PREFIX: Final = "#/components/schemas/"

STORED_DOCUMENT: Final = "StoredJobDocument"
STORED_DOCUMENT_IN: Final = ("Job", "JobVersion")
"""Responses with a stored job document. A generator would name the type of `document` in `Job` after both
words, which is the name of the documents that clients send."""

PREAMBLE: Final = """\
noonmark decides when each job is due, sends it to workers through Kafka, and records the outcome: every due
instant gets exactly one recorded verdict. Events on Kafka and the command line use the same code as this API.

Changes accept `If-Match` with the `ETag` of the object as you read it, in its quotes, and fail with 412 if
the object has changed since. Each `POST` that changes something accepts `Idempotency-Key`: a repeat with the
same key gets the same response and changes nothing again. `PUT`, `PATCH` and `DELETE` are idempotent without
it. Listings return pages: use `limit` (1 to 200) and the opaque `next_cursor` of the previous page. Errors
are problem documents (RFC 9457): `type` is a stable name, `errors` points at each problem of the body. Every
response has a `Noonmark-Request-Id`, which the audit log and the logs contain, too.
"""

TAGS: Final = {
    "jobs": "What to run and when: create, read, change, pause and trigger jobs.",
    "backfills": "Run past instants of a job.",
    "runs": "Due instants and their outcomes. The paths below /executions are aliases.",
    "events": "Live events of runs.",
    "dead-letters": "Runs that failed permanently.",
    "rejections": "Refused submissions.",
    "workers": "Processes that execute runs.",
    "pools": "Groups of workers.",
    "lanes": "Backlogs in Kafka, by priority.",
    "calendars": "Named sets of days (holidays and business days) for schedules.",
    "limits": "Limits on runs in flight and on starts per period.",
    "namespaces": "Tenants: defaults, quotas and pauses.",
    "ids": "Complete ids from their first characters.",
    "keys": "API keys.",
    "why": "What blocks a job or a run, and what to do about it.",
    "alerts": "Alerts of the observer, and their deliveries.",
    "audit": "Who changed what, and which changes were denied.",
    "me": "Permissions of the current credential.",
    "documents": "This document, the AsyncAPI document and JSON Schemas.",
}

PARAMETER_EXAMPLES: Final = {
    "job_id": "0197a2b4-1111-7000-8000-000000000001",
    "run_id": "0197a2b4-2222-7000-8000-000000000002",
    "backfill_id": "0197a2b4-3333-7000-8000-000000000003",
    "alert_id": "0197a2b4-4444-7000-8000-000000000004",
    "rejection_id": 1,
    "key_id": "k3y0example1",
    "version": 1,
    "name": "one",
}
"""Example values of path parameters; a test replaces them with ids of existing objects."""

HEADERS: Final[dict[str, Any]] = {
    "Noonmark-Request-Id": {
        "description": "Id of the request in logs and audit log; the caller's own, if it sent a valid one.",
        "required": True,
        "schema": {"type": "string", "pattern": "^[A-Za-z0-9._-]{1,64}$"},
    },
    "ETag": {
        "description": "Version of the object, for `If-Match`.",
        "required": True,
        "schema": {"type": "string", "pattern": '^"[0-9a-f]{1,64}"$'},
    },
    "Location": {
        "description": "Path of the created object.",
        "required": True,
        "schema": {"type": "string", "format": "uri-reference"},
    },
    "Retry-After": {
        "description": "Seconds to wait before you repeat the request.",
        "required": True,
        "schema": {"type": "integer", "minimum": 1},
    },
    "WWW-Authenticate": {
        "description": "How to authenticate.",
        "required": True,
        "schema": {"type": "string"},
    },
    "Allow": {
        "description": "Methods that the path supports.",
        "required": True,
        "schema": {"type": "string"},
    },
}

PROBLEM_RESPONSES: Final = {
    "400": "Malformed",
    "401": "Unauthenticated",
    "403": "Forbidden",
    "404": "NotFound",
    "406": "NotAcceptable",
    "409": "Conflict",
    "412": "PreconditionFailed",
    "413": "TooLarge",
    "415": "UnsupportedMediaType",
    "422": "Invalid",
    "429": "TooManyRequests",
    "500": "Internal",
    "503": "Unavailable",
}

_DESCRIPTIONS: Final = {
    "400": "The request cannot be read, or its cursor does not belong to the listing.",
    "401": "Credentials are missing or invalid.",
    "403": "The role or the scopes of the credential do not allow the request.",
    "404": "The object does not exist, or the credential has no role in its namespace.",
    "406": "`Accept` allows none of the types of the response.",
    "409": "The state of the object does not allow the request, or a name is taken.",
    "412": "The object has changed since you read it, or exists already.",
    "413": "The body is too large.",
    "415": "The body is not JSON.",
    "422": "The document is not valid; `errors` points at each problem.",
    "429": "The rate limit of the credential, or of the address, is exceeded.",
    "500": "Internal error; the log has the details under the request id.",
    "503": "The database does not respond, or is too busy.",
}
_OWN_HEADERS: Final = {"401": ("WWW-Authenticate",), "429": ("Retry-After",), "503": ("Retry-After",)}


def _problem_response(status: str) -> dict[str, Any]:
    names = ("Noonmark-Request-Id", *_OWN_HEADERS.get(status, ()))
    return {
        "description": _DESCRIPTIONS[status],
        "headers": {name: {"$ref": f"#/components/headers/{name}"} for name in names},
        "content": {"application/problem+json": {"schema": {"$ref": f"{SCHEMA_PREFIX}Problem"}}},
    }


def _roles() -> str:
    rows = [
        f"{role.label}: {', '.join(permission for permission, least in ROLE_FOR.items() if least is role)}"
        for role in Role
    ]
    return "; ".join(rows)


COMPONENTS: Final[dict[str, Any]] = {
    "headers": HEADERS,
    "responses": {name: _problem_response(status) for status, name in PROBLEM_RESPONSES.items()},
    "securitySchemes": {
        "apiKey": {
            "type": "http",
            "scheme": "bearer",
            "bearerFormat": "nmk_<key id>_<secret>",
            "description": (
                "An API key. Its roles apply to namespaces, and each role includes those before it: "
                f"{_roles()}. Scopes restrict a key to some of these permissions."
            ),
        },
        "token": {
            "type": "http",
            "scheme": "bearer",
            "bearerFormat": "JWT",
            "description": "An access token of the configured OIDC issuer, whose claims name the roles.",
        },
    },
}


_STORED_DOCUMENT: Final = {
    "type": "object",
    "description": (
        "A job document as it is stored: its fields are those of JobDocument, with all defaults filled in. A "
        "hidden payload is null. Later releases may add fields."
    ),
    "additionalProperties": True,
}
_DAY: Final = {"type": "string", "format": "date", "pattern": "^[0-9]{4}-[0-9]{2}-[0-9]{2}$"}
_CALENDAR: Final = {
    "type": "object",
    "description": "The days of a calendar; at least one of these fields.",
    "properties": {
        "dates": {"type": "array", "items": _DAY, "maxItems": MAX_DATES},
        "ranges": {
            "type": "array",
            "items": {
                "type": "object",
                "description": "From one day to another, both included.",
                "properties": {"first": _DAY, "last": _DAY},
                "required": ["first", "last"],
                "additionalProperties": False,
            },
            "maxItems": MAX_RANGES,
        },
        "weekdays": {
            "type": "array",
            "items": {"enum": ["MON", "TUE", "WED", "THU", "FRI", "SAT", "SUN"]},
            "description": "Days of every week.",
        },
        "yearly": {
            "type": "array",
            "items": {"type": "string", "pattern": "^(0[1-9]|1[0-2])-(0[1-9]|[12][0-9]|3[01])$"},
            "description": "Days of every year: month and day.",
        },
    },
    "additionalProperties": False,
    "minProperties": 1,
}


def ref(name: str) -> dict[str, str]:
    """Return the reference to a schema of the document."""
    return {"$ref": f"{SCHEMA_PREFIX}{name}"}


def body_schemas() -> dict[str, Any]:
    """Return the schemas of bodies that are read as plain JSON and checked by our own parsers."""
    documents = without_defaults(definitions(JobDocument, prefix=SCHEMA_PREFIX))
    return {
        **documents,
        "JobPatch": _patch_of(documents["JobDocument"]),
        "CalendarDocument": _CALENDAR,
        STORED_DOCUMENT: _STORED_DOCUMENT,
    }


def _patch_of(document: Mapping[str, Any]) -> dict[str, Any]:
    """Return the schema of a merge patch of a job document.

    A patch can contain objects in part, so the schema leaves them open; the parser checks the result.
    """
    return {
        "type": "object",
        "description": (
            "A merge patch (RFC 7396) of a job document: given fields are replaced, null returns a field "
            "to its default. The resulting document is checked like a new one."
        ),
        "properties": {
            name: {"description": field.get("description", "")}
            if "$ref" in str(field) or "object" in str(field)
            else {"anyOf": [field, {"type": "null"}]}
            for name, field in document["properties"].items()
        },
        "additionalProperties": False,
    }
