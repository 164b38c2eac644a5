"""Authenticates credentials: API keys and tokens of the identity provider become principals."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

from noonmark.auth.errors import AuthenticationError, AuthenticationReason
from noonmark.auth.key_cache import KeyCache, KnownKey
from noonmark.auth.tokens import PREFIX, ApiToken
from noonmark.core.access.roles import Principal
from noonmark.settings import Settings

if TYPE_CHECKING:
    from noonmark.auth.oidc import TokenVerifier

_SCHEME: Final = "bearer "
_HOW: Final = "send `Authorization: Bearer <token>`, with an API key or a token of the identity provider"
_LONGEST: Final = 16 * 1024


class Publisher(NamedTuple):
    """The publisher that a signed event names, and the secret to check the signature with."""

    principal: Principal
    signing_secret: bytes


class Authenticator:
    """Authenticates requests. Create one per process; it is thread-safe.

    Results are cached for a few seconds: a revoked key is refused within 5 s everywhere.
    """

    def __init__(self, dsn: str, settings: Settings) -> None:
        """Create an authenticator; nothing is read before the first credential.

        Args:
            dsn: libpq URL of the database, as its owner.
            settings: the settings, including those of the identity provider.
        """
        self._keys = KeyCache(dsn)
        self._tokens = _verifier(settings)

    def authenticate(self, authorization_header: str | None) -> Principal:
        """Return the principal of a request.

        Args:
            authorization_header: the value of the header; None if there was none.

        Raises:
            AuthenticationError: the credential is missing or not accepted.
            psycopg.OperationalError: the database is unavailable, and the key is not cached.
        """
        credential = _credential(authorization_header)
        if credential.startswith(PREFIX):
            return self._of_key(credential)
        return self.authenticate_jwt(credential)

    def recall(self, authorization_header: str | None) -> Principal | None:
        """Do the same only from the cache, without waiting; return None if `authenticate` must be called.

        It never raises: anything that is not cached as valid is left to `authenticate`.
        """
        try:
            credential = _credential(authorization_header)
        except AuthenticationError:
            return None
        if not credential.startswith(PREFIX):
            return self._tokens.recall(credential) if self._tokens else None
        token = ApiToken.parse(credential)
        key = self._keys.recall(token.key_id) if token else None
        if key is None or token is None or not token.matches(key.secret_hash) or not self._keys.valid(key):
            return None
        self._keys.remember_use(key)
        return key.principal

    def authenticate_jwt(self, token: str) -> Principal:
        """Return the principal of a token of the identity provider.

        Raises:
            AuthenticationError: the token is not accepted, or no provider is configured.
        """
        if self._tokens is None:
            raise AuthenticationError(
                AuthenticationReason.MALFORMED,
                "the credential is not an API key",
                "use an API key (nmk_…); tokens of an identity provider are accepted if"
                " NOONMARK_OIDC_ISSUER and NOONMARK_OIDC_AUDIENCE are set",
            )
        return self._tokens.principal(token)

    def principal_of_key(self, key_id: str) -> Publisher | None:
        """Return the publisher of a signing key; None if there is no valid signing key with this id.

        Raises:
            psycopg.OperationalError: the database is unavailable, and the key is not cached.
        """
        key = self._keys.find(key_id)
        if key is None or key.signing_secret is None or not self._keys.valid(key):
            return None
        self._keys.remember_use(key)
        self._keys.note_uses()
        return Publisher(key.principal, key.signing_secret)

    def close(self) -> None:
        """Close the connection."""
        self._keys.close()

    def _of_key(self, credential: str) -> Principal:
        token = ApiToken.parse(credential)
        if token is None:
            raise AuthenticationError(
                AuthenticationReason.MALFORMED,
                "the API key is incomplete",
                "an API key is nmk_, 12 characters, _, and 43 characters: copy it again, or create a new one",
            )
        key = self._keys.find(token.key_id)
        if key is None or not token.matches(key.secret_hash):
            raise AuthenticationError(
                AuthenticationReason.UNKNOWN,
                "the API key is unknown",
                "check that the key is from this installation; an administrator creates new ones with"
                " `noonmark admin key create`",
            )
        self._refuse_ended(key)
        self._keys.remember_use(key)
        self._keys.note_uses()
        return key.principal

    def _refuse_ended(self, key: KnownKey) -> None:
        if key.revoked:
            raise AuthenticationError(
                AuthenticationReason.REVOKED, "the API key is revoked", "ask an administrator for a new one"
            )
        if self._keys.expired(key):
            raise AuthenticationError(
                AuthenticationReason.EXPIRED,
                "the API key has expired",
                "create a new one with `noonmark admin key create`, or ask an administrator for one",
            )


def _credential(header: str | None) -> str:
    if not header:
        raise AuthenticationError(AuthenticationReason.MISSING, "there is no credential", _HOW)
    if len(header) > _LONGEST or header[: len(_SCHEME)].lower() != _SCHEME:
        raise AuthenticationError(
            AuthenticationReason.MALFORMED, "the header Authorization cannot be read", _HOW
        )
    return header[len(_SCHEME) :].strip(" ")


def _verifier(settings: Settings) -> TokenVerifier | None:
    """Create what verifies tokens; None without an issuer: most processes need no HTTP client for it."""
    if not settings.oidc_issuer:
        return None
    from noonmark.auth.oidc import TokenVerifier  # noqa: PLC0415 - takes a while to load

    return TokenVerifier.of(settings)
