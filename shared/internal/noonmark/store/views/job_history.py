"""The versions of a job, and the differences between two of them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final, NamedTuple
from uuid import UUID

from psycopg.rows import dict_row
from sqlalchemy import Connection

from noonmark.schemas.problems.refusal import pointer
from noonmark.store.database.statements import statement
from noonmark.store.documents.jobs import document_of
from noonmark.store.documents.workflows import KIND
from noonmark.store.views.pauses import driver_of, stored_schedules
from noonmark.store.views.workflow_tasks import stored_tasks

MOST_VERSIONS: Final = 200


class Version(NamedTuple):
    """A version of a job; `replaced_at` is None for the current one."""

    number: int
    namespace: str
    replaced_at: Any
    document: dict[str, Any]


def versions_of(connection: Connection, job_id: UUID, numbers: Sequence[int] | None = None) -> list[Version]:
    """Return the versions of a job, the newest first, at most `MOST_VERSIONS` of them.

    Of a workflow, only as many as have `MOST_TASKS` tasks together.

    Args:
        connection: a connection in a read-only transaction.
        job_id: id of the job.
        numbers: only these versions.
    """
    asked = {"job_id": job_id, "versions": None if numbers is None else list(numbers), "limit": MOST_VERSIONS}
    with driver_of(connection).cursor(row_factory=dict_row) as cursor:
        rows = cursor.execute(statement("list_job_versions"), asked).fetchall()
    schedules = stored_schedules(connection, [{**row, "id": UUID(int=row["version"])} for row in rows])
    workflows = [row["version"] for row in rows if row["kind"] == KIND]
    tasks = stored_tasks(driver_of(connection), job_id, workflows)
    return [
        Version(
            row["version"],
            row["namespace"],
            row["replaced_at"],
            document_of({**row, "tasks": tasks.get(row["version"])}, schedules.get(UUID(int=row["version"]))),
        )
        for row in rows
        if row["kind"] != KIND or row["version"] in tasks
    ]


def differences(before: object, after: object) -> list[tuple[str, Any, Any]]:
    """Return where two JSON values differ: pointer, old and new value. Lists are compared as a whole."""
    return [(pointer(path), old, new) for path, old, new in _differences(before, after, ())]


def _differences(
    before: object, after: object, path: tuple[str, ...]
) -> Iterator[tuple[tuple[str, ...], Any, Any]]:
    if isinstance(before, Mapping) and isinstance(after, Mapping):
        for name in dict.fromkeys((*before, *after)):
            yield from _differences(before.get(name), after.get(name), (*path, name))
    elif before != after or isinstance(before, bool) is not isinstance(after, bool):
        yield path, before, after
