"""Workflow runs in API responses: their tasks, and the graph.

Generated from `noonmark.schemas.api.workflows` by `noonmark.schemas.client_types`; do not edit it by hand.
"""

from __future__ import annotations

from typing import Literal, TypedDict


class TaskSummary(TypedDict):
    """A task of a workflow run, with its newest run."""

    no: int
    """Number of the task: tasks that it depends on have lower ones."""

    key: str | None
    """Name of the task; null: the job was deleted."""

    type: str | None
    """Type of the task; null: the job was deleted."""

    state: Literal[
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
    """State of the task's run; `undecided`: the task has no run yet, because it waits for others."""

    reason: str | None
    """Why the run waits, was skipped, is dead, or was cancelled."""

    generation: int | None
    """Which time the workflow run had been opened when it created this run; from 1."""

    run_id: str | None
    """Id of the task's run."""

    attempt: int | None
    """Attempts used of the task's retry budget."""

    due_at: str | None
    """When the task became due, or was skipped."""

    started_at: str | None
    """Start of the latest attempt."""

    finished_at: str | None

    error: str | None
    """First 300 characters of the error."""

    error_hidden: bool
    """True if the value is hidden (null): the credential lacks `payloads:read`."""


class GraphTask(TypedDict):
    """A task in the graph of a workflow run."""

    no: int
    """Number of the task: tasks that it depends on have lower ones."""

    key: str

    type: str

    rule: Literal["all_succeeded", "none_failed", "all_done", "one_succeeded", "one_failed"]
    """When it runs, by how the tasks ended that it depends on."""

    final: bool
    """It is one of `finally`: it waits for all other tasks."""

    depends_on: list[str]
    """Keys of the tasks that it depends on."""

    conditions: dict[str, bool | None]
    """Dependencies with a condition, and whether it holds; null: this is not known yet."""

    state: Literal[
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
    """State of the task's run; `undecided`: the task has no run yet, because it waits for others."""

    reason: str | None

    run_id: str | None

    due_at: str | None

    started_at: str | None

    finished_at: str | None


class WorkflowGraph(TypedDict):
    """The graph of a workflow run, with the states of its tasks."""

    run_id: str

    job_id: str

    job_version: int

    state: Literal[
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

    generation: int | None
    """How often the run was opened; null: it is not open now."""

    states: dict[str, int]
    """Number of tasks in each state."""

    tasks: list[GraphTask]
    """In the order of their numbers."""
