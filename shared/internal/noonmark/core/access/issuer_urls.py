"""Where an identity provider may be: its keys must come over a connection that can be believed."""

from __future__ import annotations

import ipaddress
from urllib.parse import urlsplit


def issuer_url_problem(url: str) -> str | None:
    """Say what is wrong with the URL of an issuer or of its keys; None where it will do."""
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
    """Tell whether a URL names this very host, by address or as `localhost`."""
    host = urlsplit(url).hostname or ""
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False
