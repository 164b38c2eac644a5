"""`noonmark pool`: which groups of workers there are."""

from __future__ import annotations

from typing import Annotated

import typer

from noonmark.cli.context import database_errors, operator_settings, reading
from noonmark.cli.database import create_topics
from noonmark.cli.options import AsJson
from noonmark.cli.output import field, show_json, show_list
from noonmark.cli.problems import CliError, ExitCode

app = typer.Typer(help="Register pools: groups of workers that runs can be meant for.", no_args_is_help=True)

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
    from noonmark.store.connect import connect  # noqa: PLC0415
    from noonmark.store.pools import register_pool  # noqa: PLC0415

    if not POOL_PATTERN.fullmatch(name):
        raise CliError(
            f"{name!r} is no pool name: use 1 to 48 of a-z, 0-9, '-' and '_', the first a letter or digit",
            ExitCode.USAGE,
        )
    settings = operator_settings()
    with database_errors(settings), connect(settings.dsn, application="cli") as connection:
        is_new = register_pool(connection, name)
    print(f"pool {name} {'is registered' if is_new else 'was registered before'}")
    if not skip_topics:
        create_topics(settings, [name])


@app.command("list")
def list_(as_json: AsJson = False) -> None:
    """List pools with their live workers and valid signing keys."""
    from noonmark.store import views  # noqa: PLC0415

    with reading(operator_settings()) as connection:
        rows = views.list_pools(connection)
    if as_json:
        show_json({"items": rows})
        return
    show_list(rows, _COLUMNS)
