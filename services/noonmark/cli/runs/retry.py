"""`noonmark run retry`: retry a dead run."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any

import typer

from noonmark.cli.connections.context import operator_settings
from noonmark.cli.connections.ids import RunId, run_id
from noonmark.cli.terminal.options import AsJson, duration_option
from noonmark.cli.terminal.output import printable, show_json
from noonmark.cli.terminal.problems import ExitCode
from noonmark.core.states import RunState
from noonmark.core.workflows import WORKFLOW_POOL


def retry(
    run: RunId,
    *,
    wait: Annotated[
        bool, typer.Option("--wait", help="Wait until the run finishes; exits 1 unless it succeeded.")
    ] = False,
    timeout: Annotated[
        float, duration_option("--timeout", help_text="Maximum wait, with --wait", most=604_800)
    ] = 300.0,
    as_json: AsJson = False,
) -> None:
    """Retry a dead run with a new retry budget. For many runs, use `noonmark dead redrive`."""
    wanted = run_id(run)
    from noonmark.cli.connections.api import client  # noqa: PLC0415 - httpx takes a while to load

    with client(operator_settings()) as api:
        answer = api.runs.retry(wanted)
        ended = api.runs.wait(wanted, timeout) if wait else None
        pool = api.runs.get(wanted)["pool"] if not wait and not as_json else None
    finish(wanted, answer, ended, as_json=as_json, done="is queued again", pool=pool)


def finish(
    run_id: object,
    answer: Mapping[str, Any],
    ended: Mapping[str, Any] | None,
    *,
    as_json: bool,
    done: str,
    pool: str | None = None,
) -> None:
    """Print the result of a request about a run; set the exit code if the run is skipped or did not succeed.

    Args:
        run_id: id of the run.
        answer: the API's answer to the request.
        ended: the finished run; None if the command did not wait.
        as_json: print JSON.
        done: what to print if the command did not wait.
        pool: of the run, which says whether it is of a workflow, and has tasks instead of output.
    """
    skipped = ended is None and answer.get("state") == RunState.SKIPPED
    if as_json:
        show_json(answer if ended is None else ended)
    elif ended is None:
        follow = f"`noonmark run logs -f {run_id}` follows it"
        if pool == WORKFLOW_POOL:
            follow = f"`noonmark run tasks {run_id}` lists its tasks"
        print(f"run {run_id} {done}" + ("" if skipped else f"; {follow}"))
    else:
        print(f"run {run_id} {_end(ended)}")
    if skipped or (ended is not None and ended["state"] != RunState.SUCCEEDED):
        raise typer.Exit(ExitCode.PROBLEM)


def _end(run: Mapping[str, Any]) -> str:
    """Return the outcome of a run as text."""
    state, error = run["state"], run.get("error") or run.get("reason")
    outcome = "succeeded" if state == "succeeded" else f"finished as {state}"
    return f"{outcome}: {printable(str(error))}" if error else outcome
