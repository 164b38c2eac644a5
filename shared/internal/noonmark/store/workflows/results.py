"""Results of task runs, for conditions and for the result of a workflow run."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime
from typing import NamedTuple
from uuid import UUID

import orjson
import psycopg

from noonmark.core.workflows.conditions import NOTHING
from noonmark.core.workflows.ids import TaskKey
from noonmark.store.database.statements import statement


class Instance(NamedTuple):
    """A workflow run whose results are read, and its generation."""

    run_id: UUID
    job_id: UUID
    scheduled_for: datetime
    generation: int


class _Ended(NamedTuple):
    """What the ended run of a task has left."""

    result: object = NOTHING
    error: str | None = None


class Results:
    """Reads results and errors, many at a time if they are known to be needed, and keeps them for a pass."""

    def __init__(self, connection: psycopg.Connection) -> None:
        """Create an empty cache; the connection is that of the pass."""
        self._connection = connection
        self._known: dict[tuple[UUID, int], _Ended] = {}

    def read_ahead(self, wanted: Iterable[tuple[Instance, int]]) -> None:
        """Read the results of tasks that a pass will need, in one statement."""
        missing = {(one.run_id, task): one for one, task in wanted if (one.run_id, task) not in self._known}
        if not missing:
            return
        # A task that a redrive kept has its result in an earlier generation; the newest counts.
        keys = [
            (one, TaskKey(one.run_id, task, 0, generation))
            for (_, task), one in missing.items()
            for generation in range(1, one.generation + 1)
        ]
        rows = self._connection.execute(
            statement("read_task_results"),
            {
                "job_ids": [one.job_id for one, _ in keys],
                "scheduled_for": [one.scheduled_for for one, _ in keys],
                "keys": [key.text for _, key in keys],
            },
        ).fetchall()
        self._known.update(dict.fromkeys(missing, _Ended()))
        for key, result, error in sorted(((TaskKey.parse(row[0]), *row[1:]) for row in rows), key=_age):
            value = NOTHING if result is None else orjson.loads(result)
            self._known[key.workflow_id, key.task_no] = _Ended(value, error)

    def of(self, instance: Instance, task: int) -> object:
        """Return the result of a task that has succeeded; `NOTHING` if it has none."""
        return self._of(instance, task).result

    def error_of(self, instance: Instance, task: int) -> str | None:
        """Return the error of a task that has failed."""
        return self._of(instance, task).error

    def _of(self, instance: Instance, task: int) -> _Ended:
        if (instance.run_id, task) not in self._known:
            self.read_ahead([(instance, task)])
        return self._known[instance.run_id, task]


def _age(row: tuple[TaskKey, str | None, str | None]) -> int:
    return row[0].generation
