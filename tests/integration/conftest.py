"""One migrated database that tests take turns in, emptied before each; `database_url` is one of a test's own."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from pathlib import Path
from uuid import uuid4

import pytest
from tests.support import kept_sessions
from tests.support.cli import call
from tests.support.emptying import empty
from tests.support.stack import Postgres


@pytest.fixture(scope="session")
def store_database(postgres_server: Postgres, template_database: str) -> Iterator[str]:
    """URL of the database that tests take turns in."""
    name = f"store_{uuid4().hex[:12]}"
    postgres_server.copy(template_database, name)
    url = postgres_server.url_of(name)
    kept_sessions.keep(url)
    yield url
    kept_sessions.close_kept(url)
    postgres_server.drop(name)


@pytest.fixture
def emptied_database(store_database: str) -> str:
    """The same, with nothing in it."""
    connection = kept_sessions.take(store_database)
    try:
        connection.execute("set statement_timeout = 0; set lock_timeout = 0")
        empty(connection)
    finally:
        kept_sessions.give_back(store_database, connection)
    return store_database


@pytest.fixture
def command_line(emptied_database: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """An empty folder, and an environment that names an empty database and nothing else of ours."""
    monkeypatch.chdir(tmp_path)
    for name in [name for name in os.environ if name.startswith("NOONMARK_")]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("NOONMARK_DATABASE_URL", emptied_database)


@pytest.fixture
def noonmark(command_line: None) -> Callable[..., str]:
    """Runs the command in an empty folder against an empty database; returns what it says."""

    def run(*arguments: str, code: int = 0) -> str:
        called = call(*arguments, code=code)
        return called.stdout if code == 0 else called.stderr

    return run
