"""`noonmark limit`: how many runs of the jobs that name a limit may be under way, and begin in a time."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from noonmark.cli.connections.context import operator_settings
from noonmark.cli.connections.job_ref import namespace_of
from noonmark.cli.terminal.options import AsJson
from noonmark.cli.terminal.output import Column, field, show_json, show_list, with_instants
from noonmark.cli.terminal.problems import CliError, ExitCode

app = typer.Typer(
    help="Bound how many runs of jobs go on at a time, and begin in a time.", no_args_is_help=True
)

Name = Annotated[str, typer.Argument(help="1 to 63 of a-z, 0-9, '-' and '_'.")]
InNamespace = Annotated[
    str | None,
    typer.Option("--namespace", help="Namespace of the limit; without it that of the context or key."),
]


def _rate(row: Any) -> str:
    if row["rate_count"] is None:
        return ""
    return f"{row['rate_count']}/{row['rate_seconds']:g}s"


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
        int | None, typer.Option(metavar="N", help="Most runs under way at a time, for each key.")
    ] = None,
    rate: Annotated[
        str | None,
        typer.Option(metavar="N/TIME", help="Runs that may begin in a time: 100/60s, 5/s, 1000/h."),
    ] = None,
    burst: Annotated[
        int | None,
        typer.Option(
            metavar="N", help="Runs that may begin at once after a quiet time. Default: those of the rate."
        ),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Make a limit, or give it other figures; what is not given it does not bound.

    Jobs name it in their field `limits`. Runs that wait for it see other figures at once.
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
    lets = "lets" if changed else "let"
    print(f"limit {name} of namespace {namespace} {lets} through {' and '.join(allows)}{was}")


@app.command("list")
def list_(namespace: InNamespace = None, as_json: AsJson = False) -> None:
    """List limits, with how many of their slots are in use and how many runs wait, over all keys."""
    from noonmark.cli.connections.api import client  # noqa: PLC0415

    with client(operator_settings()) as api:
        rows = api.limits.list(namespace=namespace)
    if as_json:
        show_json({"items": rows})
        return
    show_list([with_instants(row, "updated_at") for row in rows], _COLUMNS)


@app.command()
def delete(name: Name, namespace: InNamespace = None, as_json: AsJson = False) -> None:
    """Delete a limit. Refused while a job that may still run names it."""
    from noonmark.cli.connections.api import client  # noqa: PLC0415

    with client(operator_settings()) as api:
        found = next((one for one in api.limits.list(namespace=namespace) if one["name"] == name), None)
        if found is None:
            place = namespace_of(api, namespace)
            raise CliError(
                f"namespace {place!r} has no limit {name!r}: `noonmark limit list` shows those there are"
            )
        api.limits.delete(name, namespace=namespace)
    if as_json:
        show_json({"namespace": found["namespace"], "name": name, "deleted": True})
    else:
        print(f"limit {name} of namespace {found['namespace']} is deleted")


def _figures(
    name: str, namespace: str | None, max_running: int | None, rate: str | None, burst: int | None
) -> dict[str, Any]:
    """Read what options say, which are then spoken of by their names.

    Raises:
        CliError: it makes no limit.
    """
    from noonmark.store.limits.limits import Figures, LimitError, check_limit, parse_rate  # noqa: PLC0415

    try:
        count, seconds = parse_rate(rate) if rate is not None else (None, None)
        figures = Figures(max_running, count, seconds, burst)
        check_limit(namespace or "default", name, figures)
    except LimitError as error:
        raise CliError(str(error), ExitCode.USAGE) from error
    return figures._asdict()
