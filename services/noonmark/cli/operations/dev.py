"""`noonmark dev`: the whole of noonmark on one machine, for development."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from noonmark.cli.connections.context import load_settings
from noonmark.cli.terminal.options import Folder
from noonmark.cli.terminal.problems import CliError

if TYPE_CHECKING:
    from types import ModuleType

app = typer.Typer(
    help="Start, show and end a development stack: Postgres, Kafka and every service.",
    no_args_is_help=True,
)

_STATE_DIR = Path(".noonmark")


class Stack(StrEnum):
    """Where Postgres and Kafka come from."""

    EMBEDDED = "embedded"
    CONTAINERS = "containers"


StateDir = Annotated[
    Path, typer.Option("--state-dir", help="Folder of the stack's data, logs and stack.json.")
]
AsJson = Annotated[bool, typer.Option("--json", help="One JSON object on stdout, nothing else.")]


def _commands() -> ModuleType:
    """The stack's commands; imported late, because they need packages that production does not."""
    try:
        from noonmark.devstack import commands  # noqa: PLC0415 - optional extra
    except ImportError as error:
        raise CliError(
            f"`noonmark dev` needs the package `{error.name}`, which is not installed:"
            " run `pip install 'noonmark[dev-stack]'`"
        ) from error
    return commands


@app.command()
def up(
    *,
    state_dir: StateDir = _STATE_DIR,
    detach: Annotated[bool, typer.Option("--detach", "-d", help="Return when everything is up.")] = False,
    as_json: AsJson = False,
    stack: Annotated[Stack, typer.Option(help="Where Postgres and Kafka come from.")] = Stack.EMBEDDED,
    handlers: Annotated[
        list[str] | None,
        typer.Option(
            help="Module with handlers for the worker, repeatable. (default: examples.handlers if there)"
        ),
    ] = None,
    path: Folder = None,
    postgres_port: Annotated[
        int | None, typer.Option(help="Fixed port for Postgres. (default: a free one)")
    ] = None,
    kafka_port: Annotated[
        int | None, typer.Option(help="Fixed port for Kafka. (default: a free one)")
    ] = None,
    api_port: Annotated[
        int | None, typer.Option(help="Fixed port for the API. (default: a free one)")
    ] = None,
) -> None:
    """Start everything, and run it until Ctrl-C (or `noonmark dev down`).

    What NOONMARK_DATABASE_URL and NOONMARK_KAFKA_BOOTSTRAP name is used instead of started.
    """
    commands = _commands()
    # What the services would refuse is refused before anything is started.
    load_settings()
    from noonmark.devstack.options import StackOptions, default_services  # noqa: PLC0415 - optional extra

    options = StackOptions(
        state_dir=state_dir,
        stack=stack.value,
        detach=detach,
        as_json=as_json,
        postgres_port=postgres_port,
        kafka_port=kafka_port,
        api_port=api_port,
        services=default_services(handlers=handlers or (), path=str(path.resolve()) if path else None),
    )
    raise typer.Exit(commands.up(options))


@app.command()
def down(state_dir: StateDir = _STATE_DIR) -> None:
    """End the stack: all that it started, and nothing else."""
    raise typer.Exit(_commands().down(state_dir))


@app.command()
def status(state_dir: StateDir = _STATE_DIR, as_json: AsJson = False) -> None:
    """Show what runs; exit code 0 when everything does."""
    raise typer.Exit(_commands().status(state_dir, as_json=as_json))
