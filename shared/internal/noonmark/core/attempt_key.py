"""What identifies an attempt in memory: its run and the fence that the run was started under."""

from __future__ import annotations

from typing import TypeAlias
from uuid import UUID

AttemptKey: TypeAlias = tuple[int, int]
"""The run's id as a number, and the fence. A UUID is hashed and compared in Python code, a number is not:
an attempt is looked up a dozen times.
"""


def attempt_key(run_id: UUID, fence: int) -> AttemptKey:
    """Return the key of the attempt of a run under a fence."""
    return run_id.int, fence
