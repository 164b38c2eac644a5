"""`noonmark pool`: which groups of workers there are."""

from __future__ import annotations

from typing import Annotated

import typer

from noonmark.cli.connections.audit_entries import write_entry
from noonmark.cli.connections.context import database_errors, operator_settings, reading
from noonmark.cli.operations.database import create_topics
from noonmark.cli.terminal.options import AsJson
from noonmark.cli.terminal.output import field, show_json, show_list
from noonmark.cli.terminal.problems import CliError, ExitCode

app = typer.Typer(help="Register pools: groups of workers that runs can be meant for.", no_args_is_help=True)

_Pool = Annotated[str, typer.Argument(metavar="POOL", help="Name of the pool.")]

_COLUMNS = (
    field("name", "POOL"),
    field("workers", numeric=True),
    field("keys", numeric=True),
    field("created_at", "CREATED"),
)


@app.command()
def create(
    name: Annotated[str, typer.Argument(help="1 to 48 of a-z, 0-9, '-' and '_'.")],
    skip_topics: Annotated[bool, typer.Option("--skip-topics", help="Leave Kafka alone.")] = False,
) -> None:
    """Register a pool: its signing key, and the topics of its three lanes. Safe to repeat."""
    from noonmark.kafka.topics import POOL_PATTERN  # noqa: PLC0415
    from noonmark.store.cluster.pools import register_pool  # noqa: PLC0415
    from noonmark.store.database.connect import connect  # noqa: PLC0415

    if not POOL_PATTERN.fullmatch(name):
        raise CliError(
            f"{name!r} is no pool name: use 1 to 48 of a-z, 0-9, '-' and '_', the first a letter or digit",
            ExitCode.USAGE,
        )
    settings = operator_settings()
    with database_errors(settings), connect(settings.dsn, application="cli") as connection:
        is_new = register_pool(connection, name)
        if is_new:
            write_entry(connection, "pool.create", f"pool:{name}", after={"name": name})
    print(f"pool {name} {'is registered' if is_new else 'was registered before'}")
    if not skip_topics:
        create_topics(settings, [name])


@app.command("rotate-key")
def rotate_key(name: _Pool, as_json: AsJson = False) -> None:
    """Give a pool a new signing key. The older ones are believed until they are retired."""
    from noonmark.store.cluster.pools import rotate_key as rotate  # noqa: PLC0415
    from noonmark.store.database.connect import connect  # noqa: PLC0415

    settings = operator_settings()
    with database_errors(settings), connect(settings.dsn, application="cli") as connection:
        key_id = rotate(connection, name)
        if key_id is not None:
            write_entry(connection, "pool.rotate_key", f"pool:{name}", after={"key_id": key_id})
    if key_id is None:
        raise CliError(f"there is no pool {name!r}: `noonmark pool list` shows those there are")
    if as_json:
        show_json({"pool": name, "key_id": key_id})
        return
    print(f"pool {name} has the new key {key_id}; dispatchers sign with it within seconds")
    print("when the backlog of before is done, retire the older ones: `noonmark pool keys` shows them")


@app.command("retire-key")
def retire_key(
    name: _Pool, key_id: Annotated[str, typer.Argument(metavar="KEY", help="Id of the key.")]
) -> None:
    """Believe no message any more that an older key has signed. The newest key cannot be retired."""
    from noonmark.store.cluster.pools import retire_key as retire  # noqa: PLC0415
    from noonmark.store.database.connect import connect  # noqa: PLC0415

    settings = operator_settings()
    with database_errors(settings), connect(settings.dsn, application="cli") as connection:
        done = retire(connection, name, key_id)
        if done:
            write_entry(connection, "pool.retire_key", f"pool:{name}", before={"key_id": key_id})
    if not done:
        raise CliError(
            f"{key_id!r} is no older valid key of pool {name!r}: `noonmark pool keys {name}` shows them, and"
            f" `noonmark pool rotate-key {name}` makes a new one first"
        )
    print(f"key {key_id} of pool {name} is retired; workers learn of it within a minute")


@app.command()
def keys(name: _Pool, as_json: AsJson = False) -> None:
    """List the signing keys of a pool, the newest first; the first valid one signs. Secrets are not shown."""
    from noonmark.store.views import paging  # noqa: PLC0415

    with reading(operator_settings()) as connection:
        rows = paging.list_pool_keys(connection, name)
    if not rows:
        raise CliError(f"there is no pool {name!r}: `noonmark pool list` shows those there are")
    if as_json:
        show_json({"items": rows})
        return
    show_list(rows, (field("key_id", "KEY"), field("created_at", "CREATED"), field("retired_at", "RETIRED")))


@app.command("list")
def list_(as_json: AsJson = False) -> None:
    """List pools with their live workers and valid signing keys."""
    from noonmark.store.views import paging  # noqa: PLC0415

    with reading(operator_settings()) as connection:
        rows = paging.list_pools(connection)
    if as_json:
        show_json({"items": rows})
        return
    show_list(rows, _COLUMNS)
