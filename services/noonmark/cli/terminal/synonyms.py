"""Names of other tools for our commands, options and values: options and values are taken, with a note."""

from __future__ import annotations

import sys
from collections.abc import Container, Iterator, Sequence
from difflib import get_close_matches
from enum import Enum
from shlex import quote
from typing import Any, Final, NamedTuple, get_args

_OPTIONS: Final[dict[str, tuple[str, ...]]] = {
    "--tz": ("--zone",),
    "--timezone": ("--zone",),
    "--time-zone": ("--zone",),
    "--cron": ("--schedule",),
    "--schedule": ("--cron",),
    "--count": ("--limit", "--max"),
    "--limit": ("--count", "--max"),
    "--max": ("--limit", "--count"),
    "--max-runs": ("--count",),
    "--from": ("--since",),
    "--to": ("--until",),
    "--after": ("--since",),
    "--before": ("--until",),
    "--ns": ("--namespace",),
    "--labels": ("--label",),
    "--selector": ("--label",),
    "--queue": ("--pool",),
    "--kind": ("--type",),
    "--force": ("--yes",),
    "--at": ("--run-at",),
    "--run-at": ("--at",),
}
"""Options that users know from elsewhere, or from our other commands, with what they may be called here."""

_VALUES: Final = {
    "failed": "dead",
    "error": "dead",
    "success": "succeeded",
    "successful": "succeeded",
    "done": "completed",
    "ok": "succeeded",
    "pending": "waiting",
    "canceled": "cancelled",
    "enabled": "active",
    "disabled": "paused",
    "suspended": "paused",
    "medium": "normal",
}
"""Values of options with a fixed set of values."""

_UNITS: Final = frozenset({"s", "m", "h", "d", "w"})

_ARGUMENTS: Final = {
    ("job", "create"): "--name {}",
    ("job", "apply"): "-f {}",
    ("job", "list"): "--name {}",
    ("job", "export"): "--folder {0}` for files, or `noonmark job export --name {0}",
    ("run", "list"): "--job {}",
    ("dead", "list"): "--job {}",
    ("dead", "groups"): "--job {}",
    ("dlq", "list"): "--job {}",
    ("dlq", "groups"): "--job {}",
    ("backfill", "list"): "--job {}",
    ("alert", "list"): "--job {}",
    ("verify",): "--namespace {}",
}
"""What some commands take as an option and users write as an argument: commands of other tools do."""

_COMMANDS: Final[dict[str, tuple[str, ...]]] = {
    "get": ("show",),
    "describe": ("show",),
    "inspect": ("show",),
    "info": ("show",),
    "view": ("show",),
    "ls": ("list",),
    "add": ("create", "set"),
    "new": ("create", "set"),
    "put": ("set", "apply"),
    "update": ("edit", "set"),
    "remove": ("delete",),
    "rm": ("delete",),
    "stop": ("cancel", "pause"),
    "kill": ("cancel",),
    "unpause": ("resume",),
    "run": ("trigger",),
    "requeue": ("redrive", "retry"),
    "replay": ("redrive", "retry"),
}
"""Commands of a group as other tools call them, with what they may be called here."""

_ELSEWHERE: Final = {
    "status": "`noonmark workers`, `noonmark lag` and `noonmark dev status`",
    "ps": "`noonmark workers` and `noonmark run list --state running`",
    "get": "`noonmark job list` and `noonmark run list`",
    "describe": "`noonmark job show` and `noonmark run show`",
    "start": "`noonmark api`, `noonmark worker` and the other services, or `noonmark dev up`",
    "stop": "`noonmark dev down`, or `noonmark job pause`",
    "init": "`noonmark db migrate`",
    "cron": "`noonmark schedule next` and `noonmark import crontab`",
}
"""Commands of other tools that have no command with this name here."""


def with_our_names(root: Any, args: Sequence[str]) -> list[str]:
    """Return the arguments of a command line with our names for options and values; a note names each.

    Args:
        root: the root command.
        args: the arguments after the name of the program.
    """
    command, at = command_of(root, args)
    if command is None:
        return list(args)
    known = {flag: param for param in command.params for flag in (*param.opts, *param.secondary_opts)}
    renamed = list(args[:at])
    rest = iter(args[at:])
    for word in rest:
        if word == "--":
            renamed += [word, *rest]
            break
        name, equals, value = word.partition("=")
        ours = name if name in known else _ours(name, known)
        if ours is not None and ours != name:
            _note(f"{name} is {ours} here")
        param = known.get(ours or name)
        if equals:
            renamed += [f"{ours or name}={one}" for one in _values(param, ours or name, value)]
            continue
        if param is None or param.is_flag or param.count:
            renamed.append(ours or name)
            continue
        following = next(rest, None)
        found: list[str | None] = [None]
        if following is not None:
            found = [*_values(param, ours or name, following)]
        renamed += [part for one in found for part in (ours or name, one) if part is not None]
    return renamed


