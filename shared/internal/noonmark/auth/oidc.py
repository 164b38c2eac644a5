"""Verifies tokens of an identity provider (OpenID Connect) and returns their principals."""

from __future__ import annotations

import hashlib
import time
from collections.abc import Callable
from typing import Any, Final

import jwt

from noonmark.auth.claims import principal_of_claims
from noonmark.auth.errors import AuthenticationError, AuthenticationReason
from noonmark.auth.jwks import ACCEPTED, REFETCH_SECONDS, IssuerAwayError, IssuerKeys
from noonmark.core.access.roles import Principal
from noonmark.settings import Settings

LEEWAY_SECONDS: Final = 30
"""Maximum difference between the issuer's clock and this host's."""

_KEEP_SECONDS: Final = 30.0
"""How long the result of a check is cached."""

_MOST: Final = 10_000
_LONGEST: Final = 16 * 1024


class TokenVerifier:
    """Verifies tokens of one issuer for one audience. Thread-safe."""

    def __init__(
        self,
        keys: IssuerKeys,
        *,
        issuer: str,
        audience: str,
        roles_claim: str,
        clock: Callable[[], float] = time.time,
    ) -> None:
        """Create a verifier; nothing is fetched before the first token.

        Args:
            keys: keys of the issuer.
            issuer: required value of `iss`.
            audience: value that `aud` must contain.
            roles_claim: the claim that contains the grants.
            clock: clock with seconds since 1970.
        """
        self._keys = keys
        self._issuer = issuer
        self._audience = audience
        self._roles_claim = roles_claim
        self._clock = clock
        self._seen: dict[bytes, tuple[Principal, float]] = {}

    @classmethod
    def of(cls, settings: Settings) -> TokenVerifier | None:
        """Create a verifier from the settings; return None if they name no issuer."""
        if not settings.oidc_issuer:
            return None
        return cls(
            IssuerKeys(settings.oidc_issuer),
            issuer=settings.oidc_issuer,
            audience=settings.oidc_audience,
            roles_claim=settings.oidc_roles_claim,
        )

    def recall(self, token: str) -> Principal | None:
        """Return the principal of a token from the cache, without waiting; None if it is not cached."""
        return self._recalled(_digest(token))

    def principal(self, token: str) -> Principal:
        """Return the principal of a token.

        Raises:
            AuthenticationError: the token is not accepted, or the issuer's keys cannot be fetched.
        """
        if len(token) > _LONGEST:
            raise self._refused("it is too long")
        digest = _digest(token)
        if (known := self._recalled(digest)) is not None:
            return known
        claims = self._checked(token)
        principal = principal_of_claims(claims, self._roles_claim)
        now = self._clock()
        if len(self._seen) >= _MOST:
            self._seen = {}
        self._seen[digest] = (principal, min(now + _KEEP_SECONDS, claims["exp"] + LEEWAY_SECONDS))
        return principal

    def _recalled(self, digest: bytes) -> Principal | None:
        found = self._seen.get(digest)
        return found[0] if found is not None and self._clock() < found[1] else None

    def _checked(self, token: str) -> dict[str, Any]:
        try:
            unverified = jwt.decode_complete(token, options={"verify_signature": False})
            header = unverified["header"]
            # First, so that the issuer is not asked for keys of others, and the error names the cause.
            if unverified["payload"].get("iss", self._issuer) != self._issuer:
                raise jwt.InvalidIssuerError
            key = self._keys.find(header.get("kid"), header.get("alg"))
            claims: dict[str, Any] = jwt.decode(
                token,
                key,
                algorithms=[str(header["alg"])],
                issuer=self._issuer,
                audience=self._audience,
                leeway=LEEWAY_SECONDS,
                options={"require": ["exp", "iss", "aud", "sub"]},
            )
        except IssuerAwayError as error:
            raise AuthenticationError(
                AuthenticationReason.ISSUER_AWAY,
                "the token cannot be checked: the keys of the identity provider cannot be fetched",
                "try again later; the log of the service has the reason",
            ) from error
        except jwt.ExpiredSignatureError as error:
            raise AuthenticationError(
                AuthenticationReason.EXPIRED,
                "the token has expired",
                "get a new one from the identity provider",
            ) from error
        except (jwt.PyJWTError, ValueError, TypeError) as error:
            raise self._refused(_why(error)) from None
        return claims

    def _refused(self, why: str) -> AuthenticationError:
        return AuthenticationError(
            AuthenticationReason.TOKEN_REFUSED,
            f"the token is not accepted: {why}",
            f"get a token whose `iss` is {self._issuer} and whose `aud` contains {self._audience}",
        )


def _digest(token: str) -> bytes:
    return hashlib.sha256(token.encode("utf-8", errors="replace")).digest()


_NO_KEY: Final = (
    f"its issuer lists no key that could have signed it; new keys are found within {REFETCH_SECONDS:.0f} s"
)
_REASONS: Final[tuple[tuple[type[Exception], str], ...]] = (
    (jwt.InvalidSignatureError, "its signature is wrong"),
    (jwt.InvalidIssuerError, "it is from another issuer"),
    (jwt.InvalidAudienceError, "it is for another audience"),
    (jwt.ImmatureSignatureError, "it is not valid yet"),
    (jwt.InvalidAlgorithmError, f"it is not signed with {', '.join(ACCEPTED)}"),
    (jwt.InvalidKeyError, _NO_KEY),
    (jwt.PyJWKSetError, _NO_KEY),
)


def _why(error: Exception) -> str:
    """Return the reason without the library's text, which may quote the token."""
    if isinstance(error, jwt.MissingRequiredClaimError):
        return f"its `{error.claim}` claim is missing"
    return next((why for kind, why in _REASONS if isinstance(error, kind)), "it cannot be read")
