"""`noonmark why`: explain why a job or run has not run."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Annotated, Any, Final

import typer

from noonmark.cli.connections.context import operator_settings
from noonmark.cli.connections.ids import completed, is_prefix, run_id
from noonmark.cli.connections.job_ref import any_id_of
from noonmark.cli.terminal.options import AsJson, Namespace, as_uuid
from noonmark.cli.terminal.output import printable, show_json
from noonmark.cli.terminal.problems import CliError

if TYPE_CHECKING:
    from noonmark.client import Client

_MISSING: Final = 404


def why(
    target: Annotated[str, typer.Argument(metavar="JOB|RUN", help="Id or name of a job, or id of a run.")],
    task: Annotated[
        str | None,
        typer.Option(
            metavar="KEY", help="Of a workflow run: the task to explain, also if it has no run yet."
        ),
    ] = None,
    namespace: Namespace = None,
    as_json: AsJson = False,
) -> None:
    """Explain why a job or run has not run, and what to do about it."""
    from noonmark.cli.connections.api import client  # noqa: PLC0415 - the API's client takes a while to load

    with client(operator_settings()) as api:
        found = ask(api, target, namespace) if task is None else _ask_task(api, target, task)
    if as_json:
        show_json(found)
    else:
        print("\n".join(lines(found)))


def ask(api: Client, target: str, namespace: str | None) -> Mapping[str, Any]:
    """Return the explanation for a job (id or name) or a run (id).

    Raises:
        CliError: neither exists, or several jobs have the name.
    """
    from noonmark.client import ApiError  # noqa: PLC0415

    wanted = as_uuid(target)
    if wanted is None and is_prefix(target):
        named = api.jobs.list(name=target, namespace=namespace, limit=1).page().items
        wanted = completed(api, target) if not named else None
    if wanted is None:
        return api.jobs.why(any_id_of(api, target, namespace))
    for of in (api.jobs.why, api.runs.why):
        try:
            return of(wanted)
        except ApiError as error:
            if error.status != _MISSING:
                raise
    raise CliError(f"no job or run {target} exists; run `noonmark job list` or `noonmark run list`")


def _ask_task(api: Client, run: str, task: str) -> Mapping[str, Any]:
    """Return the explanation for a task of a workflow run.

    Raises:
        CliError: there is no such run, or it has no such task.
    """
    from noonmark.client import ApiError  # noqa: PLC0415

    wanted = run_id(run)
    try:
        return api.runs.why(wanted, task=task)
    except ApiError as error:
        if error.status != _MISSING:
            raise
        raise CliError(f"{error.detail}; run `noonmark run tasks {wanted}`") from error


def lines(found: Mapping[str, Any]) -> list[str]:
    """Return the answers as text: the first, the others, what to do."""
    first, *others = found["answers"]
    shown = [_head(found), "", _sentence(first["sentence"])]
    if others:
        shown += ["", "Also:", *(f"- {printable(one['sentence'])}" for one in others)]
    shown += ["", "What to do:", *(f"- {printable(one)}" for one in _remedies(found["answers"]))]
    return shown


def _head(found: Mapping[str, Any]) -> str:
    name = printable(str(found["job_name"] or found["job_id"]))
    if found["kind"] == "job":
        return f"job {name} in namespace {found['namespace']} is {found['state']}"
    if found.get("task") is not None:
        head = (
            f"task {found['task']} of workflow run {found['workflow_id']} of job {name} is {found['state']}"
        )
        return head if found["id"] == found["workflow_id"] else f"{head}; its run is {found['id']}"
    return f"run {found['id']} of job {name} in namespace {found['namespace']} is {found['state']}"


def _sentence(text: str) -> str:
    shown = printable(text)
    return shown[:1].upper() + shown[1:]


def _remedies(answers: Sequence[Mapping[str, Any]]) -> list[str]:
    """Return the remedies for what blocks; if nothing blocks, for the first answer."""
    blocking = [one for one in answers if one["blocks"]] or answers[:1]
    return list(dict.fromkeys(one["remedy"] for one in blocking))
