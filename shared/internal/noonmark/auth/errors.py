"""Errors of authentication."""

from __future__ import annotations

from enum import StrEnum


class AuthenticationReason(StrEnum):
    """Why a credential is refused, for logs, metrics and audit entries."""

    MISSING = "missing"
    MALFORMED = "malformed"
    UNKNOWN = "unknown"
    """No such key, or a wrong secret. The client cannot see which of the two."""
    EXPIRED = "expired"
    REVOKED = "revoked"
    TOKEN_REFUSED = "token_refused"  # noqa: S105 - a reason, no password
    ISSUER_AWAY = "issuer_away"
    """The provider's keys could not be fetched yet, so the token could not be checked."""


class AuthenticationError(Exception):
    """A credential is not accepted. The error never quotes the credential.

    Attributes:
        reason: the kind of problem.
        hint: what the client should do.
    """

    def __init__(self, reason: AuthenticationReason, message: str, hint: str) -> None:
        super().__init__(message)
        self.reason = reason
        self.hint = hint
