"""Which job a command means, asked of the API: by its id, or by the name of a recurring one."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Annotated, Any
from uuid import UUID

import typer

from noonmark.cli.options import as_uuid
from noonmark.cli.problems import CliError

if TYPE_CHECKING:
    from noonmark.client import Client
    from noonmark.client.answers import Answer

Job = Annotated[str, typer.Argument(metavar="ID|NAME", help="Id of the job, or the name of a recurring one.")]
InNamespace = Annotated[
    str | None,
    typer.Option("--namespace", help="Namespace of a job that is named; else that of the context or key."),
]
_LIVE = ("active", "paused", "completed", "broken")


def find_named(client: Client, name: str, namespace: str | None) -> Mapping[str, Any] | None:
    """Return the recurring job of a name, as it is listed; None where there is none that has not ended."""
    # Pages may be empty and followed by others: one-time jobs may have the same name.
    found = client.jobs.list(namespace=namespace, name=name, recurring=True, state=_LIVE, limit=200)
    return next(iter(found), None)


def id_of(client: Client, job: str, namespace: str | None) -> str:
    """Return the id of the job that is meant.

    Raises:
        CliError: a recurring job of this name is not there.
    """
    if as_uuid(job) is not None:
        return job
    found = find_named(client, job, namespace)
    if found is None:
        place = namespace or client.namespace
        where = f" in namespace {place}" if place else ""
        raise CliError(
            f"there is no recurring job {job!r}{where}: `noonmark job list` shows those there are; one-time"
            " jobs are named by their id"
        )
    return str(found["id"])


def home_of(client: Client, job_id: UUID | None) -> str | None:
    """Return the namespace of a job; None where it is gone, or none is meant."""
    from noonmark.client import ApiError  # noqa: PLC0415 - httpx takes a while to load

    if job_id is None:
        return None
    try:
        return client.jobs.get(job_id)["namespace"]
    except ApiError as error:
        if error.status != 404:
            raise
        return None


def require_job(client: Client, job: UUID | str | None, namespace: str | None) -> None:
    """Tell a job that has nothing to list from one that is not there.

    Raises:
        CliError: no job has this id, or this name in the namespace.
    """
    if job is None:
        return
    job_id = job if isinstance(job, UUID) else as_uuid(job)
    if job_id is not None:
        there = home_of(client, job_id) is not None
    else:
        listed = client.jobs.list(namespace=namespace, name=str(job), limit=200)
        there = next(iter(listed), None) is not None
    if not there:
        raise CliError(f"there is no job {str(job)!r}: `noonmark job list` shows those there are")


def namespace_of(client: Client, named: str | None) -> str:
    """Return the namespace that requests mean, for sentences about what is not in it."""
    if place := named or client.namespace:
        return place
    grants = client.keys.me()["grants"]
    return next(iter(grants)) if len(grants) == 1 and "*" not in grants else "default"


def read_job(client: Client, job_id: str) -> Answer:
    """Read a job with its ETag."""
    return client.request("GET", f"/v1/jobs/{job_id}")
