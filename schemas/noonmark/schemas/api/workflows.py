"""Workflow runs in API responses: their tasks, and the graph."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Literal
from uuid import UUID

from pydantic import Field

from noonmark.core.states import RunState
from noonmark.core.workflows.definition import Rule
from noonmark.schemas.api.common import Answer

TaskStateName = Literal[
    "undecided",
    "waiting",
    "queued",
    "running",
    "retrying",
    "cancelling",
    "succeeded",
    "skipped",
    "cancelled",
    "unknown",
    "dead",
    "discarded",
]
"""State of a task without a run, or of a task's run: those of `RunState`."""

_STATE = "State of the task's run; `undecided`: the task has no run yet, because it waits for others."


class TaskSummary(Answer):
    """A task of a workflow run, with its newest run."""

    no: Annotated[int, Field(description="Number of the task: tasks that it depends on have lower ones.")]
    key: Annotated[str | None, Field(description="Name of the task; null: the job was deleted.")]
    type: Annotated[str | None, Field(description="Type of the task; null: the job was deleted.")]
    state: Annotated[TaskStateName, Field(description=_STATE)]
    reason: Annotated[
        str | None, Field(description="Why the run waits, was skipped, is dead, or was cancelled.")
    ]
    generation: Annotated[
        int | None,
        Field(description="Which time the workflow run had been opened when it created this run; from 1."),
    ]
    run_id: Annotated[UUID | None, Field(description="Id of the task's run.")]
    attempt: Annotated[int | None, Field(description="Attempts used of the task's retry budget.")]
    due_at: Annotated[datetime | None, Field(description="When the task became due, or was skipped.")]
    started_at: Annotated[datetime | None, Field(description="Start of the latest attempt.")]
    finished_at: datetime | None
    error: Annotated[str | None, Field(description="First 300 characters of the error.")]
    error_hidden: Annotated[
        bool, Field(description="True if the value is hidden (null): the credential lacks `payloads:read`.")
    ] = False


class GraphTask(Answer):
    """A task in the graph of a workflow run."""

    no: Annotated[int, Field(description="Number of the task: tasks that it depends on have lower ones.")]
    key: str
    type: str
    rule: Annotated[Rule, Field(description="When it runs, by how the tasks ended that it depends on.")]
    final: Annotated[bool, Field(description="It is one of `finally`: it waits for all other tasks.")]
    depends_on: Annotated[list[str], Field(description="Keys of the tasks that it depends on.")]
    conditions: Annotated[
        dict[str, bool | None],
        Field(
            description="Dependencies with a condition, and whether it holds; null: this is not known yet."
        ),
    ]
    state: Annotated[TaskStateName, Field(description=_STATE)]
    reason: str | None
    run_id: UUID | None
    due_at: datetime | None
    started_at: datetime | None
    finished_at: datetime | None


class WorkflowGraph(Answer):
    """The graph of a workflow run, with the states of its tasks."""

    run_id: UUID
    job_id: UUID
    job_version: int
    state: RunState
    generation: Annotated[
        int | None, Field(description="How often the run was opened; null: it is not open now.")
    ]
    states: Annotated[dict[str, int], Field(description="Number of tasks in each state.")]
    tasks: Annotated[list[GraphTask], Field(description="In the order of their numbers.")]
