"""`noonmark run hold` and `noonmark run release`: hold workflow runs, and let them go on."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Annotated, Any, Final
from uuid import UUID

import typer

from noonmark.cli.connections.api_pages import MISSING, with_instants
from noonmark.cli.connections.context import operator_settings
from noonmark.cli.connections.ids import run_ids
from noonmark.cli.terminal.options import AsJson
from noonmark.cli.terminal.output import instant, printable, show_json
from noonmark.cli.terminal.problems import ExitCode

if TYPE_CHECKING:
    from noonmark.client import Client

_CONFLICT: Final = 409

RunIds = Annotated[
    list[str], typer.Argument(metavar="ID...", help="Ids of runs, or at least their first 8 characters.")
]


def hold(runs: RunIds, as_json: AsJson = False) -> None:
    """Hold workflow runs: no more of their tasks start until they are released.

    What is queued or running goes on. Exits 1 if a run cannot be held.
    """
    done = _each(run_ids(runs), lambda api, run: api.runs.hold(run))
    _report(done, lambda held: f"has been held since {instant(held['held_at'])}", as_json=as_json)


def release(runs: RunIds, as_json: AsJson = False) -> None:
    """Let held workflow runs go on. Exits 1 if a run cannot be released."""
    done = _each(run_ids(runs), lambda api, run: api.runs.release(run))
    _report(done, lambda _: "is not held", as_json=as_json)


@dataclass(slots=True)
class _Done:
    """Results: answers of the API, and the reasons of runs that were not changed."""

    changed: list[Mapping[str, Any]] = field(default_factory=list)
    refused: list[tuple[UUID, str]] = field(default_factory=list)


def _each(runs: Sequence[UUID], send: Callable[[Client, UUID], Mapping[str, Any]]) -> _Done:
    """Send one request for each run; one that is refused does not stop the others."""
    from noonmark.cli.connections.api import client  # noqa: PLC0415 - httpx takes a while to load
    from noonmark.client import ApiError  # noqa: PLC0415

    done = _Done()
    with client(operator_settings()) as api:
        for run in runs:
            try:
                done.changed.append(send(api, run))
            except ApiError as error:
                if error.status not in (MISSING, _CONFLICT):
                    raise
                hint = "; run `noonmark run list`" if error.status == MISSING else ""
                done.refused.append((run, f"{error.detail or f'there is no run {run}'}{hint}"))
    return done


def _report(done: _Done, words: Callable[[Mapping[str, Any]], str], *, as_json: bool) -> None:
    if as_json:
        refused = [{"run_id": str(run), "reason": reason} for run, reason in done.refused]
        show_json({"runs": done.changed, "refused": refused})
    else:
        for run in done.changed:
            print(f"run {run['id']} {words(with_instants(run))}")
        for _, reason in done.refused:
            typer.echo(printable(reason), err=True)
    if done.refused:
        raise typer.Exit(ExitCode.PROBLEM)
