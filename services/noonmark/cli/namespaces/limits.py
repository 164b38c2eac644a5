"""`noonmark limit`: manage concurrency and rate limits of jobs."""

from __future__ import annotations

from difflib import get_close_matches
from typing import TYPE_CHECKING, Annotated, Any

import typer

from noonmark.cli.connections.api_pages import with_instants
from noonmark.cli.connections.context import operator_settings
from noonmark.cli.connections.job_ref import namespace_of
from noonmark.cli.terminal.options import AsJson
from noonmark.cli.terminal.output import Column, field, show_fields, show_json, show_list
from noonmark.cli.terminal.problems import CliError, ExitCode

if TYPE_CHECKING:
    from noonmark.client import Client

app = typer.Typer(help="Manage limits: maximum concurrent runs, and starts per time.", no_args_is_help=True)

Name = Annotated[
    str, typer.Argument(metavar="NAME", help="Name of the limit: 1 to 63 of a-z, 0-9, '-' and '_'.")
]
InNamespace = Annotated[
    str | None,
    typer.Option("--namespace", help="Namespace of the limit. (default: that of the context or key)"),
]


def _rate(row: Any) -> str:
    if row["rate_count"] is None:
        return "-"
    return f"{row['rate_count']}/{row['rate_seconds']:g}s"


_PARTS_OF_RATE = ("rate_count", "rate_seconds")

_COLUMNS = (
    field("name", "LIMIT"),
    field("namespace", varies=True),
    field("max_running", "MAX RUNNING", numeric=True),
    Column("RATE", _rate),
    field("burst", numeric=True),
    field("in_use", "IN USE", numeric=True),
    field("waiting", numeric=True),
    field("updated_at", "CHANGED", wide=True),
)


@app.command("set")
def set_(
    *,
    name: Name,
    namespace: InNamespace = None,
    max_running: Annotated[
        int | None, typer.Option(metavar="N", help="Maximum concurrent runs for each key.")
    ] = None,
    rate: Annotated[
        str | None,
        typer.Option(metavar="N/TIME", help="Maximum starts per time: 100/60s, 5/s, 1000/h."),
    ] = None,
    burst: Annotated[
        int | None,
        typer.Option(
            metavar="N", help="Maximum starts at once after an idle time. (default: the count of the rate)"
        ),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Create or change a limit; options that you omit set no limit.

    Jobs refer to it in their field `limits`. A change applies to waiting runs at once.
    """
    from noonmark.cli.connections.api import client, wrong_usage  # noqa: PLC0415 - httpx takes a while to load

    figures = _figures(name, namespace, max_running, rate, burst)
    given = {"max_running": max_running, "rate": rate, "burst": burst}
    with client(operator_settings()) as api:
        before = next((one for one in api.limits.list(namespace=namespace) if one["name"] == name), None)
        with wrong_usage():
            now = api.limits.put(name, given, namespace=namespace)
    changed = before is None or any(before[one] != now[one] for one in figures)
    namespace = now["namespace"]
    if as_json:
        show_json({"namespace": namespace, "name": name, **figures, "changed": changed})
        return
    count, seconds = figures["rate_count"], figures["rate_seconds"]
    allows = [f"{max_running:,} at a time"] if max_running is not None else []
    if count is not None:
        allows.append(f"{count:,} in {seconds:g} s" + (f", {burst:,} at once" if burst is not None else ""))
    was = "" if changed else " already"
    admits = "admits" if changed else "admitted"
    print(f"limit {name} of namespace {namespace} {admits} {' and '.join(allows)}{was}")


@app.command("list")
def list_(namespace: InNamespace = None, as_json: AsJson = False) -> None:
    """List limits with the slots in use and the waiting runs of all their keys."""
    from noonmark.cli.connections.api import client  # noqa: PLC0415

    with client(operator_settings()) as api:
        rows = api.limits.list(namespace=namespace)
    if as_json:
        show_json({"items": rows})
        return
    empty = "no limits found; `noonmark limit set` creates one"
    show_list([with_instants(row) for row in rows], _COLUMNS, empty=empty)


@app.command()
def show(name: Name, namespace: InNamespace = None, as_json: AsJson = False) -> None:
    """Show a limit with the slots in use and the waiting runs of all its keys."""
    from noonmark.cli.connections.api import client  # noqa: PLC0415

    with client(operator_settings()) as api:
        found = _find(api, name, namespace)
    if as_json:
        show_json(found)
        return
    fields = {**with_instants(found), "rate": _rate(found)}
    show_fields({one: value for one, value in fields.items() if one not in _PARTS_OF_RATE})


@app.command()
def delete(name: Name, namespace: InNamespace = None, as_json: AsJson = False) -> None:
    """Delete a limit. Rejected while an unfinished job refers to it."""
    from noonmark.cli.connections.api import client  # noqa: PLC0415

    with client(operator_settings()) as api:
        found = _find(api, name, namespace)
        api.limits.delete(name, namespace=namespace)
    if as_json:
        show_json({"namespace": found["namespace"], "name": name, "deleted": True})
    else:
        print(f"limit {name} of namespace {found['namespace']} deleted")


def _find(api: Client, name: str, namespace: str | None) -> dict[str, Any]:
    """Return a limit.

    Raises:
        CliError: the namespace has no such limit.
    """
    rows = {row["name"]: row for row in api.limits.list(namespace=namespace)}
    if name in rows:
        return rows[name]
    near = get_close_matches(name.casefold(), rows, n=1)
    meant = f"; did you mean {near[0]!r}?" if near else "; run `noonmark limit list`"
    raise CliError(f"limit {name!r} does not exist in namespace {namespace_of(api, namespace)!r}{meant}")


def _figures(
    name: str, namespace: str | None, max_running: int | None, rate: str | None, burst: int | None
) -> dict[str, Any]:
    """Parse the options of a limit; messages use the names of the options.

    Raises:
        CliError: the options do not make a limit.
    """
    from noonmark.store.limits.limits import Figures, LimitError, check_limit, parse_rate  # noqa: PLC0415

    try:
        count, seconds = parse_rate(rate) if rate is not None else (None, None)
        figures = Figures(max_running, count, seconds, burst)
        check_limit(namespace or "default", name, figures)
    except LimitError as error:
        raise CliError(str(error), ExitCode.USAGE) from error
    return figures._asdict()
