"""`noonmark context`: the APIs that commands work on, by name."""

from __future__ import annotations

import sys
from dataclasses import replace
from typing import TYPE_CHECKING, Annotated, Any

import typer

from noonmark.cli.connections.context import operator_settings
from noonmark.cli.terminal.options import AsJson
from noonmark.cli.terminal.output import field, show_fields, show_json, show_list
from noonmark.cli.terminal.problems import CliError, ExitCode, database_address

if TYPE_CHECKING:
    from noonmark.cli.connections.contexts import Context, Contexts
    from noonmark.settings import Settings

app = typer.Typer(
    help="Keep the addresses and keys of APIs by name, and say which one commands work on.",
    no_args_is_help=True,
)

Name = Annotated[str, typer.Argument(help="Name of the context.")]

_COLUMNS = (field("current"), field("name"), field("url"), field("namespace"), field("key"))


@app.command()
def add(
    *,
    name: Name,
    url: Annotated[str, typer.Option("--url", help="Address of the API: https://host, with port or path.")],
    key: Annotated[
        str,
        typer.Option(
            "--key",
            help="Where its key is: env:NAME, file:PATH, or - to read the key itself from standard input.",
        ),
    ],
    namespace: Annotated[
        str | None, typer.Option("--namespace", help="What commands mean that name no namespace.")
    ] = None,
    allow_http: Annotated[
        bool, typer.Option("--allow-http", help="Send the key unencrypted, over a network that is trusted.")
    ] = False,
    use: Annotated[bool, typer.Option("--use", help="Use it from now on.")] = False,
    as_json: AsJson = False,
) -> None:
    """Add a context, or replace the one of this name."""
    from noonmark.cli.connections import contexts  # noqa: PLC0415

    if key != "-" and not key.startswith(("env:", "file:")):
        # Arguments stand in the shell's history and in the list of processes.
        raise CliError(
            "a key is not given as an argument, where other users can read it: use --key - and give it on"
            " standard input, or --key env:NAME, or --key file:PATH",
            ExitCode.USAGE,
        )
    if key == "-":
        key = sys.stdin.readline(4096).strip()
        if not key:
            raise CliError("no key came from standard input", ExitCode.USAGE)
    added = contexts.make(name, url, key, namespace, allow_http=allow_http)
    known = _read()
    existed = name in known.contexts
    current = name if use else known.current
    contexts.write(replace(known, contexts={**known.contexts, name: added}, current=current))
    if as_json:
        show_json(_row(added, current))
        return
    hint = "" if current == name else f"; `noonmark context use {name}` makes it the current one"
    print(f"context {name} is {'replaced' if existed else 'added'} in {known.path}{hint}")


@app.command("list")
def list_(as_json: AsJson = False) -> None:
    """List the contexts; keys are not shown, only where they are."""
    known = _read()
    rows = [_row(context, known.current) for _, context in sorted(known.contexts.items())]
    if as_json:
        show_json({"items": rows})
    elif rows:
        shown = [{**row, "current": "*" if row["current"] else ""} for row in rows]
        show_list(shown, _COLUMNS)
    else:
        print(f"there are no contexts in {known.path}; `noonmark context add` makes one")


@app.command()
def use(
    name: Annotated[
        str | None, typer.Argument(help="Name of the context; none: commands use no context.")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Make a context the current one, or with no name none."""
    from noonmark.cli.connections import contexts  # noqa: PLC0415

    known = _read()
    if name is not None:
        known.named(name)
    contexts.write(replace(known, current=name))
    if as_json:
        show_json({"current": name})
    else:
        print(f"commands work in context {name}" if name is not None else "commands work in no context")


@app.command()
def show(
    name: Annotated[
        str | None, typer.Argument(help="Name of the context; none: where commands go as things stand.")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Show a context, or where commands go as things stand, and what decided so."""
    if name is not None:
        known = _read()
        shown = _row(known.named(name), known.current)
    else:
        shown = in_force(operator_settings())
    if as_json:
        show_json(shown)
    else:
        show_fields(shown)


@app.command()
def remove(name: Name, as_json: AsJson = False) -> None:
    """Remove a context, and its key if it stands in the file."""
    from noonmark.cli.connections import contexts  # noqa: PLC0415

    known = _read()
    known.named(name)
    left = {other: context for other, context in known.contexts.items() if other != name}
    current = None if known.current == name else known.current
    contexts.write(replace(known, contexts=left, current=current))
    if as_json:
        show_json({"removed": name, "current": current})
    else:
        told = "; commands work in no context now" if current != known.current else ""
        print(f"context {name} is removed from {known.path}{told}")


def in_force(settings: Settings) -> dict[str, Any]:
    """Return where commands go as things stand: `works_on` an API or a database, and what decided so."""
    from noonmark.cli.connections.targets import target_of  # noqa: PLC0415

    target = target_of(settings)
    if target.url:
        return {
            "works_on": target.url,
            "context": target.context,
            "namespace": target.namespace,
            "key": "********" if target.key else "",
            "named_by": target.named_by,
        }
    return {
        "works_on": f"the database {database_address(settings.dsn)}, without a server",
        "context": None,
        "namespace": None,
        "key": "",
        "named_by": target.named_by,
    }


def _read() -> Contexts:
    from noonmark.cli.connections import contexts  # noqa: PLC0415 - not needed to show help

    return contexts.read(contexts.path_of(operator_settings().config))


def _row(context: Context, current: str | None) -> dict[str, Any]:
    return {
        "name": context.name,
        "current": context.name == current,
        "url": context.url,
        "namespace": context.namespace,
        "key": context.key_source,
    }
