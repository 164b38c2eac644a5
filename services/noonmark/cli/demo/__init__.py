"""`noonmark demo`: everything at once, from an empty folder to the verdict of every run.

May import: `devstack` and the other rooms of `cli`. Start with `course.py`.
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
        typer.Option("--state-dir", help="Folder of the demo's own data and logs; emptied at the start."),
    ] = Path(".noonmark/demo"),
    examples: Annotated[
        Path, typer.Option("--examples", help="Folder with handlers.py and submissions/.")
    ] = Path("examples"),
) -> None:
    """Start a stack of its own, publish the example submissions, follow them, and account for each.

    Exit code 0 only if all went as expected. Everything it starts has ended when it ends.
    """
    if not (examples / "handlers.py").exists():
        raise CliError(
            f"there is no {examples / 'handlers.py'}: run the demo in the project's folder, or name the"
            " examples with --examples",
            ExitCode.USAGE,
        )
    try:
        from noonmark.cli.demo.course import play  # noqa: PLC0415 - needs an optional extra
    except ImportError as error:
        raise CliError(
            f"the demo needs the package {error.name!r}, which is not installed:"
            " pip install 'noonmark[dev-stack]'"
        ) from error
    # What the services would refuse is refused before anything is started.
    load_settings()
    raise typer.Exit(play(state_dir, examples))
