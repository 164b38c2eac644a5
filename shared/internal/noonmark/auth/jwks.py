"""The signing keys of an issuer, found by OpenID discovery and refreshed when the issuer rotates them."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from threading import Lock
from typing import Any, Final, NamedTuple

import httpx
import jwt

from noonmark.core.access.issuer_urls import is_loopback, issuer_url_problem
from noonmark.telemetry.logs import get_logger

ALGORITHMS: Final = {
    "RSA": frozenset({"RS256", "PS256"}),
    "EC": frozenset({"ES256"}),
    "OKP": frozenset({"EdDSA"}),
}
"""Accepted algorithms by key type: only asymmetric signatures, no `none` and no shared secrets."""

ACCEPTED: Final = tuple(sorted(name for names in ALGORITHMS.values() for name in names))
"""All of these algorithms."""

REFETCH_SECONDS: Final = 30.0
"""Minimum time between two requests to the issuer, whatever key ids the tokens name."""

MAX_AGE_SECONDS: Final = 600.0
"""After this time keys are fetched again, so that a withdrawn key does not stay valid."""

_log = get_logger()

_TIMEOUT_SECONDS: Final = 3.0
_LARGEST: Final = 512 * 1024
_MOST: Final = 100
_SMALLEST_RSA: Final = 2048


class IssuerAwayError(Exception):
    """The issuer's keys could not be fetched, and none are cached."""


class SigningKey(NamedTuple):
    """A public key of an issuer.

    Attributes:
        kid: its id, if it has one.
        public_key: the key object of the cryptography library.
        algorithms: the algorithms it may be used with; only its own if it names one.
    """

    kid: str | None
    public_key: Any
    algorithms: frozenset[str]


def fetch_json(url: str) -> Any:
    """Fetch a small JSON document; redirects are not followed.

    Raises:
        httpx.HTTPError: the server does not answer, or does not answer with success.
        ValueError: the response is too large, or is not JSON.
    """
    with (
        # The environment's proxy is for external servers; a provider on this host is called directly.
        httpx.Client(timeout=_TIMEOUT_SECONDS, trust_env=not is_loopback(url)) as client,
        client.stream("GET", url, headers={"accept": "application/json"}) as answer,
    ):
        if answer.status_code != httpx.codes.OK:
            raise ValueError(f"the answer of {url} has status {answer.status_code}")
        body = bytearray()
        for part in answer.iter_bytes():
            body += part
            if len(body) > _LARGEST:
                raise ValueError(f"the answer of {url} is too large")
    return json.loads(bytes(body))


class IssuerKeys:
    """The public keys of one issuer. Thread-safe. While the issuer is unavailable, cached keys stay valid."""

    def __init__(
        self,
        issuer: str,
        *,
        fetch: Callable[[str], Any] = fetch_json,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """Create an empty cache; nothing is fetched yet.

        Args:
            issuer: URL of the issuer.
            fetch: fetches a JSON document.
            clock: monotonic clock, in seconds.
        """
        self._issuer = issuer
        self._fetch = fetch
        self._clock = clock
        self._lock = Lock()
        self._keys: dict[str | None, SigningKey] = {}
        self._fetched_at: float | None = None
        self._tried_at: float | None = None

    def find(self, kid: object, algorithm: object) -> Any:
        """Return the key that a token names, for the algorithm that it names.

        Raises:
            IssuerAwayError: no keys are cached, and the issuer does not answer.
            jwt.InvalidAlgorithmError: no key is accepted for this algorithm.
            jwt.InvalidKeyError: the issuer has no such key for this algorithm.
        """
        if algorithm not in ACCEPTED:
            raise jwt.InvalidAlgorithmError
        key = self._known(kid)
        if key is None or self._stale():
            self._refresh(wait=key is None)
            key = self._known(kid)
        if key is None:
            if self._fetched_at is None:
                raise IssuerAwayError
            raise jwt.InvalidKeyError
        if algorithm not in key.algorithms:
            raise jwt.InvalidKeyError
        return key.public_key

    def _known(self, kid: object) -> SigningKey | None:
        keys = self._keys
        if kid is None:
            # A token may leave the key id out if the issuer has only one key.
            return next(iter(keys.values())) if len(keys) == 1 else None
        return keys.get(kid) if isinstance(kid, str) else None

    def _stale(self) -> bool:
        return self._fetched_at is None or self._clock() - self._fetched_at >= MAX_AGE_SECONDS

    def _refresh(self, *, wait: bool) -> None:
        """Fetch the keys, unless that was tried a moment ago; without `wait`, leave it to another thread."""
        if not self._lock.acquire(blocking=wait):
            return
        try:
            now = self._clock()
            if self._tried_at is not None and now - self._tried_at < REFETCH_SECONDS:
                return
            self._tried_at = now
            self._keys = self._fetched()
            self._fetched_at = now
        except (ValueError, RecursionError) as error:
            _log.warning(
                "issuer_keys_not_fetched",
                issuer=self._issuer,
                cached_keys=len(self._keys),
                reason=str(error) or type(error).__name__,
            )
        finally:
            self._lock.release()

    def _fetched(self) -> dict[str | None, SigningKey]:
        found = self._read(f"{self._issuer.rstrip('/')}/.well-known/openid-configuration")
        if not isinstance(found, dict):
            raise ValueError("the discovery document is not an object")  # noqa: TRY004 - one type for all problems
        if found.get("issuer") != self._issuer:
            raise ValueError(f"the discovery document names another issuer: {found.get('issuer')!r:.300}")
        place = found.get("jwks_uri")
        if not isinstance(place, str) or issuer_url_problem(place) is not None:
            raise ValueError("the discovery document contains no jwks_uri that can be trusted")
        documents = self._read(place)
        listed = documents.get("keys") if isinstance(documents, dict) else None
        if not isinstance(listed, list):
            raise ValueError("the issuer's keys are not a list")  # noqa: TRY004 - one type for all problems
        keys: dict[str | None, SigningKey] = {}
        for document in listed[:_MOST]:
            if (key := _usable(document)) is not None:
                keys[key.kid] = key
        return keys

    def _read(self, url: str) -> Any:
        try:
            return self._fetch(url)
        except httpx.HTTPError as error:
            raise ValueError(f"{url} does not answer: {str(error) or type(error).__name__}") from error


def _usable(document: object) -> SigningKey | None:
    """Parse a key; return None for one that is not for signatures or whose type is not accepted."""
    if not isinstance(document, dict) or document.get("kty") not in ALGORITHMS:
        return None
    if document.get("use", "sig") != "sig":
        return None
    try:
        key = jwt.PyJWK(document)
    except (jwt.PyJWTError, ValueError, TypeError, KeyError):
        return None
    if document["kty"] == "RSA" and key.key.key_size < _SMALLEST_RSA:
        return None
    accepted = ALGORITHMS[document["kty"]]
    if "alg" in document:
        accepted &= {document["alg"]}
    elif key.algorithm_name not in {"RS256", *accepted}:
        return None  # a curve that is not accepted
    return SigningKey(key.key_id, key.key, accepted) if accepted else None
