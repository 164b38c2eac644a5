"""`noonmark run retry`: another life for a dead run."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any

import typer

from noonmark.cli.connections.context import operator_settings
from noonmark.cli.terminal.options import AsJson, read_uuid
from noonmark.cli.terminal.output import printable, show_json
from noonmark.cli.terminal.problems import ExitCode


def retry(
    run: Annotated[str, typer.Argument(metavar="ID", help="Id of the run.")],
    *,
    wait: Annotated[
        bool, typer.Option("--wait", help="Wait for the run's end; code 1 unless it succeeded.")
    ] = False,
    timeout: Annotated[
        float, typer.Option("--timeout", min=1, max=604_800, help="With --wait: seconds at most.")
    ] = 300.0,
    as_json: AsJson = False,
) -> None:
    """Give a dead run another life, with new budgets. `noonmark dead redrive` does so by the thousand."""
    run_id = read_uuid(run, "run")
    assert run_id is not None
    from noonmark.cli.connections.api import client  # noqa: PLC0415 - httpx takes a while to load

    with client(operator_settings()) as api:
        answer = api.runs.retry(run_id)
        ended = api.runs.wait(run_id, timeout) if wait else None
    finish(run_id, answer, ended, as_json=as_json, told="is to be tried again")


def finish(
    run_id: object, answer: Mapping[str, Any], ended: Mapping[str, Any] | None, *, as_json: bool, told: str
) -> None:
    """Show what an order about a run came to; where its end was waited for, the exit code says how it ended.

    Args:
        run_id: of the run.
        answer: of the API to the order.
        ended: the run at its end; None where nobody waited.
        as_json: print JSON.
        told: what is said of a run that nobody waited for.
    """
    if as_json:
        show_json(answer if ended is None else ended)
    elif ended is None:
        print(f"run {run_id} {told}; `noonmark run show {run_id}` shows what becomes of it")
    else:
        print(f"run {run_id} {_end(ended)}")
    if ended is not None and ended["state"] != "succeeded":
        raise typer.Exit(ExitCode.PROBLEM)


def _end(run: Mapping[str, Any]) -> str:
    """Return how a run ended, in words."""
    state, error = run["state"], run.get("error") or run.get("reason")
    told = "succeeded" if state == "succeeded" else f"ended as {state}"
    return f"{told}: {printable(str(error))}" if error else told
