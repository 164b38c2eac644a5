"""`noonmark pool`: manage pools, the groups of workers that execute runs."""

from __future__ import annotations

from typing import Annotated

import typer

from noonmark.cli.connections.audit_entries import write_entry
from noonmark.cli.connections.context import database_errors, operator_settings, reading
from noonmark.cli.operations.database import create_topics
from noonmark.cli.terminal.options import AsJson
from noonmark.cli.terminal.output import field, show_json, show_list
from noonmark.cli.terminal.problems import CliError, ExitCode

app = typer.Typer(help="Manage pools (groups of workers) and their signing keys.", no_args_is_help=True)

_Pool = Annotated[str, typer.Argument(metavar="POOL", help="Name of the pool.")]

_COLUMNS = (
    field("name", "POOL"),
    field("workers", numeric=True),
    field("keys", numeric=True),
    field("created_at", "CREATED"),
)


@app.command()
def create(
    name: Annotated[
        str, typer.Argument(metavar="NAME", help="Name of the pool: 1 to 48 of a-z, 0-9, '-' and '_'.")
    ],
    skip_topics: Annotated[bool, typer.Option("--skip-topics", help="Do not create topics.")] = False,
) -> None:
    """Create a pool with its signing key and the topics of its three lanes. Safe to repeat."""
    from noonmark.kafka.topics import POOL_PATTERN  # noqa: PLC0415
    from noonmark.store.cluster.pools import register_pool  # noqa: PLC0415
    from noonmark.store.database.connect import connect  # noqa: PLC0415

    if not POOL_PATTERN.fullmatch(name):
        raise CliError(
            f"{name!r} is not a pool name; use 1 to 48 of a-z, 0-9, '-' and '_', not starting with a sign",
            ExitCode.USAGE,
        )
    settings = operator_settings()
    with database_errors(settings), connect(settings.dsn, application="cli") as connection:
        is_new = register_pool(connection, name)
        if is_new:
            write_entry(connection, "pool.create", f"pool:{name}", after={"name": name})
    print(f"pool {name} {'created' if is_new else 'already exists'}")
    if not skip_topics:
        create_topics(settings, [name])


@app.command("rotate-key")
def rotate_key(name: _Pool, as_json: AsJson = False) -> None:
    """Create a new signing key for a pool. Older keys stay valid until you retire them."""
    from noonmark.store.cluster.pools import rotate_key as rotate  # noqa: PLC0415
    from noonmark.store.database.connect import connect  # noqa: PLC0415

    settings = operator_settings()
    with database_errors(settings), connect(settings.dsn, application="cli") as connection:
        key_id = rotate(connection, name)
        if key_id is not None:
            write_entry(connection, "pool.rotate_key", f"pool:{name}", after={"key_id": key_id})
    if key_id is None:
        raise CliError(f"pool {name!r} does not exist; run `noonmark pool list`")
    if as_json:
        show_json({"pool": name, "key_id": key_id})
        return
    print(f"pool {name} has a new key {key_id}; dispatchers sign with it within seconds")
    print("when the older backlog is processed, retire the older keys: run `noonmark pool keys`")


@app.command("retire-key")
def retire_key(
    name: _Pool, key_id: Annotated[str, typer.Argument(metavar="KEY", help="Id of the key.")]
) -> None:
    """Reject messages that an older key signed. You cannot retire the newest key."""
    from noonmark.store.cluster.pools import retire_key as retire  # noqa: PLC0415
    from noonmark.store.database.connect import connect  # noqa: PLC0415

    settings = operator_settings()
    with database_errors(settings), connect(settings.dsn, application="cli") as connection:
        done = retire(connection, name, key_id)
        if done:
            write_entry(connection, "pool.retire_key", f"pool:{name}", before={"key_id": key_id})
    if not done:
        raise CliError(
            f"{key_id!r} is not an older valid key of pool {name!r}; run `noonmark pool keys {name}`, or"
            f" create a new key first with `noonmark pool rotate-key {name}`"
        )
    print(f"key {key_id} of pool {name} is retired; workers reject it within a minute")


@app.command()
def keys(name: _Pool, as_json: AsJson = False) -> None:
    """List the signing keys of a pool, newest first, without secrets. The newest valid key signs."""
    from noonmark.store.views import paging  # noqa: PLC0415

    with reading(operator_settings()) as connection:
        rows = paging.list_pool_keys(connection, name)
    if not rows:
        raise CliError(f"pool {name!r} does not exist; run `noonmark pool list`")
    if as_json:
        show_json({"items": rows})
        return
    show_list(rows, (field("key_id", "KEY"), field("created_at", "CREATED"), field("retired_at", "RETIRED")))


@app.command("list")
def list_(as_json: AsJson = False) -> None:
    """List pools with the numbers of live workers and valid signing keys."""
    from noonmark.store.views import paging  # noqa: PLC0415

    with reading(operator_settings()) as connection:
        rows = paging.list_pools(connection)
    if as_json:
        show_json({"items": rows})
        return
    show_list(rows, _COLUMNS, empty="no pools found; `noonmark pool create` creates one")
