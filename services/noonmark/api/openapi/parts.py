"""Fixed parts of the OpenAPI document: headers, security schemes, problems, schemas of bodies."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from noonmark.core.access.roles import ROLE_FOR, Role
from noonmark.core.calendars.calendar import MAX_DATES, MAX_RANGES
from noonmark.schemas.export import definitions
from noonmark.schemas.jobs.documents import JobDocument

SCHEMA_PREFIX: Final = "#/components/schemas/"

PREAMBLE: Final = """\
noonmark decides when each job is due, hands it to workers through Kafka, and records what happened: every due
instant ends with exactly one recorded verdict. What this API does, events on Kafka and the command line do
too, by the same code.

Changes take `If-Match` with the `ETag` of the object as it was read, in its quotes, and are refused with 412
if somebody has changed it since. Each `POST` that changes something takes `Idempotency-Key`: a repeat with
the same key gets the same answer and changes nothing again. `PUT`, `PATCH` and `DELETE` do not use it: they
do nothing twice. Listings are pages: `limit` (1 to 200) and the opaque `next_cursor` of the page before.
Errors are problem documents (RFC 9457): `type` is a stable name, `errors` points at each problem of the body.
Every answer carries `Noonmark-Request-Id`, which audit and logs keep.
"""

TAGS: Final = {
    "jobs": "What to run and when: made, read, changed, paused, triggered.",
    "backfills": "Past instants of a job, run after all.",
    "runs": "Due instants and what became of them. The paths below /executions are the same.",
    "events": "What happens, as it happens.",
    "dead-letters": "Runs whose attempts are used up.",
    "rejections": "Submissions that were not taken.",
    "workers": "Who executes runs.",
    "pools": "Groups of workers.",
    "lanes": "What waits in Kafka, by priority.",
    "calendars": "Named sets of days that schedules leave out, or move off.",
    "limits": "How many runs may be under way, and begin in a time.",
    "namespaces": "Tenants: defaults, caps and pauses.",
    "keys": "API keys.",
    "why": "What stands in the way of a job or a run, and what to do about it.",
    "alerts": "What the observer found wrong, and how it was told.",
    "audit": "Who changed what, and who was not allowed to.",
    "me": "What the credential in use may do.",
    "documents": "This document, and its like.",
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
"""Of parameters in paths; a test puts the ids of objects that exist in their place."""

HEADERS: Final[dict[str, Any]] = {
    "Noonmark-Request-Id": {
        "description": "Names the request in logs and audit; the caller's own, if it sent one that is fit.",
        "required": True,
        "schema": {"type": "string", "pattern": "^[A-Za-z0-9._-]{1,64}$"},
    },
    "ETag": {
        "description": "The version of the object, for `If-Match`.",
        "required": True,
        "schema": {"type": "string", "pattern": '^"[0-9a-f]{1,64}"$'},
    },
    "Location": {
        "description": "Path of the object that was made.",
        "required": True,
        "schema": {"type": "string", "format": "uri-reference"},
    },
    "Retry-After": {
        "description": "Seconds to wait before the request is sent again.",
        "required": True,
        "schema": {"type": "integer", "minimum": 1},
    },
    "WWW-Authenticate": {
        "description": "How to authenticate.",
        "required": True,
        "schema": {"type": "string"},
    },
    "Allow": {
        "description": "Methods that the path takes.",
        "required": True,
        "schema": {"type": "string"},
    },
}

PROBLEM_RESPONSES: Final = {
    "400": "Malformed",
    "401": "Unauthenticated",
    "403": "Forbidden",
    "404": "NotFound",
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
    "400": "The request cannot be read, or its cursor is not one of the listing.",
    "401": "Credentials are missing or not valid.",
    "403": "The role or the scopes of the credential do not allow it.",
    "404": "There is no such thing, or it is in a namespace that the credential has no role in.",
    "409": "The state of the object does not allow it, or a name is taken.",
    "412": "The object has changed since it was read.",
    "413": "The body is too large.",
    "415": "The body is no JSON.",
    "422": "The document is not valid; `errors` points at each problem.",
    "429": "The rate of the credential, or of the address, is used up.",
    "500": "The server failed; its log tells more under the request id.",
    "503": "The database does not answer, or is too busy.",
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
                "An API key. Its roles hold in namespaces, and each has what those before it have: "
                f"{_roles()}. Scopes narrow a key down to some of these permissions."
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
    """Return the schemas of bodies that are read as plain JSON and checked by parsers of their own."""
    documents = definitions(JobDocument, prefix=SCHEMA_PREFIX)
    return {**documents, "JobPatch": _patch_of(documents["JobDocument"]), "CalendarDocument": _CALENDAR}


def _patch_of(document: Mapping[str, Any]) -> dict[str, Any]:
    """Return the schema of a merge patch of a job document.

    Objects in a field may be given in part, so of these nothing is said here: the parser judges the document
    that comes out.
    """
    return {
        "type": "object",
        "description": (
            "A merge patch (RFC 7396) of a job document: what is named is replaced, null takes a field back "
            "to its default. The document that comes out is checked as a new one is."
        ),
        "properties": {
            name: {"description": field.get("description", "")}
            if "$ref" in str(field) or "object" in str(field)
            else {"anyOf": [field, {"type": "null"}]}
            for name, field in document["properties"].items()
        },
        "additionalProperties": False,
    }
