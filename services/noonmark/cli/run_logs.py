"""`noonmark run logs`: what attempts printed and logged."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from enum import StrEnum
from typing import Annotated, Any

import typer

from noonmark.cli.context import operator_settings, reading
from noonmark.cli.options import AsJson, read_uuid
from noonmark.cli.output import printable, show_json
from noonmark.cli.problems import CliError

Stream = StrEnum("Stream", {"LOG": "log", "STDOUT": "stdout", "STDERR": "stderr"})


def logs(
    run: Annotated[str, typer.Argument(metavar="ID", help="Id of the run.")],
    attempt: Annotated[int | None, typer.Option(min=1, help="Only this attempt.")] = None,
    stream: Annotated[
        Stream | None, typer.Option(help="Only this, as it was written: log is what `ctx.log` was given.")
    ] = None,
    *,
    as_json: AsJson = False,
) -> None:
    """Show what the attempts of a run printed and logged: the last 64 KB of each stream.

    It is kept when an attempt ends, with its outcome.
    """
    run_id = read_uuid(run, "run")
    assert run_id is not None
    from noonmark.store import run_views, views  # noqa: PLC0415

    with reading(operator_settings()) as connection:
        found = run_views.run_logs(connection, run_id, attempt)
        known = views.show_run(connection, run_id) if not found else None
    if not found and known is None:
        raise CliError(f"there is no run {run_id}: `noonmark run list` shows those there are")
    if as_json:
        show_json({"run": run_id, "attempts": found})
    elif stream is not None:
        for line in "".join(row[stream.value] for row in found).splitlines():
            print(_shown(line))
    elif found:
        _show(found)
    else:
        assert known is not None
        print(_nothing(known, attempt))


def _show(attempts: Sequence[Mapping[str, Any]]) -> None:
    for row in attempts:
        for stream in Stream:
            written = row[stream.value]
            if written:
                print(f"== attempt {row['attempt']}, fence {row['fence']}: {stream.value}")
                for line in written.splitlines():
                    print(_shown(line))
        if row["dropped"]:
            print(f"== {row['dropped']} bytes before these were not kept")


def _shown(line: str) -> str:
    """Return a line as it was written, without what a terminal would obey."""
    return "\t".join(map(printable, line.split("\t")))


def _nothing(run: Mapping[str, Any], attempt: int | None) -> str:
    which = f"attempt {attempt}" if attempt is not None else "its attempts"
    if run["state"] in {"running", "cancelling"}:
        return f"nothing is kept yet: the run is {run['state']}, and logs are kept when an attempt ends"
    return f"{which} wrote nothing that is kept"
