"""Results of task runs, for conditions and for the result of a workflow run."""

from __future__ import annotations

import logging
from collections.abc import Iterable
from datetime import datetime
from typing import NamedTuple
from uuid import UUID

import orjson
import psycopg

from noonmark.core.workflows.conditions import NOTHING
from noonmark.core.workflows.ids import TaskKey
from noonmark.store.database.statements import statement

_log = logging.getLogger(__name__)


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


class NotReadError(Exception):
    """A result is needed that was not read ahead."""

    def __init__(self, instance: Instance, task: int) -> None:
        """Say which one."""
        super().__init__(f"task {task} of workflow run {instance.run_id}")
        self.instance = instance
        self.task = task


class Results:
    """Reads results and errors, those of all workflows of a pass in one statement, and keeps them for it."""

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
            self._known[key.workflow_id, key.task_no] = _Ended(_value(key, result), error)

    def of(self, instance: Instance, task: int) -> object:
        """Return the result of a task that has succeeded; `NOTHING` if it has none.

        Raises:
            NotReadError: read it ahead, and call again.
        """
        return self._of(instance, task).result

    def error_of(self, instance: Instance, task: int) -> str | None:
        """Return the error of a task that has failed.

        Raises:
            NotReadError: read it ahead, and call again.
        """
        return self._of(instance, task).error

    def _of(self, instance: Instance, task: int) -> _Ended:
        known = self._known.get((instance.run_id, task))
        if known is None:
            raise NotReadError(instance, task)
        return known


def _value(key: TaskKey, text: str | None) -> object:
    """Read a result. Postgres keeps JSON that no program can read: a pointer into that leads nowhere."""
    if text is None:
        return NOTHING
    try:
        return orjson.loads(text)
    except ValueError:
        _log.warning("the result of task %s of workflow run %s cannot be read", key.task_no, key.workflow_id)
        return NOTHING


def _age(row: tuple[TaskKey, str | None, str | None]) -> int:
    return row[0].generation
