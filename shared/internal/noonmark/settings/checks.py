"""What addresses and places in settings must look like, said in a sentence that shows no password."""

from __future__ import annotations

import ipaddress
import re
from typing import Final, TypeVar
from urllib.parse import urlsplit

from pydantic import SecretStr

from noonmark.core.access.issuer_urls import issuer_url_problem
from noonmark.core.vocabulary import Lane
from noonmark.outbox.bindings import parse_bindings

_URL_FORM: Final = "postgresql://user:password@host:port/database"
_DAY_SECONDS: Final = 86_400
UrlText = TypeVar("UrlText", str, SecretStr)

_BROKER: Final = re.compile(r"(?:[A-Za-z0-9._-]+|\[[0-9A-Fa-f:.]+\]):(\d{1,5})")


def check_database_url(url: str) -> None:
    """Refuse what libpq would not read. The message shows nothing of the URL: it may hold a password.

    Raises:
        ValueError: a sentence about what is wrong.
    """
    from psycopg import ProgrammingError  # noqa: PLC0415 - a driver takes a while to load
    from psycopg.conninfo import conninfo_to_dict  # noqa: PLC0415

    if not url.startswith(("postgresql://", "postgres://")):
        raise ValueError(f"is no Postgres URL: use {_URL_FORM}")
    try:
        parts = conninfo_to_dict(url)
    except ProgrammingError:
        # Without its cause: libpq quotes the URL, and a traceback would show it.
        raise ValueError(
            f"cannot be read as a Postgres URL: use {_URL_FORM}, with %40 for @, %2F for / and %25 for % in"
            " the password"
        ) from None
    for port in str(parts.get("port") or "").split(","):
        if port and not (port.isdecimal() and 1 <= int(port) <= 65_535):
            raise ValueError(f"has a port that is no number from 1 to 65535: use {_URL_FORM}")


def check_app_outboxes(given: str) -> None:
    """Refuse bindings of outboxes that cannot be read, or whose database libpq could not name.

    Raises:
        ValueError: a sentence about what is wrong.
    """
    for bound in parse_bindings(given):
        try:
            check_database_url(bound.url)
        except ValueError as error:
            raise ValueError(f"the URL of binding {bound.name} {error}") from None


def checked_brokers(given: str) -> str:
    """Return a list of brokers without blanks.

    Raises:
        ValueError: one of them is none.
    """
    brokers = [part.strip() for part in given.split(",")]
    for broker in brokers:
        found = _BROKER.fullmatch(broker)
        if found is None or not 1 <= int(found[1]) <= 65_535:
            told = f"{broker!r} is no broker" if broker else "a broker is missing"
            raise ValueError(f"{told}: use host:port, several with commas")
    return ",".join(brokers)


def checked_api_url(given: str) -> str:
    """Return the address of an API without its last slash.

    Raises:
        ValueError: it is none, or holds a user or password: credentials go into a key. It is not shown.
    """
    try:
        parts = urlsplit(given)
        fits = parts.scheme in {"http", "https"} and bool(parts.hostname) and (parts.port or 1) > 0
    except ValueError:
        fits = False
    if not fits or parts.username is not None or parts.query or parts.fragment:
        raise ValueError("is no address of an API: use https://host, with a port or path where it needs one")
    return given.rstrip("/")


def check_issuer(issuer: str, audience: str) -> None:
    """Refuse an identity provider that could not be believed.

    Raises:
        ValueError: a sentence that names the setting.
    """
    if not issuer:
        if audience:
            raise ValueError(
                "NOONMARK_OIDC_AUDIENCE is set without NOONMARK_OIDC_ISSUER: name the provider too"
            )
        return
    if (problem := issuer_url_problem(issuer)) is not None:
        raise ValueError(
            f"NOONMARK_OIDC_ISSUER {problem}: use the issuer's URL as it stands in its tokens, such as"
            " https://login.example.com/realms/main (http on this host's own loopback address only)"
        )
    if not audience:
        raise ValueError(
            "NOONMARK_OIDC_AUDIENCE is missing: without it tokens for any other application of the provider"
            " would be accepted here"
        )


def checked_networks(given: tuple[str, ...]) -> tuple[str, ...]:
    """Return a list of networks.

    Raises:
        ValueError: one of them is none.
    """
    for network in given:
        try:
            ipaddress.ip_network(network)
        except ValueError as error:
            raise ValueError(f"{error}: use networks such as 10.20.0.0/16, with commas") from error
    return given


def checked_scripts(given: tuple[str, ...]) -> tuple[str, ...]:
    """Return a list of places that scripts may be in.

    Raises:
        ValueError: one of them depends on where a worker was started.
    """
    for place in given:
        if place != "*" and not place.startswith("/"):
            raise ValueError(f"{place!r} is no absolute path: use paths of executables or folders, or *")
    return given


def checked_outside_url(given: UrlText) -> UrlText:
    """Refuse what is no http or https URL with a host. Empty is allowed: it turns the thing off.

    Raises:
        ValueError: with what is wrong; the URL itself may be a secret and is not repeated.
    """
    url = given.get_secret_value() if isinstance(given, SecretStr) else given
    try:
        parts = urlsplit(url)
        usable = parts.scheme in {"http", "https"} and bool(parts.hostname) and (parts.port or 1) > 0
    except ValueError:
        usable = False
    if url and not usable:
        raise ValueError("is no URL that starts with http:// or https:// and names a host")
    return given


def checked_objectives(given: tuple[float, ...]) -> tuple[float, ...]:
    """Refuse what is not three times in seconds, of the lanes high, normal and low.

    Raises:
        ValueError: with what is wrong.
    """
    if len(given) != len(Lane) or not all(0 < seconds <= _DAY_SECONDS for seconds in given):
        raise ValueError("needs three numbers of seconds above 0 and up to 86400, as in 5,30,300")
    return given
