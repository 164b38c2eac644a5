"""Commands and services connect with every form of address, to real servers: libpq alone reads it."""

from __future__ import annotations

import json
import string
from collections.abc import Callable, Iterator
from pathlib import Path

import psycopg
import pytest
from psycopg import sql
from psycopg.conninfo import conninfo_to_dict, make_conninfo
from tests.support.cli import call
from tests.support.stack import Postgres
from tests.support.unix_socket import unix_socket

from noonmark.api.backend.database import Database
from noonmark.devstack.processes.ports import free_port
from noonmark.store.database.connect import connect
from noonmark.store.views.paging import reader

ROLE = "noonmark odd@owner"
PASSWORD = "p" + string.punctuation + " ä"
"""Every character that a URL or a connection string gives a meaning."""


def encoded(text: str) -> str:
    return "".join(f"%{byte:02X}" for byte in text.encode())


@pytest.fixture(scope="module")
def odd_owner(postgres_server: Postgres) -> Iterator[str]:
    """A database whose owner and password have every special character."""
    name = "odd database%"
    with psycopg.connect(postgres_server.url, autocommit=True) as connection:
        role = sql.Identifier(ROLE)
        connection.execute(
            sql.SQL("create role {} login superuser password {}").format(role, sql.Literal(PASSWORD))
        )
        connection.execute(sql.SQL("create database {} owner {}").format(sql.Identifier(name), role))
        yield name
        connection.execute(sql.SQL("drop database {} with (force)").format(sql.Identifier(name)))
        connection.execute(sql.SQL("drop role {}").format(role))


@pytest.fixture(scope="module")
def socket_folder(postgres_server: Postgres) -> Iterator[str]:
    with unix_socket(int(str(conninfo_to_dict(postgres_server.url)["port"]))) as folder:
        yield folder


Form = Callable[[str, str, str, Path], str]
"""Writes the address of a host and port, with the folder of a socket and one for files."""

HEAD = f"postgresql://{encoded(ROLE)}:{encoded(PASSWORD)}@"
DATABASE = encoded("odd database%")
FORMS: dict[str, Form] = {
    "one_host": lambda host, port, _, __: f"{HEAD}{host}:{port}/{DATABASE}?sslmode=prefer",
    "dead_first_host": lambda host, port, _, __: f"{HEAD}{host}:{free_port()},{host}:{port}/{DATABASE}",
    "unknown_first_host": lambda host, port, _, __: (
        f"{HEAD}no-such-host.invalid:{port},{host}:{port}/{DATABASE}?target_session_attrs=read-write"
    ),
    "hosts_as_parameters": lambda host, port, _, __: (
        f"postgresql:///{DATABASE}?host={host},{host}&port={free_port()},{port}"
        f"&user={encoded(ROLE)}&password={encoded(PASSWORD)}"
    ),
    "socket": lambda _, port, folder, __: f"{HEAD}/{DATABASE}?host={folder}&port={port}",
    "socket_as_host": lambda _, port, folder, __: f"{HEAD}{encoded(folder)}:{port}/{DATABASE}",
    "string": lambda host, port, _, __: make_conninfo(
        host=host, port=port, dbname="odd database%", user=ROLE, password=PASSWORD
    ),
    "service": lambda host, port, _, files: service_file(files, host, port),
}


def service_file(folder: Path, host: str, port: str) -> str:
    passwords = folder / "pgpass"
    secret = PASSWORD.replace("\\", "\\\\").replace(":", "\\:")
    passwords.write_text(f"{host}:{port}:*:{ROLE}:{secret}\n", encoding="utf-8")
    passwords.chmod(0o600)
    (folder / "services.conf").write_text(
        f"[noonmark]\nhost={host}\nport={port}\ndbname=odd database%\nuser={ROLE}\n", encoding="utf-8"
    )
    return f"postgresql:///?service=noonmark&passfile={encoded(str(passwords))}"


@pytest.mark.parametrize("form", FORMS)
def test_commands_and_services_reach_the_database_with_the_same_address(
    odd_owner: str,
    form: str,
    socket_folder: str,
    postgres_server: Postgres,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    server = conninfo_to_dict(postgres_server.url)
    url = FORMS[form](str(server["host"]), str(server["port"]), socket_folder, tmp_path)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PGSERVICEFILE", str(tmp_path / "services.conf"))
    monkeypatch.setenv("NOONMARK_DATABASE_URL", url)

    assert "the database schema is at" in call("db", "migrate", "--skip-topics").stdout
    assert json.loads(call("db", "check", "--json").stdout)["problems"] == []
    assert "default" in call("pool", "list").stdout
    with connect(url, application="worker") as connection:
        assert connection.info.dbname == odd_owner
        assert connection.info.user == ROLE
    with reader(url) as reading:
        assert reading.exec_driver_sql("select current_database()").scalar() == odd_owner
    database = Database(url, size=1)
    with database.reading(None) as session:
        assert session.raw.execute("select current_database()").fetchone() == (odd_owner,)
    database.close()
