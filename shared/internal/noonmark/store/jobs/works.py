"""What runs of a job execute, and where: one kind of work, or one for each task of a workflow."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from collections.abc import Set as AbstractSet
from typing import NamedTuple

from noonmark.schemas.jobs.job import JobSpec


class Work(NamedTuple):
    """Work that a pool must be able to execute; `pointer` is where the document names it."""

    pointer: str
    pool: str
    kind: str
    handler: str | None


def works_of(spec: JobSpec) -> Iterator[Work]:
    """Yield the work of a job, or of each task of a workflow."""
    if spec.workflow is None:
        yield Work("", spec.pool, spec.kind, spec.handler)
        return
    for task in spec.workflow.tasks:
        yield Work(task.pointer, task.pool, task.kind, task.handler)


def pools_of(specs: Iterable[JobSpec]) -> AbstractSet[str]:
    """Return the pools that jobs name."""
    found: set[str] = set()
    for spec in specs:
        if spec.workflow is None:
            found.add(spec.pool)
        else:
            found.update(task.pool for task in spec.workflow.tasks)
    return found
