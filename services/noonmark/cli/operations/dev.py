"""`noonmark dev`: a complete installation on one machine, for development."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Sequence
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final

import typer

from noonmark.cli.connections.context import load_settings
from noonmark.cli.terminal.options import Folder, duration_option
from noonmark.cli.terminal.problems import CliError, ExitCode

if TYPE_CHECKING:
    from types import ModuleType

app = typer.Typer(
    help="Start, inspect and stop a development stack: Postgres, Kafka and all services.",
    no_args_is_help=True,
)

_STATE_DIR = Path(".noonmark")
_LOAD: Final = """
import sys
from noonmark.handlers import HandlerLoadError, load_handlers
try:
    load_handlers(sys.argv[2:], sys.argv[1] or None)
except HandlerLoadError as error:
    sys.exit(str(error))
"""
"""Program that loads modules of handlers."""


class Stack(StrEnum):
    """Where Postgres and Kafka come from."""

    EMBEDDED = "embedded"
    CONTAINERS = "containers"


StateDir = Annotated[Path, typer.Option("--state-dir", help="Folder for data, logs and stack.json.")]
AsJson = Annotated[bool, typer.Option("--json", help="Print one JSON object on stdout.")]


def _commands() -> ModuleType:
    """Import the stack's commands, which need packages that production does not have."""
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
    detach: Annotated[bool, typer.Option("--detach", "-d", help="Return when the stack is ready.")] = False,
    as_json: AsJson = False,
    stack: Annotated[Stack, typer.Option(help="Where Postgres and Kafka come from.")] = Stack.EMBEDDED,
    handlers: Annotated[
        list[str] | None,
        typer.Option(
            help="Module with Python handlers; repeatable. (default: examples.handlers, if it exists)"
        ),
    ] = None,
    path: Folder = None,
    postgres_port: Annotated[
        int | None, typer.Option(help="Port of Postgres. (default: a free port)")
    ] = None,
    kafka_port: Annotated[int | None, typer.Option(help="Port of Kafka. (default: a free port)")] = None,
    api_port: Annotated[int | None, typer.Option(help="Port of the API. (default: a free port)")] = None,
    timeout: Annotated[
        float | None,
        duration_option("--timeout", help_text="Time that the start may take (default: 15m)"),
    ] = None,
) -> None:
    """Start the stack and run it until Ctrl-C or `noonmark dev down`.

    It waits for each part as long as the part makes progress: it uses CPU time or, if it is a server, writes
    to its log. It gives up after a minute without progress.
    If NOONMARK_DATABASE_URL or NOONMARK_KAFKA_BOOTSTRAP is set, that server is used and none is started.
    """
    commands = _commands()
    # Settings that the services would reject are rejected before anything is started.
    load_settings()
    from noonmark.devstack.options import StackOptions, default_services  # noqa: PLC0415 - optional extra
    from noonmark.devstack.processes.patience import LIMIT_SECONDS  # noqa: PLC0415 - optional extra

    folder = str(path.resolve()) if path else None
    if handlers:
        check_handlers(handlers, folder)
    options = StackOptions(
        state_dir=state_dir,
        stack=stack.value,
        detach=detach,
        as_json=as_json,
        postgres_port=postgres_port,
        kafka_port=kafka_port,
        api_port=api_port,
        timeout_seconds=timeout or LIMIT_SECONDS,
        services=default_services(handlers=handlers or (), path=folder),
    )
    raise typer.Exit(commands.up(options))


def check_handlers(modules: Sequence[str], folder: str | None) -> None:
    """Load the modules of handlers as the worker will, in another process, before any server starts.

    Args:
        modules: names of the modules.
        folder: where they are, if they are not installed.

    Raises:
        CliError: a module cannot be used.
    """
    command = [sys.executable, "-P", "-c", _LOAD, folder or "", *modules]
    done = subprocess.run(command, stderr=subprocess.PIPE, text=True, check=False)  # noqa: S603 - our own program
    if done.returncode:
        raise CliError(
            done.stderr.strip().rpartition("\n")[2] or "the handlers cannot be loaded", ExitCode.USAGE
        )


@app.command()
def down(state_dir: StateDir = _STATE_DIR) -> None:
    """Stop the stack: every process that it started."""
    raise typer.Exit(_commands().down(state_dir))


@app.command()
def status(state_dir: StateDir = _STATE_DIR, as_json: AsJson = False) -> None:
    """Show the status of the stack. Exits 0 if everything runs."""
    raise typer.Exit(_commands().status(state_dir, as_json=as_json))
