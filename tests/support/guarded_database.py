"""A Postgres that accepts TLS connections alone, with a certificate that `verify-full` accepts for `localhost`."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit, urlunsplit

import pytest
from tests.support.authority import HOST, Authority, make_authority
from tests.support.stack import NOT_DURABLE, Postgres

from noonmark.devstack.postgres.accounts import hand_over, server_account
from noonmark.devstack.postgres.installation import BIN_VARIABLE
from noonmark.devstack.postgres.server import PostgresServer, start_postgres

_ONLY_TLS = "hostssl all all 127.0.0.1/32 scram-sha-256\n"


@dataclass(frozen=True, slots=True)
class GuardedDatabase:
    """The server, and how users connect.

    Attributes:
        server: its administrator's URL does not verify the server.
        authority: who signed the server's certificate.
    """

    server: PostgresServer
    authority: Authority

    @property
    def admin(self) -> Postgres:
        """What the administrator does."""
        return Postgres(self.server.url)

    def url(self, database: str, user: str, password: str) -> str:
        """The URL of a database for a user, without the settings of TLS."""
        return f"postgresql://{user}:{password}@{HOST}:{self.server.port}/{database}"

    def verified(self, url: str, mode: str = "verify-full") -> str:
        """The same with the settings of TLS."""
        parts = urlsplit(url)
        return urlunsplit(parts._replace(query=f"sslmode={mode}&sslrootcert={self.authority.ca}"))


@contextmanager
def guarded_database(
    folder: Path, authority: Authority | None = None, settings: Mapping[str, str] | None = None
) -> Iterator[GuardedDatabase]:
    """Start one in a folder; it ends with the block."""
    authority = authority or make_authority(folder / "authority")
    data = folder / "postgres"
    data.mkdir(parents=True, exist_ok=True)
    account = server_account()
    certificate, key, hba = (data / name for name in ("server.pem", "server.key", "pg_hba.conf"))
    certificate.write_bytes(authority.certificate.read_bytes())
    key.touch(mode=0o600)
    key.write_bytes(authority.key.read_bytes())
    hba.write_text(_ONLY_TLS, encoding="ascii")
    for file in (certificate, key, hba):
        hand_over(file, account)
    tls = {"ssl": "on", "ssl_cert_file": str(certificate), "ssl_key_file": str(key), "hba_file": str(hba)}
    with _binaries_with_tls():
        server = start_postgres(data, settings={**NOT_DURABLE, **tls, **(settings or {})})
    try:
        yield GuardedDatabase(server, authority)
    finally:
        server.stop()


@contextmanager
def _binaries_with_tls() -> Iterator[None]:
    """Have a Postgres started that was built with TLS, which that of the wheel is not."""
    chosen = os.environ.get(BIN_VARIABLE)
    candidates = [Path(chosen)] if chosen else sorted(Path("/usr/lib/postgresql").glob("*/bin"), reverse=True)
    found = next((folder for folder in candidates if _has_tls(folder / "postgres")), None)
    if found is None:
        reason = f"no Postgres with TLS: install Debian's postgresql, or set {BIN_VARIABLE}"
        (pytest.fail if os.environ.get("CI") else pytest.skip)(reason)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv(BIN_VARIABLE, str(found))
        yield


def _has_tls(program: Path) -> bool:
    if not program.exists():
        return False
    linked = subprocess.run(["ldd", str(program)], capture_output=True, text=True, check=False).stdout
    return "libssl" in linked