def unknown_command(root: Any, word: str) -> str:
    """Return what to use in place of a top-level command that does not exist; empty if nothing is similar."""
    if word in _ELSEWHERE:
        return f"use {_ELSEWHERE[word]}"
    found = [path for path in _paths(root) if path[-1] == word]
    if not found:
        near = get_close_matches(word, {path[-1] for path in _paths(root)}, n=1, cutoff=0.75)
        found = [path for path in _paths(root) if path[-1] in near]
    return (
        "did you mean " + " or ".join(f"`noonmark {' '.join(path)}`" for path in found[:4]) + "?"
        if found
        else ""
    )


class CommandLine(NamedTuple):
    """What was given to a command.

    Attributes:
        words: all arguments of the program.
        single_flags: the options with a value that the command takes once.
    """

    words: tuple[str, ...] = ()
    single_flags: frozenset[str] = frozenset()

    def has(self, option: str) -> bool:
        """Return whether an option that can be given once was given."""
        return option in self.single_flags and any(one.partition("=")[0] == option for one in self.words)

    def split_duration(self, unit: str) -> tuple[str, str] | None:
        """Return the option and the number before a word that is its unit: `--timeout 5 m`."""
        if unit not in _UNITS:
            return None
        words = [part for one in self.words for part in one.split("=", 1)]
        for option, number, last in zip(words, words[1:], words[2:], strict=False):
            if last == unit and number.isdecimal() and option in self.single_flags:
                return option, number
        return None


def command_meant(word: str, known: Container[str]) -> str | None:
    """Return the command of a group that other tools call `word`; None if none is known."""
    return next((ours for ours in _COMMANDS.get(word.casefold(), ()) if ours in known), None)


def extra_argument(
    path: Sequence[str], metavars: Sequence[str], word: str, line: CommandLine = CommandLine()
) -> str:
    """Return the message about an argument that a command does not take, with what it expects.

    Args:
        path: names of the command, without the program.
        metavars: the arguments that it takes, as its help shows them.
        word: the first argument that it does not take.
        line: what was given.
    """
    command = " ".join(("noonmark", *path))
    if (split := line.split_duration(word)) is not None:
        return f"unexpected argument {word!r}; write `{split[0]} {split[1]}{word}`, without a space"
    option = _ARGUMENTS.get(tuple(path))
    if option is not None and not line.has(option.split()[0]):
        return f"unexpected argument {word!r}; write `{command} {option.format(quote(word))}`"
    if not metavars:
        return f"unexpected argument {word!r}; `{command}` takes only options"
    return f"unexpected argument {word!r}; `{command}` takes {' '.join(metavars)} and options"


def missing_option(path: Sequence[str], flags: Sequence[str]) -> str:
    """Return how to give a required option that some give as an argument; empty if none does."""
    option = _ARGUMENTS.get(tuple(path), "")
    return f"Write `{' '.join(('noonmark', *path))} {option.format('FILE')}`." if option[:2] in flags else ""


def unknown_value(given: str, choices: Sequence[str]) -> str:
    """Return the choice that is most similar to a value, as a question; empty if none is."""
    near = get_close_matches(given.casefold(), choices, n=1, cutoff=0.6)
    return f" Did you mean {near[0]!r}?" if near else ""


def choices_of(param: Any) -> list[str]:
    """Return the values that an option or argument can have; empty if they are no fixed set."""
    kinds = [getattr(getattr(param, "type_descriptor", None), "annotation", None)]
    while kinds:
        kind = kinds.pop()
        if isinstance(kind, type) and issubclass(kind, Enum):
            return [str(one.value) for one in kind]
        kinds += get_args(kind)
    return []


def command_of(root: Any, args: Sequence[str]) -> tuple[Any | None, int]:
    """Return the command that arguments name, and the index of its first argument."""
    command, at = root, 0
    takes_value = {flag for param in root.params if not param.is_flag for flag in param.opts}
    while hasattr(command, "commands"):
        if at >= len(args):
            return None, at
        word = args[at]
        if command is root and word.startswith("-"):
            at += 2 if word in takes_value else 1
            continue
        command = command.commands.get(word)
        if command is None:
            return None, at
        at += 1
    return command, at


def _ours(name: str, known: dict[str, Any]) -> str | None:
    return next((ours for ours in _OPTIONS.get(name, ()) if ours in known), None)


def _values(param: Any, option: str, given: str) -> list[str]:
    """Return the values of an option: one, or those between commas if it can be repeated."""
    parts = [part.strip() for part in given.split(",")] if getattr(param, "multiple", False) else []
    choices = choices_of(param) if len(parts) > 1 else []
    return [_value(param, option, one) for one in (list(filter(None, parts)) if choices else [])] or [
        _value(param, option, given)
    ]


def _value(param: Any, option: str, given: str) -> str:
    choices = choices_of(param)
    ours = _VALUES.get(given.casefold())
    if not choices or given in choices or ours not in choices:
        return given
    _note(f"{option} {given} is {option} {ours} here")
    return ours


def _paths(group: Any, *before: str) -> Iterator[tuple[str, ...]]:
    for name, command in group.commands.items():
        if command.hidden:
            continue
        if hasattr(command, "commands"):
            yield from _paths(command, *before, name)
        else:
            yield (*before, name)


def _note(text: str) -> None:
    print(f"note: {text}", file=sys.stderr)
