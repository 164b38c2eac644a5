"""Checks a received call."""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping

from noonmark.core.access import webhook_signature
from noonmark.core.access.webhook_signature import TOLERANCE_SECONDS, SignedCall


def verify(
    headers: Mapping[str, str],
    body: bytes,
    secrets: Iterable[str],
    *,
    tolerance_seconds: float = TOLERANCE_SECONDS,
    now: float | None = None,
) -> SignedCall:
    """Check that the sender of a call knows the secret, and that the call is recent and was not altered.

    Args:
        headers: of the request; their names in any case. For a WSGI server, use `environ_headers`.
        body: the received bytes, before anything parses them as JSON.
        secrets: the written secrets (`whsec_…`) that are valid; several while they are rotated.
        tolerance_seconds: how far the call's time may be from this machine's, in both directions.
        now: Unix seconds; this machine's clock by default.

    Raises:
        SignatureError: the call cannot be trusted: answer 401 without further details.
        SecretError: one of your secrets is not a signing secret.
    """
    return webhook_signature.verify(
        headers, body, secrets, now=time.time() if now is None else now, tolerance_seconds=tolerance_seconds
    )


def environ_headers(environ: Mapping[str, object]) -> dict[str, str]:
    """Return the headers of a WSGI request."""
    return {
        name.removeprefix("HTTP_").replace("_", "-"): value
        for name, value in environ.items()
        if name.startswith("HTTP_") and isinstance(value, str)
    }
