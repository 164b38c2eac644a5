"""Ids of task runs: they follow from the workflow run, so that its rows are found without an index."""

from __future__ import annotations

import hashlib
import uuid
from typing import Final, NamedTuple

_TIME: Final = ((1 << 48) - 1) << 80
_FIXED: Final = (0x8 << 76) | (0b10 << 62)
"""Version 8 and variant (RFC 9562 section 5.8): all other bits are ours."""

_FREE: Final = ((1 << 12) - 1) << 64 | (1 << 62) - 1


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


def task_run_id(key: TaskKey) -> uuid.UUID:
    """Return the id of a task run: the time of its workflow run's id, then a digest of the key.

    The runs of a workflow are together in the ledger's primary key, as runs that are created together are.
    """
    numbers = f"{key.task_no}/{key.map_index}/{key.generation}".encode()
    digest = hashlib.blake2b(numbers, key=key.workflow_id.bytes, digest_size=16).digest()
    return uuid.UUID(int=(key.workflow_id.int & _TIME) | _FIXED | (int.from_bytes(digest, "big") & _FREE))
