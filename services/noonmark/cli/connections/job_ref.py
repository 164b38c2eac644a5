"""Find the job that a command names: by its id or the beginning of it, or by the name of a recurring job."""

from __future__ import annotations

from collections.abc import Mapping
from difflib import get_close_matches
from typing import TYPE_CHECKING, Annotated, Any
from uuid import UUID

import typer

from noonmark.cli.connections.api_pages import MISSING, or_missing
from noonmark.cli.connections.ids import LEAST, completed, is_prefix, is_short_prefix
from noonmark.cli.terminal.options import as_uuid
from noonmark.cli.terminal.output import printable
from noonmark.cli.terminal.problems import CliError

if TYPE_CHECKING:
    from noonmark.client import Client
    from noonmark.client.answers import Answer

Job = Annotated[
    str,
    typer.Argument(
        metavar="ID|NAME", help="Id of the job (at least its first 8 characters), or name of a recurring job."
    ),
]
InNamespace = Annotated[
    str | None,
    typer.Option("--namespace", help="Namespace of a named job. (default: that of the context or key)"),
]
_MOST_NAMED = 5
_LIVE = ("active", "paused", "completed", "broken")


def find_named(client: Client, name: str, namespace: str | None) -> Mapping[str, Any] | None:
    """Return the recurring job with this name as it is listed; None if all such jobs are cancelled."""
    # Pages may be empty and followed by others: one-time jobs may have the same name.
    found = client.jobs.list(namespace=namespace, name=name, recurring=True, state=_LIVE, limit=200)
    return next(iter(found), None)


def id_of(client: Client, job: str, namespace: str | None) -> str:
    """Return the id of the job.

    Raises:
        CliError: no recurring job has this name.
    """
    if as_uuid(job) is not None:
        return job
    found = find_named(client, job, namespace)
    if found is None and is_prefix(job) and (completed_id := completed(client, job, "job")) is not None:
        return str(completed_id)
    if found is None:
        raise CliError(
            f"recurring {_absent(client, job, namespace)}; run `noonmark job list`, or give the id of a"
            " one-time job"
        )
    return str(found["id"])


def any_id_of(client: Client, job: str, namespace: str | None) -> str:
    """Return the id of the job; a one-time job can also be named if no other job has its name.

    Raises:
        CliError: no job has this name, or several one-time jobs do.
    """
    if as_uuid(job) is not None:
        return job
    if (recurring := find_named(client, job, namespace)) is not None:
        return str(recurring["id"])
    found = list(client.jobs.list(name=job, namespace=namespace, limit=_MOST_NAMED).page().items)
    if not found and is_prefix(job) and (completed_id := completed(client, job, "job")) is not None:
        return str(completed_id)
    if not found:
        raise CliError(f"{_absent(client, job, namespace)}; run `noonmark job list`")
    living = [one for one in found if one["state"] != "cancelled"] or found[:1]
    if len(living) > 1:
        ids = ", ".join(str(one["id"]) for one in living)
        raise CliError(f"several jobs have the name {job!r}; give the id of one ({ids})")
    return str(living[0]["id"])


def home_of(client: Client, job_id: UUID | None) -> str | None:
    """Return the namespace of a job; None without a job, or if it no longer exists."""
    from noonmark.client import ApiError  # noqa: PLC0415 - httpx takes a while to load

    if job_id is None:
        return None
    try:
        return client.jobs.get(job_id)["namespace"]
    except ApiError as error:
        if error.status != MISSING:
            raise
        return None


def require_job(client: Client, job: UUID | str | None, namespace: str | None) -> None:
    """Check that a job exists, for listings that would otherwise just be empty.

    Raises:
        CliError: no job has this id, or this name in the namespace.
    """
    if job is None:
        return
    reference = str(job)
    if as_uuid(reference) is not None:
        with or_missing(missing_job(client, reference, None)):
            client.jobs.get(reference)
    elif not client.jobs.list(name=reference, namespace=namespace, limit=1).page().items:
        raise CliError(f"{_absent(client, reference, namespace)}; run `noonmark job list`")


def missing_job(client: Client, job: str, namespace: str | None) -> str:
    """Return the message for a job that does not exist; for a name, with the namespace if it is known."""
    where = _where(client, namespace) if as_uuid(job) is None else ""
    return f"job {job!r} does not exist{where}; run `noonmark job list`"


def namespace_of(client: Client, named: str | None) -> str:
    """Return the namespace that requests use, for messages about what is not in it."""
    if known := named or client.namespace:
        return known
    grants = client.keys.me()["grants"]
    return next(iter(grants)) if len(grants) == 1 and "*" not in grants else "default"


def read_job(client: Client, job_id: str) -> Answer:
    """Read a job with its ETag."""
    return client.request("GET", f"/v1/jobs/{job_id}")


def _absent(client: Client, name: str, namespace: str | None) -> str:
    """Return that no job has a name, and what may be meant by it."""
    return f"job {name!r} does not exist{_where(client, namespace)}{_meant(client, name, namespace)}"


def _where(client: Client, namespace: str | None) -> str:
    searched = namespace or client.namespace
    return f" in namespace {searched}" if searched else ""


def _meant(client: Client, name: str, namespace: str | None) -> str:
    """Return what may be meant by a name that no job has: a similar one, or an id that is given too short.

    One page of the namespace's recurring jobs is compared, the newest: a hint must not take long.
    """
    if is_short_prefix(name):
        return f" (to give a job by its id, write at least its first {LEAST} characters)"
    from noonmark.client import ApiError  # noqa: PLC0415 - httpx takes a while to load

    try:
        listed = client.jobs.list(namespace=namespace, recurring=True, state=_LIVE, limit=200).page().items
    except ApiError:  # what the hint needs is not what the command needs
        return ""
    by_fold = {str(job["name"]).casefold(): str(job["name"]) for job in listed if job["name"]}
    near = get_close_matches(name.casefold(), by_fold, n=1)
    return f" (did you mean {printable(by_fold[near[0]])!r}?)" if near else ""
