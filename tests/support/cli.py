"""The command line, called within the process of the test, which takes a tenth of what a process of its own does.

Typer builds the tree of all commands anew for every call of an app, which takes ten times as long as most
commands do; here it is built once.
"""

from __future__ import annotations

import sys
from dataclasses import dataclass
from functools import cache

import typer.main
import typer.testing
from typer.testing import CliRunner

from noonmark.cli.main import main

command_of = cache(typer.main.get_command)
"""The tree of an app's commands."""
typer.main.get_command = command_of
typer.testing._get_command = command_of


@dataclass(frozen=True)
class Called:
    """What came of a call."""

    returncode: int
    stdout: str
    stderr: str


def call(*arguments: str, code: int = 0, stdin: str = "") -> Called:
    """Run `noonmark` with these arguments, in the current folder and environment, and insist on its exit code."""
    argv, hook, returncode = sys.argv, sys.excepthook, 0
    sys.argv = ["noonmark", *arguments]
    try:
        with CliRunner().isolation(input=stdin) as (out, err, _):
            try:
                main()
            except SystemExit as ended:
                returncode = int(ended.code or 0)
            sys.stdout.flush()
            sys.stderr.flush()
            called = Called(returncode, out.getvalue().decode(), err.getvalue().decode())
    finally:
        sys.argv, sys.excepthook = argv, hook
    assert returncode == code, (called.stdout, called.stderr)
    return called


__all__ = ["Called", "CliRunner", "call", "command_of"]
