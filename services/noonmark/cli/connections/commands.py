"""`noonmark context`: manage the named APIs that commands use."""

from __future__ import annotations

import sys
from dataclasses import replace
from typing import TYPE_CHECKING, Annotated, Any

import typer

from noonmark.cli.connections.context import operator_settings
from noonmark.cli.terminal.options import AsJson
from noonmark.cli.terminal.output import field, show_fields, show_json, show_list
from noonmark.cli.terminal.problems import CliError, ExitCode

if TYPE_CHECKING:
    from noonmark.cli.connections.contexts import Context, Contexts
    from noonmark.settings import Settings

app = typer.Typer(
    help="Manage contexts: named APIs with their addresses and keys.",
    no_args_is_help=True,
)

Name = Annotated[str, typer.Argument(metavar="NAME", help="Name of the context.")]

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
            help="Source of the key: env:NAME, file:PATH, or - to read the key from standard input.",
        ),
    ],
    namespace: Annotated[
        str | None, typer.Option("--namespace", help="Default namespace of commands.")
    ] = None,
    allow_http: Annotated[
        bool, typer.Option("--allow-http", help="Allow unencrypted HTTP on a trusted network.")
    ] = False,
    use: Annotated[bool, typer.Option("--use", help="Make it the current context.")] = False,
    as_json: AsJson = False,
) -> None:
    """Add a context, or replace the one with this name."""
    from noonmark.cli.connections import contexts  # noqa: PLC0415

    if key != "-" and not key.startswith(("env:", "file:")):
        # The shell's history and the list of processes contain arguments.
        raise CliError(
            "a key cannot be an argument, because other users can read it: use --key - and pass it on"
            " standard input, or --key env:NAME, or --key file:PATH",
            ExitCode.USAGE,
        )
    if key == "-":
        key = sys.stdin.readline(4096).strip()
        if not key:
            raise CliError("standard input contained no key", ExitCode.USAGE)
    added = contexts.make(name, url, key, namespace, allow_http=allow_http)
    known = _read()
    existed = name in known.contexts
    current = name if use else known.current
    contexts.write(replace(known, contexts={**known.contexts, name: added}, current=current))
    if as_json:
        show_json(_row(added, current))
        return
    hint = "" if current == name else f"; run `noonmark context use {name}` to make it current"
    print(f"context {name} {'replaced' if existed else 'added'} in {known.path}{hint}")


@app.command("list")
def list_(as_json: AsJson = False) -> None:
    """List contexts with the sources of their keys."""
    known = _read()
    rows = [_row(context, known.current) for _, context in sorted(known.contexts.items())]
    if as_json:
        show_json({"items": rows})
    elif rows:
        shown = [{**row, "current": "*" if row["current"] else ""} for row in rows]
        show_list(shown, _COLUMNS)
    else:
        print(f"no contexts found in {known.path}; run `noonmark context add`")


@app.command()
def use(
    name: Annotated[
        str | None,
        typer.Argument(metavar="[NAME]", help="Name of the context; omit it to unset the current one."),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Set the current context; without a name, unset it."""
    from noonmark.cli.connections import contexts  # noqa: PLC0415

    known = _read()
    if name is not None:
        known.named(name)
    contexts.write(replace(known, current=name))
    if as_json:
        show_json({"current": name})
    else:
        print(f"current context: {name}" if name is not None else "no current context")


@app.command()
def show(
    name: Annotated[
        str | None,
        typer.Argument(metavar="[NAME]", help="Name of the context; omit it to show the current target."),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Show a context, or the target that commands currently use and why."""
    if name is not None:
        known = _read()
        shown = _row(known.named(name), known.current)
    else:
        shown = current_target(operator_settings())
    if as_json:
        show_json(shown)
    else:
        show_fields(shown)


@app.command()
def remove(name: Name, as_json: AsJson = False) -> None:
    """Remove a context, and its key if the file contains it."""
    from noonmark.cli.connections import contexts  # noqa: PLC0415

    known = _read()
    known.named(name)
    left = {other: context for other, context in known.contexts.items() if other != name}
    current = None if known.current == name else known.current
    contexts.write(replace(known, contexts=left, current=current))
    if as_json:
        show_json({"removed": name, "current": current})
    else:
        note = "; no current context" if current != known.current else ""
        print(f"context {name} removed from {known.path}{note}")


def current_target(settings: Settings) -> dict[str, Any]:
    """Return the target of commands: an API or a database (`works_on`), and what decided that."""
    from noonmark.cli.connections.targets import target_of  # noqa: PLC0415
    from noonmark.settings.postgres_url import database_address  # noqa: PLC0415

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
