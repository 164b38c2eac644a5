"""The document of a workflow: the fields that it has, its tasks, and its form without payloads."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final, NamedTuple

import orjson

from noonmark.schemas.jobs.documents import OF_TASKS
from noonmark.schemas.jobs.documents import WORKFLOW as KIND
from noonmark.schemas.jobs.job import JobSpec
from noonmark.schemas.jobs.workflow import document_of_tasks

__all__ = [
    "KIND",
    "TASK_FIELDS",
    "StoredTask",
    "payloads_of",
    "tasks_of_spec",
    "without_payloads",
    "workflow_document",
]

TASK_FIELDS: Final = ("tasks", "finally")
"""Fields of a workflow's document that hold tasks by their keys."""


class StoredTask(NamedTuple):
    """A row of `workflow_tasks`, as documents need it.

    Attributes:
        key: name of the task.
        graph: the task as `noonmark.core.workflows.stored` describes it.
        document: the task as people see it.
    """

    key: str
    graph: Mapping[str, Any]
    document: Mapping[str, Any]


def workflow_document(document: Mapping[str, Any], tasks: Sequence[StoredTask] | None) -> dict[str, Any]:
    """Return the document of a workflow.

    Args:
        document: the document with the fields of every job.
        tasks: its tasks by number; None: leave them out, as listings do.
    """
    shown = {name: value for name, value in document.items() if name not in OF_TASKS}
    return shown if tasks is None else {**shown, **document_of_tasks(tasks)}


def tasks_of_spec(spec: JobSpec) -> list[StoredTask] | None:
    """Return the tasks of a checked workflow, as `workflow_document` takes them; None for another job."""
    if spec.workflow is None:
        return None
    return [
        StoredTask(task.key, orjson.loads(task.graph_json), orjson.loads(task.document_json))
        for task in spec.workflow.tasks
    ]


def without_payloads(document: Mapping[str, Any]) -> dict[str, Any]:
    """Return a document whose payload, or whose tasks' payloads, are null."""
    if document.get("type") != KIND:
        return {**document, "payload": None}
    hidden = {
        name: {key: {**task, "payload": None} for key, task in document[name].items()}
        for name in TASK_FIELDS
        if document.get(name)
    }
    return {**document, **hidden}


def payloads_of(document: Mapping[str, Any]) -> Any:
    """Return the payload of a document, or of a workflow's the payloads of its tasks by their keys."""
    if document.get("type") != KIND:
        return document.get("payload")
    return {
        key: task.get("payload") for name in TASK_FIELDS for key, task in (document.get(name) or {}).items()
    }
