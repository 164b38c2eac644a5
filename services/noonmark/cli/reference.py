"""Generate docs/cli.md from the commands: `python -m noonmark.cli.reference`."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from enum import Enum
from pathlib import Path
from typing import Any, Final, get_args

from noonmark.cli.terminal.usage import placeholder

_HEAD: Final = """\
# Command line

Every command and option of `noonmark`. `python -m noonmark.cli.reference` generates this page; do not
edit it by hand.

- `noonmark COMMAND --help` shows the same text in the terminal.
- `--json` prints one JSON document instead of text; `--output wide` adds columns to a listing.
- On a terminal, listings are tables with colours, and long commands show their progress. On a pipe, output
  has plain columns, no colours and no progress. `NO_COLOR` turns colours off on a terminal, too.
- `noonmark --install-completion` installs completion of commands and options for bash, zsh, fish or
  PowerShell; `--show-completion` prints the script.
- Settings come from the environment: [settings.md](settings.md). Which API or database a command uses:
  [contexts.md](contexts.md).

| exit code | meaning |
|---|---|
"""

_TYPES: Final = {int: "INTEGER", float: "NUMBER", Path: "PATH"}

_CODES: Final = {
    "OK": "Success.",
    "PROBLEM": "The command found a problem, was rejected, found no object, or its run is skipped.",
    "USAGE": "An option, an argument or a setting is invalid; nothing was done.",
    "UNREACHABLE": "The database, Kafka or the API is unreachable.",
    "INTERRUPTED": "Interrupted (Ctrl-C).",
}


def page() -> str:
    """Return the text of docs/cli.md."""
    from typer.main import get_command  # noqa: PLC0415

    from noonmark.cli.main import app  # noqa: PLC0415
    from noonmark.cli.terminal.problems import ExitCode  # noqa: PLC0415

    codes = "".join(f"| {code.value} | {_CODES[code.name]} |\n" for code in ExitCode)
    root = get_command(app)
    return _HEAD + codes + "\n" + "\n".join(_sections(root, ("noonmark",)))


def _sections(command: Any, path: tuple[str, ...]) -> Iterator[str]:
    """Yield the section of a command and of its subcommands."""
    children = {name: child for name, child in getattr(command, "commands", {}).items() if not child.hidden}
    level = "#" * min(len(path) + 1, 4)
    lines = [f"{level} {' '.join(path)}", "", _prose(command.help or ""), ""]
    if not children:
        lines += ["```", _usage(command, path), "```", ""]
    rows = [row for param in command.params if (row := _row(param)) is not None]
    if rows:
        lines += ["| | |", "|---|---|", *rows, ""]
    yield "\n".join(lines)
    for name, child in sorted(children.items()):
        yield from _sections(child, (*path, name))


def _usage(command: Any, path: tuple[str, ...]) -> str:
    words = [*path]
    if any(not _is_argument(param) for param in command.params):
        words.append("[OPTIONS]")
    words += [_metavar(param) for param in command.params if _is_argument(param)]
    return " ".join(words)


def _row(param: Any) -> str | None:
    """Return the row of an argument or option; None for options that every command has."""
    if getattr(param, "hidden", False) or param.name in {"help", "install_completion", "show_completion"}:
        return None
    description = _prose(getattr(param, "help", None) or "")
    if _is_argument(param):
        return f"| {_code(_metavar(param))} | {description} |"
    value = "" if param.is_flag else f" {_metavar(param)}"
    names = ", ".join(f"`{name}`" for name in (*param.opts, *param.secondary_opts))
    notes = [note for note in (_required(param), _default(param)) if note]
    return f"| {names}{_code(value)} | {' '.join((description, *notes)).strip()} |"


def _is_argument(param: Any) -> bool:
    return bool(param.param_type_name == "argument")


def _metavar(param: Any) -> str:
    """Return the placeholder of the value: the choices, else the metavar or the type."""
    name = str(param.metavar) if param.metavar else _type_name(param.type_descriptor.annotation)
    return placeholder(param) if _is_argument(param) else name


def _type_name(kind: Any) -> str:
    """Return the placeholder of a type."""
    kind = next(iter(get_args(kind)), kind)
    if isinstance(kind, type) and issubclass(kind, Enum):
        return "|".join(str(one.value) for one in kind)
    return _TYPES.get(kind, "TEXT")


def _required(param: Any) -> str:
    return "Required." if param.required else ""


def _default(param: Any) -> str:
    default = getattr(param.default, "value", param.default)
    if param.is_flag or default is None or default in ("", ()) or callable(default):
        return ""
    if isinstance(default, str | int | float):
        shown = f"{default:g}" if isinstance(default, float) else str(default)
        return f"Default: {_code(shown)}."
    return ""


def _code(text: str) -> str:
    """Return text as code that a table cell can contain."""
    bare = text.strip()
    return f"{text[: len(text) - len(text.lstrip())]}`{bare.replace('|', chr(92) + '|')}`" if bare else ""


def _prose(text: str) -> str:
    """Return a help text with the lines of each paragraph joined, so that it fits a table cell."""
    paragraphs = [" ".join(part.split()) for part in re.split(r"\n\s*\n", text)]
    return "\n\n".join(paragraphs)


if __name__ == "__main__":
    sys.stdout.write(page())
