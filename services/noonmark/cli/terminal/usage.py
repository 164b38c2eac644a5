"""How commands are used: placeholders of arguments (`NAME`, `[NAME]`), and options that need others."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from noonmark.cli.terminal.problems import WORDS, CliError, ExitCode
from noonmark.cli.terminal.synonyms import command_of

_NEEDED: Final = {"--timeout": "--wait", "--set": "--apply"}
"""Options that change nothing without another one, in commands that have both."""


def placeholder(param: Any) -> str:
    """Return the placeholder of an argument; one that can be omitted is in brackets."""
    name = str(param.metavar or param.name).upper()
    name = name if param.required or name.startswith("[") else f"[{name}]"
    return f"{name}..." if param.nargs == -1 and not name.endswith("...") else name


def plain_usage(root: Any, words: Sequence[str]) -> None:
    """Make the usage line of the command that the words name show the placeholders without braces."""
    command, _ = command_of(root, words)
    for param in command.params if command is not None else ():
        if param.param_type_name == "argument":
            pieces = [placeholder(param)]
            param.get_usage_pieces = lambda _, pieces=pieces: pieces


def check_needed(root: Any, words: Sequence[str]) -> None:
    """Make the named command refuse options that have no effect, once all its values are read."""
    command, _ = command_of(root, words)
    if command is None or hasattr(command, "refuses_useless"):
        # Tests build the tree of commands once and call it often.
        return
    command.refuses_useless = True
    known = {flag for param in command.params for flag in param.opts}
    run = command.invoke

    def invoke(ctx: Any) -> Any:
        given = {word.partition("=")[0] for word in ctx.meta[WORDS]}
        for option, needed in _NEEDED.items():
            if {option, needed} <= known and option in given and needed not in given:
                message = f"{option} has no effect without {needed}: add {needed}, or omit {option}"
                raise CliError(message, ExitCode.USAGE)
        return run(ctx)

    command.invoke = invoke
