"""`noonmark config`: show the effective settings, and report unknown variables."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

import typer

from noonmark.cli.connections.context import origin_of, stack_addresses
from noonmark.cli.terminal.options import AsJson
from noonmark.cli.terminal.output import Column, field, show_json, show_list
from noonmark.cli.terminal.problems import ExitCode

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
    """Show every effective setting with secrets masked. Exits 2 if a setting is invalid."""
    from noonmark.settings import Settings  # noqa: PLC0415

    settings, problems = Settings.examine(given_as=None, **stack_addresses())
    rows = describe(settings) if settings is not None else []
    if as_json:
        show_json({"settings": rows, "problems": problems})
    else:
        if rows:
            show_list(rows, _COLUMNS)
        for problem in problems:
            print(problem, file=sys.stderr)
    if problems:
        raise typer.Exit(ExitCode.USAGE)


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
