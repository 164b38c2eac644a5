"""`noonmark job versions` and `diff`: the versions of a job and their differences."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Annotated, Any

import typer

from noonmark.cli.connections.context import operator_settings
from noonmark.cli.connections.job_ref import InNamespace, Job, id_of
from noonmark.cli.terminal.options import AsJson
from noonmark.cli.terminal.output import field, printable, show_json, show_list
from noonmark.cli.terminal.problems import CliError

_COLUMNS = (field("version", numeric=True), field("replaced_at", "UNTIL"))


def versions(*, job: Job, namespace: InNamespace = None, as_json: AsJson = False) -> None:
    """List the versions of a job."""
    from noonmark.cli.connections.api import client  # noqa: PLC0415 - httpx takes a while to load

    with client(operator_settings()) as api:
        found = list(api.jobs.versions(id_of(api, job, namespace)))
    if as_json:
        show_json({"items": found})
    else:
        show_list(found, _COLUMNS)


def diff(
    *,
    job: Job,
    since: Annotated[
        int | None, typer.Option("--from", min=1, help="Older version. (default: the one before --to)")
    ] = None,
    until: Annotated[
        int | None, typer.Option("--to", min=1, help="Newer version. (default: the latest)")
    ] = None,
    namespace: InNamespace = None,
    as_json: AsJson = False,
) -> None:
    """Show the fields that differ between two versions of a job."""
    from noonmark.cli.connections.api import client  # noqa: PLC0415

    with client(operator_settings()) as api:
        job_id = id_of(api, job, namespace)
        old, new = _numbers(api.jobs.versions(job_id), since, until)
        found = api.jobs.diff(job_id, old, new)
    if as_json:
        show_json(found)
        return
    listed = found["changes"]
    for change in listed:
        print(printable(f"{change['pointer']}: {_value(change['before'])} -> {_value(change['after'])}"))
    if not listed:
        print(f"versions {old} and {new} are the same")


def _numbers(known: Sequence[Mapping[str, Any]], since: int | None, until: int | None) -> tuple[int, int]:
    """Return the versions to compare.

    Raises:
        CliError: no version precedes the newer one.
    """
    numbers = sorted(int(one["version"]) for one in known)
    new = until if until is not None else numbers[-1]
    old = since if since is not None else max((one for one in numbers if one < new), default=None)
    if old is None:
        raise CliError(f"version {new} is the first; no earlier version to compare")
    return old, new


def _value(value: object) -> str:
    return json.dumps(value, ensure_ascii=False)
