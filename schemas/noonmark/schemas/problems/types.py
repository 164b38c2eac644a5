"""The problems that the API answers with (RFC 9457): one list, from which docs/problems.md is made."""

from __future__ import annotations

import sys
from typing import Final, NamedTuple

URN: Final = "urn:noonmark:problem:"


class ProblemType(NamedTuple):
    """One kind of problem.

    Attributes:
        slug: last part of its `type`.
        status: HTTP status.
        title: the same for every occurrence.
        cause: when it is answered.
        remedy: what the caller can do.
    """

    slug: str
    status: int
    title: str
    cause: str
    remedy: str

    @property
    def uri(self) -> str:
        """Its `type` in answers."""
        return URN + self.slug


MALFORMED: Final = ProblemType(
    "malformed",
    400,
    "The request cannot be read",
    "A parameter is not what it should be, or there is none of that name; or the request is no sound HTTP.",
    "Correct what `detail` and `errors` name.",
)
BAD_CURSOR: Final = ProblemType(
    "bad-cursor",
    400,
    "The cursor is not one of this listing",
    "A cursor was changed, is of another listing, or comes with other filters than the page before.",
    "Start again without `cursor`, and keep the filters while paging.",
)
UNAUTHENTICATED: Final = ProblemType(
    "unauthenticated",
    401,
    "Credentials are missing or not valid",
    "No `Authorization: Bearer` header, or a key or token that is unknown, expired or revoked.",
    "Send an API key (`noonmark admin key create`) or a token of the configured OIDC issuer.",
)
FORBIDDEN: Final = ProblemType(
    "forbidden",
    403,
    "The role does not allow this",
    "The credential may see the object or namespace, but its role or scopes do not include this act.",
    "Use a credential with the role that `detail` names, or ask an admin of the namespace for it.",
)
NOT_FOUND: Final = ProblemType(
    "not-found",
    404,
    "There is no such thing here",
    "No object has this id or name, or it is in a namespace that the credential has no role in.",
    "Check the id, and which namespaces `GET /v1/me` lists.",
)
METHOD_NOT_ALLOWED: Final = ProblemType(
    "method-not-allowed",
    405,
    "The path does not take this method",
    "The path exists, but not with this HTTP method.",
    "Use a method of the `Allow` header.",
)
REQUEST_TIMEOUT: Final = ProblemType(
    "request-timeout",
    408,
    "The request took too long to come",
    "The head of the request was not there in time.",
    "Send the whole of a request at once.",
)
CONFLICT: Final = ProblemType(
    "conflict",
    409,
    "The state of the object does not allow this",
    "The object is in a state that the act is not made for, or a name is taken.",
    "Read the object again; `detail` says what is in the way.",
)
PRECONDITION_FAILED: Final = ProblemType(
    "precondition-failed",
    412,
    "The object has changed since it was read",
    "`If-Match` names another version than the object has now.",
    "Read the object again, apply the change to what it is now, and send the new `ETag`.",
)
TOO_LARGE: Final = ProblemType(
    "too-large",
    413,
    "The request is too large",
    "The body has more bytes, or more items, than the server takes.",
    "Send less at once; `detail` names the limit.",
)
UNSUPPORTED_MEDIA_TYPE: Final = ProblemType(
    "unsupported-media-type",
    415,
    "The body must be JSON",
    "The body comes with another `Content-Type` than the route takes.",
    "Send `Content-Type: application/json`.",
)
INVALID: Final = ProblemType(
    "invalid",
    422,
    "The document is not valid",
    "The body is no JSON, or not what it should be: every problem is in `errors` with its JSON pointer.",
    "Correct what each entry of `errors` names.",
)
QUOTA_EXCEEDED: Final = ProblemType(
    "quota-exceeded",
    409,
    "The namespace has used up its quota",
    "The namespace has as many recurring jobs as its `max_jobs` lets it have.",
    "Cancel jobs that are not needed any more, or ask an admin of the namespace for a higher `max_jobs`.",
)
KEY_REUSED: Final = ProblemType(
    "idempotency-key-reused",
    422,
    "The idempotency key belongs to another request",
    "The same `Idempotency-Key` came before with another request.",
    "Use a new key for a new request, and the same key only for a repeat of the same one.",
)
TOO_MANY_REQUESTS: Final = ProblemType(
    "too-many-requests",
    429,
    "Too many requests",
    "The credential, or the address without valid ones, has used up its rate.",
    "Wait for the seconds of `Retry-After`; ask an admin for a higher rate if it is needed for long.",
)
HEAD_TOO_LARGE: Final = ProblemType(
    "head-too-large",
    431,
    "The head of the request is too large",
    "The request line and the headers have more than 64 KB.",
    "Send shorter headers, and long filters in several requests.",
)
INTERNAL: Final = ProblemType(
    "internal",
    500,
    "The server failed",
    "A fault of noonmark; its log has the details under the request id.",
    "Report the request id. Whether the request took effect is not known: read before a repeat.",
)
UNAVAILABLE: Final = ProblemType(
    "unavailable",
    503,
    "The server cannot work right now",
    "Postgres or Kafka does not answer, or too many requests are in hand.",
    "Try again after the seconds of `Retry-After`.",
)

PROBLEM_TYPES: Final = (
    MALFORMED,
    BAD_CURSOR,
    UNAUTHENTICATED,
    FORBIDDEN,
    NOT_FOUND,
    METHOD_NOT_ALLOWED,
    REQUEST_TIMEOUT,
    CONFLICT,
    PRECONDITION_FAILED,
    TOO_LARGE,
    UNSUPPORTED_MEDIA_TYPE,
    INVALID,
    QUOTA_EXCEEDED,
    KEY_REUSED,
    TOO_MANY_REQUESTS,
    HEAD_TOO_LARGE,
    INTERNAL,
    UNAVAILABLE,
)

_HEAD: Final = """\
# Problems

The API answers whatever it does not do with a problem document (RFC 9457), as `application/problem+json`:

```json
{"type": "urn:noonmark:problem:invalid", "title": "The document is not valid", "status": 422,
 "detail": "/schedule: cron minute field: value '61' at character 1 is out of range",
 "errors": [{"pointer": "/schedule", "expected": "0 to 59",
             "message": "cron minute field: value '61' at character 1 is out of range"}],
 "request_id": "0197a2b4-6c1e-7001-8000-7f6f0e0e1a2b"}
```

`type` names the problem and never changes; programs decide by it, or by the status. `detail` and `errors` are
for people: their words may change. `pointer` (RFC 6901) leads into the body that was sent; it is empty where
the problem is of no single place, or of a parameter. `request_id` is what logs and the audit log keep.

This page is printed by `python -m noonmark.schemas.problems.types`; do not edit it by hand.
"""


def page() -> str:
    """Return the text of docs/problems.md."""
    text = _HEAD + "\n| type | status | when | what to do |\n|---|---|---|---|\n"
    for kind in PROBLEM_TYPES:
        text += f"| [`{kind.slug}`](#{kind.slug}) | {kind.status} | {kind.cause} | {kind.remedy} |\n"
    for kind in PROBLEM_TYPES:
        text += f"\n## {kind.slug}\n\n`{kind.uri}`, {kind.status}: {kind.title}.\n\n"
        text += f"- **Cause:** {kind.cause}\n- **Remedy:** {kind.remedy}\n"
    return text


if __name__ == "__main__":
    sys.stdout.write(page())
