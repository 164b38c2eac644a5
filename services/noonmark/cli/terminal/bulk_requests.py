"""What orders about many runs share: a question first, progress meanwhile."""

from __future__ import annotations

import sys
from typing import Annotated

import typer

from noonmark.cli.terminal.output import is_terminal
from noonmark.cli.terminal.problems import CliError, ExitCode

Yes = Annotated[bool, typer.Option("--yes", "-y", help="Do not ask.")]
DryRun = Annotated[bool, typer.Option("--dry-run", help="Show what is meant, and change nothing.")]


def may_ask(*, yes: bool, as_json: bool) -> None:
    """Make sure that whoever orders something large has agreed, or can be asked.

    Raises:
        CliError: neither.
    """
    if not yes and (as_json or not (is_terminal() and sys.stdin.isatty())):
        raise CliError(
            "nobody can be asked here: look at what is meant with --dry-run, then give --yes", ExitCode.USAGE
        )


def agree(question: str, *, yes: bool) -> None:
    """Ask whether it shall be done, unless --yes was given; no ends the command."""
    if not yes:
        typer.confirm(question, abort=True)


def progress(done: int, total: int) -> None:
    """Show on a terminal how far an order is; larger ones take several steps."""
    if sys.stderr.isatty() and total:
        print(f"\r{done} of {total}", end="" if done < total else "\n", file=sys.stderr, flush=True)
