"""The session's servers, as the measuring parts of the benchmark want them."""

from __future__ import annotations

import contextlib
import uuid
from collections.abc import Iterator
from pathlib import Path

import psycopg
from tests.support.stack import Postgres


class SessionServers:
    """Databases of the session's Postgres; the broker is the session's, too."""

    def __init__(self, postgres: Postgres, bootstrap: str, folder: Path) -> None:
        self.bootstrap = bootstrap
        self.folder = folder
        self._postgres = postgres

    def pids(self) -> dict[str, int]:
        """The process id of the postmaster."""
        with psycopg.connect(self._postgres.url) as connection:
            row = connection.execute("select pg_read_file('postmaster.pid')").fetchone()
        assert row is not None
        return {"postgres": int(row[0].split()[0])}

    @contextlib.contextmanager
    def other_database(self, name: str) -> Iterator[str]:
        """A database that is dropped afterwards."""
        unique = f"{name}_{uuid.uuid4().hex[:12]}"
        self._postgres.run(f"create database {unique}")
        try:
            yield self._postgres.url_of(unique)
        finally:
            self._postgres.drop(unique)
