"""`noonmark outbox`: manage the outbox table in an application's database."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Annotated, Any, Final, NamedTuple

import typer

from noonmark.cli.connections.audit_entries import write_entry
from noonmark.cli.connections.context import changing, operator_settings
from noonmark.cli.terminal.options import AsJson, as_uuid
from noonmark.cli.terminal.output import field, show_json, show_list
from noonmark.cli.terminal.problems import CliError, ExitCode, first_line

if TYPE_CHECKING:
    import psycopg

    from noonmark.outbox.bindings import AppOutbox

app = typer.Typer(help="Manage the outbox table of an application's database.", no_args_is_help=True)

Name = Annotated[
    str | None, typer.Argument(metavar="[NAME]", help="Name of the outbox in NOONMARK_APP_OUTBOXES.")
]
Url = Annotated[
    str | None,
    typer.Option(
        "--url",
        help="URL of the application's database: postgresql://user@host/database. Set the password in"
        " PGPASSWORD or a password file; other users can read command lines.",
    ),
]

_MOST: Final = 100_000
_PARKED: Final = """
    select id, created_at, parked_at, idempotency_key, error from noonmark_outbox
    where parked_at is not null order by parked_at desc limit %s
"""
_COLUMNS = (
    field("id"),
    field("created_at", "CREATED"),
    field("parked_at", "PARKED"),
    field("idempotency_key", "KEY", wide=True),
    field("error", elastic=True, key=True),
)


@app.command()
def install(
    name: Name = None,
    url: Url = None,
    sql: Annotated[
        bool, typer.Option("--sql", help="Print the SQL statements, for the application's migrations.")
    ] = False,
) -> None:
    """Create the table `noonmark_outbox` in an application's database. Safe to repeat."""
    from noonmark.outbox import create_table_sql  # noqa: PLC0415
    from noonmark.settings.postgres_url import database_address  # noqa: PLC0415

    if sql:
        print(create_table_sql(), end="")
        return
    place = _place(name, url)
    with _recorded("install", place) as after, _connection(place.url) as connection:
        connection.execute(create_table_sql())
        after["database"] = database_address(place.url)
    print(f"the outbox is ready in the database {database_address(place.url)}")


@app.command()
def status(
    name: Name = None,
    url: Url = None,
    limit: Annotated[int, typer.Option(min=1, max=1000, help="Maximum number of parked rows.")] = 20,
    as_json: AsJson = False,
) -> None:
    """Show how many rows wait for the relay, and which rows are parked and why."""
    from noonmark.outbox.table import app_statement  # noqa: PLC0415

    with _connection(_place(name, url).url) as connection:
        measured = connection.execute(app_statement("measure"), {"cap": _MOST}).fetchone()
        assert measured is not None
        waiting, parked, oldest = measured
        keys = ("id", "created_at", "parked_at", "idempotency_key", "error")
        rows: list[dict[str, Any]] = [
            dict(zip(keys, row, strict=True)) for row in connection.execute(_PARKED, [limit])
        ]
    if as_json:
        show_json({"waiting": waiting, "oldest_seconds": oldest, "parked": parked, "items": rows})
        return
    since = f", the oldest for {oldest:.0f} s" if oldest is not None else ""
    print(f"{waiting} waiting{since}; {parked} parked")
    if rows:
        show_list(rows, _COLUMNS)


@app.command()
def retry(
    name: Name = None,
    url: Url = None,
    row: Annotated[str | None, typer.Option("--row", help="Only the row with this id.")] = None,
) -> None:
    """Relay parked rows again, after you fixed the cause."""
    from noonmark.outbox.table import app_statement  # noqa: PLC0415

    wanted = as_uuid(row) if row else None
    if row and wanted is None:
        raise CliError(f"{row!r} is not a row id; run `noonmark outbox status`", ExitCode.USAGE)
    place = _place(name, url)
    with _recorded("retry", place) as after, _connection(place.url) as connection:
        count = connection.execute(app_statement("retry"), {"id": wanted}).rowcount
        if count:
            after |= {"row": row, "rows": count}
    print(f"{count} {'row' if count == 1 else 'rows'} requeued")


class _Place(NamedTuple):
    """An application's database. `bound` is None if only its URL was given."""

    url: str
    bound: AppOutbox | None


@contextmanager
def _recorded(verb: str, place: _Place) -> Iterator[dict[str, Any]]:
    """Record a change of a configured outbox in the audit log; yield the details of the entry.

    Two databases are involved. If noonmark's database is down, nothing is changed; the entry commits right
    after the change. With `--url` only the application's table is changed, and nothing is recorded.
    """
    after: dict[str, Any] = {}
    if place.bound is None:
        yield after
        return
    with changing(operator_settings()) as connection, connection.transaction():
        connection.execute("select from audit_log limit 1")
        yield after
        if after:
            name, namespace = place.bound.name, place.bound.namespace
            write_entry(connection, f"outbox.{verb}", f"outbox:{name}", namespace=namespace, after=after)


def _place(name: str | None, url: str | None) -> _Place:
    """Return the application's database that the options name.

    Raises:
        CliError: no outbox is named, or the name is not configured.
    """
    from noonmark.outbox.bindings import parse_bindings  # noqa: PLC0415

    if url is not None:
        if name is not None:
            raise CliError("give a NAME or --url, not both", ExitCode.USAGE)
        return _Place(url, None)
    known = {one.name: one for one in parse_bindings(operator_settings().app_outboxes.get_secret_value())}
    if name is None and len(known) == 1:
        name = next(iter(known))
    if name not in known:
        reason = f"outbox {name!r} does not exist" if name else "give the name of an outbox"
        names = ", ".join(known) or "none (NOONMARK_APP_OUTBOXES is empty; give --url)"
        raise CliError(f"{reason}; configured: {names}", ExitCode.USAGE)
    return _Place(known[name].url, known[name])


@contextmanager
def _connection(url: str) -> Iterator[psycopg.Connection]:
    """Open a connection to an application's database.

    Raises:
        CliError: cannot connect to it, or it has no outbox.
    """
    import psycopg  # noqa: PLC0415

    from noonmark.settings.postgres_url import database_address  # noqa: PLC0415
    from noonmark.store.database.connect import connect  # noqa: PLC0415

    try:
        with connect(url, application="cli", autocommit=True) as connection:
            yield connection
    except psycopg.errors.UndefinedTable as error:
        raise CliError("the database has no table noonmark_outbox; run `noonmark outbox install`") from error
    except psycopg.errors.InsufficientPrivilege as error:
        raise CliError(f"the database user lacks a privilege: {first_line(error)}") from error
    except psycopg.OperationalError as error:
        message = f"cannot connect to the database {database_address(url)}: {first_line(error)}"
        raise CliError(message, ExitCode.UNREACHABLE) from error
    except psycopg.ProgrammingError as error:
        # libpq quotes what it cannot parse, which may contain a password.
        if error.sqlstate is None:
            raise CliError(
                "--url is not a Postgres URL; use postgresql://user@host/database", ExitCode.USAGE
            ) from None
        raise
