"""`noonmark run logs`: show the output of attempts."""

from __future__ import annotations

import sys
import time
from collections.abc import Mapping, Sequence
from enum import StrEnum
from typing import TYPE_CHECKING, Annotated, Any, Final
from uuid import UUID

import typer

from noonmark.cli.connections.api_pages import or_missing
from noonmark.cli.connections.context import operator_settings
from noonmark.cli.terminal.options import AsJson, read_uuid
from noonmark.cli.terminal.output import as_json_line, printable, show_json

if TYPE_CHECKING:
    from noonmark.client import Client

_POLL_SECONDS: Final = 0.5

Stream = StrEnum("Stream", {"LOG": "log", "STDOUT": "stdout", "STDERR": "stderr"})


def logs(
    run: Annotated[str, typer.Argument(metavar="ID", help="Id of the run.")],
    attempt: Annotated[int | None, typer.Option(min=1, help="Only this attempt.")] = None,
    stream: Annotated[
        Stream | None, typer.Option(help="Only this stream, unformatted; `log` is the output of `ctx.log`.")
    ] = None,
    *,
    follow: Annotated[
        bool, typer.Option("--follow", "-f", help="Follow attempt by attempt until the run finishes.")
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Show the output of a run's attempts: the last 64 KB of each stream.

    Output is stored with the outcome, when an attempt finishes.
    """
    run_id = read_uuid(run, "run")
    assert run_id is not None
    from noonmark.cli.connections.api import client  # noqa: PLC0415 - httpx takes a while to load

    with client(operator_settings()) as api, or_missing(missing_run(run_id)):
        if follow:
            _follow(api, run_id, attempt, stream, as_json=as_json)
            return
        answer = api.runs.logs(run_id, attempt=attempt)
        found = answer["attempts"]
        nothing = "" if found or as_json else _nothing(api.runs.get(run_id), attempt)
    if as_json:
        show_json(answer)
    elif stream is not None:
        _print_stream(found, stream)
    elif found:
        _show(found)
    else:
        print(nothing)


def missing_run(run_id: UUID) -> str:
    """Return the message for a run that does not exist."""
    return f"run {run_id} does not exist; run `noonmark run list`"


def _follow(api: Client, run_id: UUID, attempt: int | None, stream: Stream | None, *, as_json: bool) -> None:
    """Show attempts as they finish, with `as_json` one document per line, until the run finishes."""
    from noonmark.core.transitions import VERDICTS  # noqa: PLC0415

    seen: set[int] = set()
    while True:
        # Read the state first, so that output written before the run finished is read after it.
        state = api.runs.get(run_id)["state"]
        found = api.runs.logs(run_id, attempt=attempt)["attempts"]
        fresh = [row for row in found if row["fence"] not in seen]
        seen.update(row["fence"] for row in fresh)
        if as_json:
            for row in fresh:
                print(as_json_line({"run_id": run_id, **row}))
        elif stream is not None:
            _print_stream(fresh, stream)
        else:
            _show(fresh)
        sys.stdout.flush()
        if state in VERDICTS:
            if not as_json and stream is None:
                print(f"== run is {state}")
            return
        time.sleep(_POLL_SECONDS)


def _print_stream(attempts: Sequence[Mapping[str, Any]], stream: Stream) -> None:
    for line in "".join(row[stream.value] for row in attempts).splitlines():
        print(_shown(line))


def _show(attempts: Sequence[Mapping[str, Any]]) -> None:
    for row in attempts:
        for stream in Stream:
            written = row[stream.value]
            if written:
                print(f"== attempt {row['attempt']}, fence {row['fence']}: {stream.value}")
                for line in written.splitlines():
                    print(_shown(line))
        if row["dropped"]:
            print(f"== {row['dropped']} earlier bytes were dropped")


def _shown(line: str) -> str:
    """Return a line as it was written, without control characters."""
    return "\t".join(map(printable, line.split("\t")))


def _nothing(run: Mapping[str, Any], attempt: int | None) -> str:
    which = f"attempt {attempt}" if attempt is not None else "its attempts"
    if run["state"] in {"running", "cancelling"}:
        return f"no output yet: the run is {run['state']}, and output is stored when an attempt finishes"
    return f"{which} stored no output"
