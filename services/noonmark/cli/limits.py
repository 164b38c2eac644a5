"""`noonmark limit`: how many runs of the jobs that name a limit may be under way, and begin in a time."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Annotated, Any

import typer

from noonmark.cli.context import changing, operator_settings
from noonmark.cli.options import AsJson, Namespace
from noonmark.cli.output import Column, field, show_json, show_list
from noonmark.cli.problems import CliError, ExitCode

if TYPE_CHECKING:
    import psycopg

app = typer.Typer(
    help="Bound how many runs of jobs go on at a time, and begin in a time.", no_args_is_help=True
)

Name = Annotated[str, typer.Argument(help="1 to 63 of a-z, 0-9, '-' and '_'.")]
InNamespace = Annotated[str, typer.Option("--namespace", help="Namespace that the limit belongs to.")]


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
    namespace: InNamespace = "default",
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
    from noonmark.store.limits import Figures, parse_rate, set_limit  # noqa: PLC0415

    with _connected() as connection:
        count, seconds = parse_rate(rate) if rate is not None else (None, None)
        figures = Figures(max_running, count, seconds, burst)
        changed = set_limit(connection, namespace, name, figures)
    if as_json:
        show_json({"namespace": namespace, "name": name, **figures._asdict(), "changed": changed})
        return
    allows = [f"{max_running:,} at a time"] if max_running is not None else []
    if count is not None:
        allows.append(f"{count:,} in {seconds:g} s" + (f", {burst:,} at once" if burst is not None else ""))
    was = "" if changed else " already"
    lets = "lets" if changed else "let"
    print(f"limit {name} of namespace {namespace} {lets} through {' and '.join(allows)}{was}")


@app.command("list")
def list_(namespace: Namespace = None, as_json: AsJson = False) -> None:
    """List limits, with how many of their slots are in use and how many runs wait, over all keys."""
    from noonmark.store.limits import list_limits  # noqa: PLC0415

    with _connected() as connection:
        rows = [row._asdict() for row in list_limits(connection, namespace)]
    if as_json:
        show_json({"items": rows})
        return
    show_list(rows, _COLUMNS)


@app.command()
def delete(name: Name, namespace: InNamespace = "default", as_json: AsJson = False) -> None:
    """Delete a limit. Refused while a job that may still run names it."""
    from noonmark.store.limits import delete_limit  # noqa: PLC0415

    with _connected() as connection:
        deleted = delete_limit(connection, namespace, name)
    if not deleted:
        raise CliError(
            f"namespace {namespace!r} has no limit {name!r}: `noonmark limit list` shows those there are"
        )
    if as_json:
        show_json({"namespace": namespace, "name": name, "deleted": True})
    else:
        print(f"limit {name} of namespace {namespace} is deleted")


@contextmanager
def _connected() -> Iterator[psycopg.Connection]:
    """Open a connection; what is wrong with what was asked for ends in a sentence."""
    from noonmark.store.limits import LimitError, LimitInUseError  # noqa: PLC0415

    settings = operator_settings()
    try:
        with changing(settings) as connection:
            yield connection
    except LimitInUseError as error:
        raise CliError(str(error)) from error
    except LimitError as error:
        raise CliError(str(error), ExitCode.USAGE) from error
