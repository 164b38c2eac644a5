"""What went wrong between us and a target, in words."""

from __future__ import annotations

from typing import Any, Final

import aiohttp

from noonmark.core.kinds.http_request import Target
from noonmark.worker.http.address_guard import AddressRefusedError

_WORDS: Final[tuple[tuple[type[Exception], str], ...]] = (
    # The first class that fits speaks; the more special ones stand before their bases.
    (aiohttp.ClientConnectorDNSError, "{host} cannot be resolved: {cause}"),
    (aiohttp.ClientConnectorCertificateError, "the TLS certificate of {place} is not trusted: {cause}"),
    (aiohttp.ClientConnectorSSLError, "no TLS connection to {place}: {cause}"),
    (aiohttp.ClientConnectorError, "no connection to {place}: {cause}"),
    (aiohttp.ServerDisconnectedError, "{place} closed the connection without an answer"),
    (aiohttp.ClientPayloadError, "the answer of {place} broke off: {cause}"),
    (aiohttp.ClientResponseError, "the answer of {place} is not proper HTTP: {cause}"),
    (Exception, "the connection to {place} failed: {cause}"),
)


def sentence(error: Exception, target: Target) -> str:
    """Say in words what went wrong between us and the target."""
    cause: Any = getattr(error, "os_error", None) or getattr(error, "certificate_error", None) or error
    if isinstance(cause, AddressRefusedError):
        return f"not sent: {target.host} may not be called: {cause}"
    words = next(words for kind, words in _WORDS if isinstance(error, kind))
    detail = getattr(cause, "strerror", None) or getattr(cause, "message", None) or str(cause)
    return words.format(host=target.host, place=f"{target.url_host}:{target.port}", cause=detail)
