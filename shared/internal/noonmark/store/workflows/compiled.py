"""The compiled tasks of workflows, read once for each version: a version never changes."""

from __future__ import annotations

import logging
from collections import OrderedDict
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final
from uuid import UUID

import orjson
import psycopg

from noonmark.core.workflows.compile import definition_of
from noonmark.core.workflows.definition import Definition
from noonmark.store.database.statements import statement

_log = logging.getLogger(__name__)

Version = tuple[UUID, int]
"""A job and its version."""

_MOST_TASKS: Final = 200_000
"""The most tasks that a process keeps, over all versions."""


@dataclass(frozen=True, slots=True)
class Compiled:
    """A version of a workflow, as its runs need it.

    Attributes:
        definition: its graph.
        lanes: of each task, by number.
        pools: of each task, by number.
        deadline_seconds: longest time from the instant of a run to its end.
    """

    definition: Definition
    lanes: Sequence[int]
    pools: Sequence[str]
    deadline_seconds: float | None


class CompiledVersions:
    """Cache of versions of workflows; the ones that were used last are kept. Not thread-safe."""

    def __init__(self, most_tasks: int = _MOST_TASKS) -> None:
        """Create an empty cache."""
        self._most_tasks = most_tasks
        self._known: OrderedDict[Version, Compiled] = OrderedDict()
        self._tasks = 0

    def read(
        self, connection: psycopg.Connection, versions: Collection[Version]
    ) -> Mapping[Version, Compiled]:
        """Return these versions; one without tasks, or that cannot be read, is left out."""
        missing = [version for version in set(versions) if version not in self._known]
        if missing:
            self._keep(_read(connection, missing))
        found = {}
        for version in versions:
            if (compiled := self._known.get(version)) is not None:
                self._known.move_to_end(version)
                found[version] = compiled
        self._drop()
        return found

    def _keep(self, read: Mapping[Version, Compiled]) -> None:
        self._known.update(read)
        self._tasks += sum(len(each.lanes) for each in read.values())

    def _drop(self) -> None:
        while self._tasks > self._most_tasks and len(self._known) > 1:
            _, dropped = self._known.popitem(last=False)
            self._tasks -= len(dropped.lanes)


def _read(connection: psycopg.Connection, versions: Collection[Version]) -> dict[Version, Compiled]:
    rows = connection.execute(
        statement("read_workflow_tasks"),
        {"job_ids": [job_id for job_id, _ in versions], "versions": [version for _, version in versions]},
    ).fetchall()
    found = {}
    for *version, tasks, deadline in rows:
        try:
            found[version[0], version[1]] = _compiled(tasks, deadline)
        except Exception:  # noqa: BLE001 - whatever is wrong with one version, the others are read
            _log.exception("version %s of workflow %s cannot be read", version[1], version[0])
    return found


def _compiled(tasks: str, deadline: str | None) -> Compiled:
    rows: list[tuple[int, str, int, str, Any]] = orjson.loads(tasks)
    if [row[0] for row in rows] != list(range(len(rows))):
        raise ValueError("a task is missing")
    return Compiled(
        definition_of([(row[1], row[4]) for row in rows]),
        [row[2] for row in rows],
        [row[3] for row in rows],
        None if deadline is None or deadline == "null" else float(deadline),
    )
