"""`noonmark config`: show the effective settings, and report unknown variables."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import typer

from noonmark.cli.connections.context import origin_of, stack_addresses
from noonmark.cli.terminal.options import AsJson
from noonmark.cli.terminal.output import Column, field, show_json, show_list, verdict
from noonmark.cli.terminal.problems import ExitCode, file_reason

if TYPE_CHECKING:
    from noonmark.settings import Settings

app = typer.Typer(help="Show and check settings.", no_args_is_help=True)

_COLUMNS = (
    field("variable"),
    Column("VALUE", lambda row: str(row["value"])),
    field("from"),
    field("meaning", wide=True),
)


@app.callback()
def group() -> None:
    """Make `check` a subcommand, although it is the only one."""


@app.command()
def check(as_json: AsJson = False) -> None:
    """Show every setting of this shell with secrets masked, and check all of them; start no service.

    Services that already run have the settings of their own environment: those of a development stack
    have the settings of `noonmark dev up`. The command reads the environment as services do, and the
    files and folders that settings name. Exits 2 if a setting is invalid or unknown, or names a file that
    cannot be read here.
    """
    from noonmark.settings import Settings  # noqa: PLC0415

    stack = stack_addresses()
    settings, problems = Settings.examine(given_as=None, **stack)
    rows = describe(settings) if settings is not None else []
    problems += unreadable_files(settings) if settings is not None else []
    if as_json:
        show_json({"settings": rows, "problems": problems})
    else:
        if rows:
            show_list(rows, _COLUMNS)
            print(_whose(bool(stack)))
        for problem in problems:
            print(problem, file=sys.stderr)
        print(verdict(len(problems)), file=sys.stderr if problems else sys.stdout)
    if problems:
        raise typer.Exit(ExitCode.USAGE)


def _whose(stack: bool) -> str:
    """Say whose settings are shown."""
    if stack:
        others = "the services of the development stack in this folder have those of `noonmark dev up`"
    else:
        others = "running services have those of theirs"
    return f"these are the settings of this shell; {others}"


_PATHS: Final = ("_location", "_dir")
"""Ends of the names of settings with the path of a file or folder."""


def unreadable_files(settings: Settings) -> list[str]:
    """Return a problem for each file or folder of the settings that this user cannot read."""
    problems = []
    for name in type(settings).model_fields:
        path = getattr(settings, name) if name.endswith(_PATHS) else ""
        if not path:
            continue
        try:
            if Path(path).is_dir():
                os.listdir(path)  # noqa: PTH208 - only whether it works
            else:
                Path(path).open("rb").close()
        except OSError as error:
            problems.append(f"NOONMARK_{name.upper()} {path!r} cannot be read: {file_reason(error)}")
    return problems


def describe(settings: Settings) -> list[dict[str, Any]]:
    """Return one row per setting: variable, masked value, origin, meaning."""
    stack = stack_addresses()
    rows = []
    for name, info in type(settings).model_fields.items():
        variable = f"NOONMARK_{name.upper()}"
        rows.append(
            {
                "variable": variable,
                "value": masked(getattr(settings, name)),
                "from": origin_of(name, stack),
                "meaning": info.description,
            }
        )
    return rows


def masked(value: object) -> Any:
    """Return a setting for display: a secret as asterisks, a URL without its password."""
    secret = getattr(value, "get_secret_value", None)
    if secret is not None:
        shown = secret()
        is_url = shown.partition("://")[0].isalpha() and "://" in shown
        return _masked_url(shown) if is_url else "********" if shown else ""
    return ",".join(map(str, value)) if isinstance(value, tuple) else value


def _masked_url(url: str) -> str:
    scheme, _, rest = url.partition("://")
    user, at, place = rest.rpartition("@")
    name, colon, _ = user.partition(":")
    # Query parameters can contain a password, too.
    place, question, _ = place.partition("?")
    return f"{scheme}://{name}{':********' if colon else ''}{at}{place}{'?…' if question else ''}"
