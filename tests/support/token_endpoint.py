"""An identity provider for a broker and its clients: tokens for one client's credentials, and the keys they are signed with."""

from __future__ import annotations

import base64
import json
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import parse_qs, unquote_plus

from tests.support.issuer import AUDIENCE, ISSUER, RSA_KEY, jwk, token

CLIENT, SECRET = "billing", "s3cret+of/billing"


@dataclass(slots=True)
class TokenEndpoint:
    """What is served, and what was asked.

    Attributes:
        url: of the endpoint for tokens.
        keys_url: of the keys.
        life: seconds that tokens are valid.
        given: tokens that were given, by scope.
        refused: requests with other credentials.
    """

    url: str
    keys_url: str
    life: int = 300
    given: list[str] = field(default_factory=list)
    refused: int = 0

    def answer(self, authorization: str, form: dict[str, list[str]]) -> tuple[int, dict[str, object]]:
        """Return status and body for a request of a token."""
        kind, _, encoded = authorization.partition(" ")
        user, _, password = base64.b64decode(encoded).decode().partition(":")
        right = (kind, unquote_plus(user), unquote_plus(password)) == ("Basic", CLIENT, SECRET)
        # A client may send the plus sign as it is.
        right = right or (kind, user, password) == ("Basic", CLIENT, SECRET)
        if not right or form.get("grant_type") != ["client_credentials"]:
            self.refused += 1
            return 401, {"error": "invalid_client"}
        (scope,) = form.get("scope", [""])
        self.given.append(scope)
        made = token(sub=CLIENT, exp=int(time.time()) + self.life, scope=scope, iat=int(time.time()))
        return 200, {"access_token": made, "token_type": "Bearer", "expires_in": self.life}


@contextmanager
def token_endpoint() -> Iterator[TokenEndpoint]:
    """Serve on a free port of the loopback."""

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            form = parse_qs(self.rfile.read(int(self.headers["Content-Length"])).decode())
            self._send(*made.answer(self.headers.get("Authorization", ""), form))

        def do_GET(self) -> None:
            self._send(200, {"keys": [jwk(RSA_KEY, "k1", use="sig", alg="RS256")]})

        def _send(self, status: int, body: dict[str, object]) -> None:
            data = json.dumps(body).encode()
            self.send_response(status)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(data)))
            self.end_headers()
            self.wfile.write(data)

        def log_message(self, *_: object) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        base = f"http://127.0.0.1:{server.server_port}"
        made = TokenEndpoint(f"{base}/token", f"{base}/keys")
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True)
        thread.start()
        yield made
        server.shutdown()
        thread.join(5)


def broker_settings(endpoint: TokenEndpoint, port: int) -> dict[str, str]:
    """Return broker settings of a further listener on which clients show tokens."""
    oauth = "org.apache.kafka.common.security.oauthbearer"
    listener = "listener.name.oauth.oauthbearer"
    return {
        "listeners": f"OAUTH://127.0.0.1:{port}",
        "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT,OAUTH:SASL_PLAINTEXT",
        "sasl.enabled.mechanisms": "OAUTHBEARER",
        f"{listener}.sasl.jaas.config": f"{oauth}.OAuthBearerLoginModule required ;",
        f"{listener}.sasl.server.callback.handler.class": f"{oauth}.OAuthBearerValidatorCallbackHandler",
        f"{listener}.sasl.oauthbearer.jwks.endpoint.url": endpoint.keys_url,
        f"{listener}.sasl.oauthbearer.expected.audience": AUDIENCE,
        f"{listener}.sasl.oauthbearer.expected.issuer": ISSUER,
        # A connection ends with its token unless the client shows a new one (KIP-368).
        f"{listener}.connections.max.reauth.ms": "600000",
    }
