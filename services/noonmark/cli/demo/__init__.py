"""`noonmark demo`: start a stack, publish example jobs, and check the outcome of every run.

May import: `devstack` and the other sub-packages of `cli`. Start with `course.py`.
"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from noonmark.cli.connections.context import load_settings
from noonmark.cli.terminal.problems import CliError, ExitCode


def demo(
    state_dir: Annotated[
        Path,
        typer.Option("--state-dir", help="Folder for data and logs; emptied at the start."),
    ] = Path(".noonmark/demo"),
    examples: Annotated[
        Path, typer.Option("--examples", help="Folder with handlers.py and submissions/.")
    ] = Path("examples"),
) -> None:
    """Start a separate stack, publish the example submissions, follow them, and check each outcome.

    Exits 0 if everything is as expected. Stops every process that it started.
    """
    if not (examples / "handlers.py").exists():
        raise CliError(
            f"{examples / 'handlers.py'} does not exist; run the demo in the project's folder, or set the"
            " folder with --examples",
            ExitCode.USAGE,
        )
    try:
        from noonmark.cli.demo.course import play  # noqa: PLC0415 - needs an optional extra
    except ImportError as error:
        raise CliError(
            f"the demo needs the package {error.name!r}, which is not installed: run"
            " `pip install 'noonmark[dev-stack]'`"
        ) from error
    # Settings that the services would reject are rejected before anything is started.
    load_settings()
    raise typer.Exit(play(state_dir, examples))
