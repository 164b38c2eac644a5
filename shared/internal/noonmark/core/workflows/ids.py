"""The keys of task runs: what `runs.request_id` holds for them, so that each exists at most once."""

from __future__ import annotations

import uuid
from typing import NamedTuple


class TaskKey(NamedTuple):
    """Which run of a workflow's tasks it is.

    Attributes:
        workflow_id: id of the workflow run.
        task_no: number of the task in the compiled workflow.
        map_index: index of the item; 0 for a task that is not mapped.
        generation: 1, and one more for each redrive or rerun.
    """

    workflow_id: uuid.UUID
    task_no: int
    map_index: int
    generation: int

    @property
    def text(self) -> str:
        """The form in `runs.request_id`."""
        return f"{self.workflow_id}/{self.task_no}/{self.map_index}/{self.generation}"

    @classmethod
    def parse(cls, text: str) -> TaskKey:
        """Read the form in `runs.request_id`.

        Raises:
            ValueError: it is not the key of a task run.
        """
        workflow_id, *numbers = text.split("/")
        task_no, map_index, generation = map(int, numbers)
        return cls(uuid.UUID(workflow_id), task_no, map_index, generation)
