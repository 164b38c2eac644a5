"""URLs of identity providers: their keys must come over a trusted connection."""

from __future__ import annotations

import ipaddress
from urllib.parse import urlsplit


def issuer_url_problem(url: str) -> str | None:
    """Return what is wrong with the URL of an issuer or of its keys; None if it is valid."""
    try:
        parts = urlsplit(url)
        host, _port = parts.hostname, parts.port
    except ValueError:
        return "is not a URL"
    if not host or not url.isascii() or any(character <= " " for character in url):
        return "is not a URL"
    if parts.username is not None or parts.password is not None or parts.fragment:
        return "holds a user, a password or a fragment"
    if parts.scheme != "https" and not (parts.scheme == "http" and is_loopback(url)):
        return "is not https"
    return None


def is_loopback(url: str) -> bool:
    """Return whether a URL names this host, by address or as `localhost`."""
    host = urlsplit(url).hostname or ""
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False
