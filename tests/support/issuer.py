"""An identity provider of a test's own: it signs tokens, and serves its keys from memory."""

from __future__ import annotations

import json
import time
from typing import Any

import httpx
import jwt
from cryptography.hazmat.primitives.asymmetric import ec, ed25519, rsa

ISSUER = "https://login.example.com/realm"
AUDIENCE = "noonmark"

RSA_KEY = rsa.generate_private_key(public_exponent=65537, key_size=2048)
WEAK_KEY = rsa.generate_private_key(public_exponent=65537, key_size=1024)
EC_KEY = ec.generate_private_key(ec.SECP256R1())
WIDE_KEY = ec.generate_private_key(ec.SECP384R1())
ED_KEY = ed25519.Ed25519PrivateKey.generate()


def jwk(key: Any, kid: str | None, **more: Any) -> dict[str, Any]:
    """The public half of a key, as a provider lists it."""
    kinds = {
        rsa.RSAPrivateKey: "RS256",
        ec.EllipticCurvePrivateKey: "ES256",
        ed25519.Ed25519PrivateKey: "EdDSA",
    }
    name = next(name for kind, name in kinds.items() if isinstance(key, kind))
    algorithm = jwt.get_algorithm_by_name("ES384" if key is WIDE_KEY else name)
    document = json.loads(algorithm.to_jwk(key.public_key()))
    document.pop("key_ops", None)
    return {**document, **({"kid": kid} if kid else {}), **more}


def token(key: Any = RSA_KEY, algorithm: str = "RS256", kid: str | None = "k1", **claims: Any) -> str:
    """A token that is right but for what is given; a claim that is None is left out."""
    now = int(time.time())
    body = {
        "iss": ISSUER,
        "aud": AUDIENCE,
        "sub": "u1",
        "exp": now + 300,
        "noonmark_roles": ["a:viewer"],
        **claims,
    }
    return jwt.encode(
        {name: value for name, value in body.items() if value is not None},
        key,
        algorithm=algorithm,
        headers={"kid": kid} if kid else None,
    )


class Provider:
    """Answers for what it serves; counts what is asked."""

    def __init__(self, *keys: dict[str, Any]) -> None:
        self.keys = list(keys)
        self.discovery: Any = {"issuer": ISSUER, "jwks_uri": f"{ISSUER}/keys"}
        self.away = False
        self.asked: list[str] = []

    def fetch(self, url: str) -> Any:
        self.asked.append(url)
        if self.away:
            raise httpx.ConnectError("away")
        if url == f"{ISSUER}/.well-known/openid-configuration":
            return self.discovery
        if url == f"{ISSUER}/keys":
            return {"keys": self.keys}
        raise httpx.ConnectError(f"nothing is at {url}")


class Clock:
    """A clock that stands until it is moved."""

    def __init__(self, at: float = 1000.0) -> None:
        self.at = at

    def __call__(self) -> float:
        return self.at
