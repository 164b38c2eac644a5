"""Shared parts of requests about many runs: confirmation prompt and progress."""

from __future__ import annotations

import sys
from typing import Annotated

import typer

from noonmark.cli.terminal.output import is_terminal
from noonmark.cli.terminal.problems import CliError, ExitCode

Yes = Annotated[bool, typer.Option("--yes", "-y", help="Skip the confirmation prompt.")]
DryRun = Annotated[bool, typer.Option("--dry-run", help="Show what would change, and change nothing.")]


def may_ask(*, yes: bool, as_json: bool) -> None:
    """Check that the user passed --yes or can be prompted.

    Raises:
        CliError: neither is the case.
    """
    if not yes and (as_json or not (is_terminal() and sys.stdin.isatty())):
        raise CliError(
            "cannot prompt: not a terminal, or --json; check with --dry-run, then pass --yes", ExitCode.USAGE
        )


def agree(question: str, *, yes: bool) -> None:
    """Prompt for confirmation unless --yes was given; a no aborts the command."""
    if not yes and not confirmed(question):
        raise typer.Abort


def confirmed(question: str) -> bool:
    """Prompt for a yes or no; return whether it is a yes.

    Raises:
        typer.Abort: the input has ended.
        typer.Exit: Ctrl-C; with the exit code that Ctrl-C has everywhere else.
    """
    try:
        return typer.confirm(question)
    except typer.Abort as error:
        if isinstance(error.__context__, KeyboardInterrupt):
            print(file=sys.stderr)
            raise typer.Exit(ExitCode.INTERRUPTED) from None
        raise


def progress(done: int, total: int) -> None:
    """Show the progress of a request on a terminal; large requests take several steps."""
    if sys.stderr.isatty() and total:
        print(f"\r{done} of {total}", end="" if done < total else "\n", file=sys.stderr, flush=True)
