"""The problem types of the API (RFC 9457). docs/problems.md is generated from this list."""

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
        cause: when it occurs.
        remedy: what the caller can do.
    """

    slug: str
    status: int
    title: str
    cause: str
    remedy: str

    @property
    def uri(self) -> str:
        """The `type` in responses."""
        return URN + self.slug


MALFORMED: Final = ProblemType(
    "malformed",
    400,
    "The request cannot be read",
    "A parameter is invalid or unknown, or the request is not valid HTTP.",
    "Correct the request as `detail` and `errors` say.",
)
BAD_CURSOR: Final = ProblemType(
    "bad-cursor",
    400,
    "The cursor does not belong to this listing",
    "The cursor was changed, comes from another listing, or is sent with other filters than before.",
    "Start again without `cursor`, and keep the filters while paging.",
)
UNAUTHENTICATED: Final = ProblemType(
    "unauthenticated",
    401,
    "Credentials are missing or invalid",
    "The request has no `Authorization: Bearer` header, or its key or token is unknown, expired or revoked.",
    "Send an API key (`noonmark admin key create`) or a token of the configured OIDC issuer.",
)
FORBIDDEN: Final = ProblemType(
    "forbidden",
    403,
    "The role does not allow this",
    "The credential has access to the object or namespace, but its role or scopes do not allow this action.",
    "Use a credential with the role that `detail` names, or ask an admin of the namespace for that role.",
)
NOT_FOUND: Final = ProblemType(
    "not-found",
    404,
    "The object does not exist",
    "No object has this id or name, or the credential has no role in its namespace.",
    "Check the id, and the namespaces that `GET /v1/me` lists.",
)
METHOD_NOT_ALLOWED: Final = ProblemType(
    "method-not-allowed",
    405,
    "The path does not support this method",
    "The path exists, but not with this HTTP method.",
    "Use a method that the `Allow` header lists.",
)
NOT_ACCEPTABLE: Final = ProblemType(
    "not-acceptable",
    406,
    "The response has none of the accepted types",
    "`Accept` allows none of the media types that the route can send.",
    "Send an `Accept` with one of the types that `detail` lists, or none.",
)
REQUEST_TIMEOUT: Final = ProblemType(
    "request-timeout",
    408,
    "The request took too long to arrive",
    "The request line and headers did not arrive in time.",
    "Send the request without pauses.",
)
CONFLICT: Final = ProblemType(
    "conflict",
    409,
    "The state of the object does not allow this",
    "The action is not possible in the current state of the object, or a name is taken.",
    "Read the object again; `detail` names the conflict.",
)
PRECONDITION_FAILED: Final = ProblemType(
    "precondition-failed",
    412,
    "The object is not as your request requires",
    "`If-Match` names a version that is not the current one, or `If-None-Match: *` is sent and the object"
    " exists already.",
    "Read the object again, apply your change to the current version, and send the new `ETag`.",
)
TOO_LARGE: Final = ProblemType(
    "too-large",
    413,
    "The request is too large",
    "The body has more bytes or items than the server accepts.",
    "Split the request; `detail` names the limit.",
)
UNSUPPORTED_MEDIA_TYPE: Final = ProblemType(
    "unsupported-media-type",
    415,
    "The body must be JSON",
    "The route does not accept the `Content-Type` of the body.",
    "Send `Content-Type: application/json`; `PATCH` also takes `application/merge-patch+json`.",
)
INVALID: Final = ProblemType(
    "invalid",
    422,
    "The document is not valid",
    "The body is not JSON, or has invalid fields: `errors` lists each problem with its JSON pointer.",
    "Correct each problem in `errors`.",
)
QUOTA_EXCEEDED: Final = ProblemType(
    "quota-exceeded",
    409,
    "The namespace has used up its quota",
    "The number of recurring jobs in the namespace has reached its `max_jobs`.",
    "Cancel jobs that you no longer need, or ask an admin of the namespace for a higher `max_jobs`.",
)
KEY_REUSED: Final = ProblemType(
    "idempotency-key-reused",
    422,
    "The idempotency key belongs to another request",
    "An earlier, different request had the same `Idempotency-Key`.",
    "Use a new key for each new request, and the same key only to repeat that request.",
)
TOO_MANY_REQUESTS: Final = ProblemType(
    "too-many-requests",
    429,
    "Too many requests",
    "The credential, or the address of requests without a valid one, exceeded its rate limit.",
    "Wait for the seconds in `Retry-After`; ask an admin for a higher rate if you need it permanently.",
)
HEAD_TOO_LARGE: Final = ProblemType(
    "head-too-large",
    431,
    "The request line and headers are too large",
    "The request line and the headers exceed 64 KB.",
    "Send shorter headers, and split long filters into several requests.",
)
INTERNAL: Final = ProblemType(
    "internal",
    500,
    "Internal error",
    "An error in noonmark; its log has the details under the request id.",
    "Report the request id. The request may have taken effect: check before you repeat it.",
)
UNAVAILABLE: Final = ProblemType(
    "unavailable",
    503,
    "The service is temporarily unavailable",
    "Postgres or Kafka does not respond, or too many requests are in flight.",
    "Try again after the seconds in `Retry-After`.",
)

PROBLEM_TYPES: Final = (
    MALFORMED,
    BAD_CURSOR,
    UNAUTHENTICATED,
    FORBIDDEN,
    NOT_FOUND,
    METHOD_NOT_ALLOWED,
    NOT_ACCEPTABLE,
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

The API reports every error as a problem document (RFC 9457) of type `application/problem+json`:

```json
{"type": "urn:noonmark:problem:invalid", "title": "The document is not valid", "status": 422,
 "detail": "/schedule: cron minute field: value '61' at character 1 is out of range",
 "errors": [{"pointer": "/schedule", "expected": "0 to 59",
             "message": "cron minute field: value '61' at character 1 is out of range"}],
 "request_id": "0197a2b4-6c1e-7001-8000-7f6f0e0e1a2b"}
```

`type` identifies the problem and never changes; use it, or the status, in programs. `detail` and `errors` are
for people: their wording may change. `pointer` (RFC 6901) points into the request body; it is empty if the
problem concerns the whole body or a parameter, which `message` then names. `expected` says what is allowed.
Logs and the audit log contain the `request_id`.

`python -m noonmark.schemas.problems.types` generates this page; do not edit it by hand.
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
