"""Why somebody was not let in."""

from __future__ import annotations

from enum import StrEnum


class AuthenticationReason(StrEnum):
    """What was wrong with a credential: for logs, metrics and audit entries."""

    MISSING = "missing"
    MALFORMED = "malformed"
    UNKNOWN = "unknown"
    """No such key, or a wrong secret: which of the two, nobody is told."""
    EXPIRED = "expired"
    REVOKED = "revoked"
    TOKEN_REFUSED = "token_refused"  # noqa: S105 - a reason, no password
    ISSUER_AWAY = "issuer_away"
    """The provider's keys could not be fetched yet: nothing is said about the token."""


class AuthenticationError(Exception):
    """A credential is not accepted. Nothing in it quotes the credential.

    Attributes:
        reason: which kind of wrong.
        hint: what to do about it, for whoever sent it.
    """

    def __init__(self, reason: AuthenticationReason, message: str, hint: str) -> None:
        super().__init__(message)
        self.reason = reason
        self.hint = hint
