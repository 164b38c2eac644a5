"""Errors of calls: the server's problem documents as exceptions, and missing responses."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any, Final

_DEFAULT_TYPE: Final = "about:blank"
"""The type of a problem that says no more than its status (RFC 9457)."""


class ClientError(Exception):
    """Base class of all errors of calls."""


class NoAnswerError(ClientError):
    """No response: the server cannot be reached, or not in time. Whether it acted is not known."""


class WaitTimeoutError(ClientError, TimeoutError):
    """The awaited event did not happen before the timeout."""


class ApiError(ClientError):
    """The server refused a call. It says what is wrong, where, and what to do.

    Attributes:
        status: the HTTP status.
        type: URI of the kind of problem, listed in docs/problems.md; `about:blank` if there is none.
        title: the kind of problem in words.
        detail: what is wrong with this call.
        errors: per wrong field `pointer` (RFC 6901), `message`, and more as the server gives it.
        request_id: id of this call in the server's log and audit log; None if the server gave none.
        problem: the whole problem document.
    """

    def __init__(  # noqa: PLR0917 - the members of a problem document, in its order
        self,
        status: int,
        type: str = _DEFAULT_TYPE,  # noqa: A002 - the name of the field in RFC 9457
        title: str = "",
        detail: str = "",
        errors: Sequence[Mapping[str, Any]] = (),
        request_id: str | None = None,
        problem: Mapping[str, Any] | None = None,
    ) -> None:
        self.status = status
        self.type = type
        self.title = title
        self.detail = detail
        self.errors = tuple(errors)
        self.request_id = request_id
        self.problem = dict(problem or {})
        super().__init__(status, type, title, detail, self.errors, request_id, self.problem)

    @property
    def slug(self) -> str:
        """The last part of the type's URI, a short name to compare with; empty for `about:blank`."""
        if self.type == _DEFAULT_TYPE:
            return ""
        return re.split("[/#:]", self.type.rstrip("/#"))[-1]

    def __str__(self) -> str:
        head = f"{self.status} {self.title}".strip()
        fields = "; ".join(
            f"{one.get('pointer') or 'document'}: {one.get('message') or one.get('detail') or ''}"
            for one in self.errors
        )
        # A single problem is the whole detail.
        fields = "" if fields == self.detail else fields
        known = f" (request {self.request_id})" if self.request_id else ""
        return ": ".join(part for part in (head, self.detail, fields) if part) + known

    @classmethod
    def of(cls, status: int, reason: str, problem: object, request_id: str | None) -> ApiError:
        """Read a refusal.

        Args:
            status: the HTTP status.
            reason: its phrase, used if the body is not a problem document, such as a proxy's.
            problem: the decoded body; None if it is not JSON.
            request_id: from the header.
        """
        known = problem if isinstance(problem, dict) else {}
        errors = known.get("errors")
        return cls(
            status,
            str(known.get("type") or _DEFAULT_TYPE),
            str(known.get("title") or reason),
            str(known.get("detail") or ""),
            [one for one in errors if isinstance(one, dict)] if isinstance(errors, list) else (),
            request_id or (str(known["request_id"]) if known.get("request_id") else None),
            known,
        )
