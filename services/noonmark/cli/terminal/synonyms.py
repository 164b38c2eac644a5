"""Names of other tools for our commands, options and values: options and values are taken, with a note."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from difflib import get_close_matches
from enum import Enum
from typing import Any, Final, get_args

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
    command, at = _command_of(root, args)
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
            renamed.append(f"{ours or name}={_value(param, ours or name, value)}")
            continue
        renamed.append(ours or name)
        if param is not None and not param.is_flag and not param.count:
            following = next(rest, None)
            renamed += [_value(param, ours or name, following)] if following is not None else []
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


def _command_of(root: Any, args: Sequence[str]) -> tuple[Any | None, int]:
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
