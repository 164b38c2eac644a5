"""Checks of addresses and paths in settings. No message shows a password."""

from __future__ import annotations

import ipaddress
import re
from typing import Final, TypeVar
from urllib.parse import urlsplit

from pydantic import SecretStr

from noonmark.core.access.issuer_urls import issuer_url_problem
from noonmark.core.states import Lane
from noonmark.outbox.bindings import parse_bindings
from noonmark.settings.postgres_url import check_database_url

_DAY_SECONDS: Final = 86_400
UrlText = TypeVar("UrlText", str, SecretStr)

_BROKER: Final = re.compile(r"(?:[A-Za-z0-9._-]+|\[[0-9A-Fa-f:.]+\]):(\d{1,5})")


def check_app_outboxes(given: str) -> None:
    """Refuse bindings of outboxes that cannot be parsed, or that have an invalid database URL.

    Raises:
        ValueError: if a binding is invalid.
    """
    for bound in parse_bindings(given):
        try:
            check_database_url(bound.url)
        except ValueError as error:
            raise ValueError(f"the URL of binding {bound.name} {error}") from None


def checked_brokers(given: str) -> str:
    """Return a list of brokers without blanks.

    Raises:
        ValueError: if an entry is not host:port.
    """
    brokers = [part.strip() for part in given.split(",")]
    for broker in brokers:
        found = _BROKER.fullmatch(broker)
        if found is None or not 1 <= int(found[1]) <= 65_535:
            problem = f"{broker!r} is not a broker" if broker else "a broker is missing"
            raise ValueError(f"{problem}: use host:port, several with commas")
    return ",".join(brokers)


def checked_token_url(given: str) -> str:
    """Return the token endpoint of an identity provider; empty if there is none.

    Raises:
        ValueError: if it is not an https URL (http on this host only: the client secret is sent there), or
            contains a user, a password or a fragment. The message does not show the URL.
    """
    if not given:
        return ""
    if problem := issuer_url_problem(given):
        raise ValueError(problem)
    return given


def checked_api_url(given: str) -> str:
    """Return the URL of an API without a slash at the end.

    Raises:
        ValueError: if it is not a URL of an API, or contains a user or password (credentials belong in
            `api_key`). The message does not show the URL.
    """
    try:
        parts = urlsplit(given)
        fits = parts.scheme in {"http", "https"} and bool(parts.hostname) and (parts.port or 1) > 0
    except ValueError:
        fits = False
    if not fits or parts.username is not None or parts.query or parts.fragment:
        raise ValueError(
            "is not the URL of an API: use https://host, with a port or path if the API needs one"
        )
    return given.rstrip("/")


def check_issuer(issuer: str, audience: str) -> None:
    """Refuse an identity provider whose tokens could not be trusted.

    Raises:
        ValueError: if a setting is missing or invalid; the message names it.
    """
    if not issuer:
        if audience:
            raise ValueError(
                "NOONMARK_OIDC_AUDIENCE is set without NOONMARK_OIDC_ISSUER: set the issuer, too"
            )
        return
    if (problem := issuer_url_problem(issuer)) is not None:
        raise ValueError(
            f"NOONMARK_OIDC_ISSUER {problem}: use the issuer's URL exactly as in its tokens, such as "
            f"https://login.example.com/realms/main (http only for a loopback address of this host)"
        )
    if not audience:
        raise ValueError(
            "NOONMARK_OIDC_AUDIENCE is missing: without it, noonmark would accept tokens that the provider "
            "issued for any other application"
        )


def checked_networks(given: tuple[str, ...]) -> tuple[str, ...]:
    """Return a list of networks.

    Raises:
        ValueError: if an entry is not a network.
    """
    for network in given:
        try:
            ipaddress.ip_network(network)
        except ValueError as error:
            raise ValueError(f"{error}: use networks such as 10.20.0.0/16, with commas") from error
    return given


def checked_scripts(given: tuple[str, ...]) -> tuple[str, ...]:
    """Return a list of paths of scripts, or of folders with scripts.

    Raises:
        ValueError: if a path is relative: it would depend on where a worker was started.
    """
    for path in given:
        if path != "*" and not path.startswith("/"):
            raise ValueError(
                f"{path!r} is not an absolute path: use absolute paths of executables or folders, or *"
            )
    return given


def checked_outside_url(given: UrlText) -> UrlText:
    """Refuse all but http and https URLs with a host. Empty is allowed: it turns the feature off.

    Raises:
        ValueError: if it is another text. The message does not show the URL, which may be a secret.
    """
    url = given.get_secret_value() if isinstance(given, SecretStr) else given
    try:
        parts = urlsplit(url)
        usable = parts.scheme in {"http", "https"} and bool(parts.hostname) and (parts.port or 1) > 0
    except ValueError:
        usable = False
    if url and not usable:
        raise ValueError("is not a URL with a host: use http://host or https://host")
    return given


def checked_objectives(given: tuple[float, ...]) -> tuple[float, ...]:
    """Refuse all but three durations in seconds, for the lanes high, normal and low.

    Raises:
        ValueError: if the number of values is wrong, or a value is out of range.
    """
    if len(given) != len(Lane) or not all(0 < seconds <= _DAY_SECONDS for seconds in given):
        raise ValueError("needs three numbers of seconds above 0 and up to 86400, as in 5,30,300")
    return given
