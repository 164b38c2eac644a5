"""Addresses of Postgres: libpq reads them, here as in every connection. No message shows a password."""

from __future__ import annotations

import re
from typing import Final

_URL_FORM: Final = "postgresql://user:password@host:port/database"
_ENCODE: Final = "with %40 for @, %2F for / and %25 for % in the password"
_STRING: Final = re.compile(r"\s*\w+\s*=")
"""How a connection string starts, such as `host=db dbname=jobs`."""


def check_database_url(url: str) -> None:
    """Refuse what libpq cannot read. The message shows no part of it: it may contain a password.

    Args:
        url: a URL such as `postgresql://user@a,b:5433/database?sslmode=require`, or a connection string such
            as `host=/run/postgresql dbname=database`.

    Raises:
        ValueError: if libpq cannot read it; the message completes a sentence about the setting.
    """
    from psycopg import ProgrammingError  # noqa: PLC0415 - a driver takes a while to load

    if not url.startswith(("postgresql://", "postgres://")) and _STRING.match(url) is None:
        raise ValueError(f"is not a Postgres URL: use {_URL_FORM}")
    try:
        parts = _read(url)
    except ProgrammingError:
        # Without the cause: libpq quotes the URL, and a traceback would show it.
        raise ValueError(f"cannot be read as a Postgres URL: use {_URL_FORM}, {_ENCODE}") from None
    if "@" in parts.get("host", "") and "://" in url:
        # libpq ends the password at the first @, and would look up the rest of it as a host.
        raise ValueError(f"has an @ in its password or host: use {_URL_FORM}, {_ENCODE}")
    for port in parts.get("port", "").split(","):
        if port and not (port.isdecimal() and 1 <= int(port) <= 65_535):
            raise ValueError(f"has a port that is not a number from 1 to 65535: use {_URL_FORM}")


def database_address(url: str) -> str:
    """Return database, hosts and ports of a URL or connection string, never its user or password."""
    from psycopg import ProgrammingError  # noqa: PLC0415

    try:
        parts = _read(url)
    except ProgrammingError:
        return "of NOONMARK_DATABASE_URL"
    hosts = (parts.get("host") or parts.get("hostaddr") or "").split(",")
    ports = parts.get("port", "").split(",")
    if len(ports) < len(hosts):
        ports = [ports[0]] * len(hosts)  # one port is that of all hosts
    shown = ",".join(_host(host, port) for host, port in zip(hosts, ports, strict=False))
    service = f"service {parts['service']}" if "service" in parts else ""
    return f"{parts.get('dbname') or 'of the user'} at {shown if hosts != [''] else service or shown}"


def _host(host: str, port: str) -> str:
    # A socket has no address, and what precedes an @ belongs to a password.
    name = "(local socket)" if host[:1] in {"", "/", "@"} else host.rpartition("@")[2]
    name = f"[{name}]" if ":" in name else name
    return f"{name}:{port}" if port and name != "(local socket)" else name


def _read(url: str) -> dict[str, str]:
    from psycopg.conninfo import conninfo_to_dict  # noqa: PLC0415 - a driver takes a while to load

    return {name: str(value) for name, value in conninfo_to_dict(url).items()}
