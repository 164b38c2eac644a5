"""Reads the tasks of a workflow's document into the form that the store saves: checked, with all defaults."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final

import msgspec
import orjson
from pydantic import ValidationError

from noonmark.core.schedules.kinds import plain_number
from noonmark.core.states import DeliverySemantics, Lane
from noonmark.core.workflows import KEY_PATTERN
from noonmark.core.workflows.compile import (
    MOST_TASKS,
    ResultPlace,
    TaskSource,
    compile_tasks,
    graph_of,
)
from noonmark.core.workflows.definition import Definition, ResultSource, Task
from noonmark.core.workflows.problems import InvalidWorkflowError
from noonmark.schemas.jobs.retry import retry_document
from noonmark.schemas.jobs.task_documents import KEY_RULE, ResultDocument
from noonmark.schemas.jobs.task_reader import CheckedTask, TaskReader, defaults_in, field_error_of
from noonmark.schemas.jobs.work import DEFAULT_TIMEOUT_SECONDS, work_text
from noonmark.schemas.problems.pydantic_errors import field_errors
from noonmark.schemas.problems.refusal import MAX_ERRORS, FieldError, kind_of, pointer, shown
from noonmark.schemas.problems.suggestions import suggestion

MAX_WORKFLOW_BYTES: Final = 2 * 1024 * 1024
"""Most bytes of the payloads and dependencies of all tasks as JSON."""

_KEY: Final = re.compile(KEY_PATTERN, re.ASCII)
_SECTIONS: Final = ("tasks", "finally")


class TaskSpec(msgspec.Struct, frozen=True, gc=False):
    """A checked task, as the store saves it.

    Attributes:
        key: its name in the workflow.
        kind: its type.
        handler: registered name of the Python handler; None for other kinds.
        lane: of its runs.
        pool: of its runs.
        work_json: what workers read, as JSON text of the form of `jobs.work`.
        graph_json: what decides whether and when it runs, as JSON text; see `core.workflows.stored`.
        document_json: its document with all defaults filled in, as JSON text.
        pointer: JSON pointer to it in the document of the workflow.
    """

    key: str
    kind: str
    handler: str | None
    lane: Lane
    pool: str
    work_json: str
    graph_json: str
    document_json: str
    pointer: str


class WorkflowSpec(msgspec.Struct, frozen=True, gc=False):
    """The checked tasks of a workflow.

    Attributes:
        tasks: by number; parents come before their children, those of `finally` last.
        result: what the result of a run is; None: it has none.
        digest: of all that is stored of them, in hexadecimal.
        timeout_seconds: the longest timeout of a task.
    """

    tasks: tuple[TaskSpec, ...]
    result: ResultSource | None
    digest: str
    timeout_seconds: float


def workflow_in(
    data: Mapping[str, Any], lane: Lane | None, payload_limit: int, problems: list[FieldError]
) -> WorkflowSpec | None:
    """Read the tasks of a workflow's document; None if they are invalid.

    Args:
        data: the document of the job.
        lane: of the job, if its document has a valid priority.
        payload_limit: most bytes of a task's payload as JSON.
        problems: what is wrong is appended, with pointers relative to the document.
    """
    before = len(problems)
    found = list(_tasks_in(data, problems))
    all_found = len(problems) == before
    reader = TaskReader(defaults_in(data.get("defaults"), lane, problems), payload_limit, problems)
    result = _result_in(data.get("result"), problems)
    checked: dict[str, CheckedTask] = {}
    sources: list[TaskSource] = []
    for section, key, raw in found:
        if len(problems) > MAX_ERRORS:
            return None
        task = reader.check(section, key, raw)
        if task is not None:
            checked[key] = task
        deadline = None if task is None else task.document.start_deadline_seconds
        sources.append(reader.source(section, key, raw, deadline))
    if not all_found:
        return None
    try:
        definition = compile_tasks(sources, result, suggest=suggestion)
    except InvalidWorkflowError as error:
        problems += map(field_error_of, error.problems)
        return None
    return None if len(problems) > before else _spec(definition, checked, problems)


def document_of_tasks(rows: Iterable[tuple[str, Mapping[str, Any], Any]]) -> dict[str, Any]:
    """Return the fields of a workflow's document that follow from its stored tasks.

    Args:
        rows: key, graph and document of each task, by number.
    """
    document: dict[str, Any] = {"tasks": {}, "finally": {}, "result": None}
    for key, graph, task in rows:
        document["finally" if graph.get("final") else "tasks"][key] = task
        if "result_at" in graph:
            document["result"] = {"result": key, "at": graph["result_at"]}
    return document


def _tasks_in(
    data: Mapping[str, Any], problems: list[FieldError]
) -> Iterator[tuple[str, str, Mapping[str, Any]]]:
    """Yield the field, the key and the document of each task that is an object."""
    tasks = data.get("tasks")
    if tasks is None or tasks == {}:
        what = "is missing" if tasks is None else "is empty"
        problems.append(FieldError("/tasks", what, f"an object with 1 to {MOST_TASKS} tasks by their keys"))
    if _size(data) > MOST_TASKS:
        problems.append(FieldError("/tasks", f"has {_size(data)} tasks", f"at most {MOST_TASKS}"))
        return
    for section in _SECTIONS:
        found = data.get(section)
        if found is None:
            continue
        if not isinstance(found, dict):
            problems.append(
                FieldError(f"/{section}", f"is {kind_of(found)}", "an object of tasks by their keys")
            )
            continue
        for key, raw in found.items():
            at = pointer((section, key))
            if not _KEY.fullmatch(key):
                problems.append(
                    FieldError(at, f"the name {shown(key)} has a form that is not allowed", KEY_RULE)
                )
            elif not isinstance(raw, dict):
                problems.append(FieldError(at, f"is {kind_of(raw)}", "a task: an object with type"))
            else:
                yield section, key, raw


def _size(data: Mapping[str, Any]) -> int:
    return sum(len(found) for section in _SECTIONS if isinstance(found := data.get(section), dict))


def _result_in(value: object, problems: list[FieldError]) -> ResultPlace | None:
    if value is None:
        return None
    if not isinstance(value, dict):
        problems.append(FieldError("/result", f"is {kind_of(value)}", "an object with result and at"))
        return None
    try:
        document = ResultDocument.model_validate(value)
    except ValidationError as error:
        problems += field_errors(error, ResultDocument, ("result",), value)
        return None
    return ResultPlace(document.result, document.at)


def _spec(
    definition: Definition, checked: Mapping[str, CheckedTask], problems: list[FieldError]
) -> WorkflowSpec | None:
    digest = hashlib.blake2b(digest_size=16)
    specs: list[TaskSpec] = []
    size = 0
    for task, graph in zip(definition.tasks, graph_of(definition), strict=True):
        own = checked[task.key]
        document = _document(task, own, definition)
        digest.update(orjson.dumps([task.key, graph, document], option=orjson.OPT_SORT_KEYS))
        graph_json = orjson.dumps(graph).decode()
        size += len(own.payload_json) + len(graph_json)
        specs.append(_task_spec(task, own, graph_json, orjson.dumps(document).decode()))
    if size > MAX_WORKFLOW_BYTES:
        expected = f"at most {MAX_WORKFLOW_BYTES} bytes; keep larger data elsewhere and pass references"
        problems.append(FieldError("/tasks", f"has {size} bytes of payloads and dependencies", expected))
        return None
    longest = max(_timeout(checked[task.key]) for task in definition.tasks)
    return WorkflowSpec(tuple(specs), definition.result, digest.hexdigest(), longest)


def _task_spec(task: Task, own: CheckedTask, graph_json: str, document_json: str) -> TaskSpec:
    document = own.document
    delivery = DeliverySemantics(document.delivery)
    return TaskSpec(
        task.key,
        document.type,
        document.handler,
        document.priority,
        document.pool,
        work_text(own.payload_json, _timeout(own), own.retry, delivery),
        graph_json,
        document_json,
        f"/{'finally' if task.is_final else 'tasks'}/{task.key}",
    )


def _timeout(own: CheckedTask) -> float:
    return own.document.timeout_seconds or DEFAULT_TIMEOUT_SECONDS[own.document.type]


def _document(task: Task, own: CheckedTask, definition: Definition) -> dict[str, Any]:
    """Return the document of a task with all defaults filled in; it reads back to the same task."""
    document = own.document
    deadline = document.start_deadline_seconds
    written = {
        "type": document.type,
        "handler": document.handler,
        "payload": orjson.loads(own.payload_json),
        "depends_on": [
            definition.tasks[edge.parent].key
            if edge.condition is None
            else {"task": definition.tasks[edge.parent].key, "if": edge.condition.stored}
            for edge in task.edges
        ],
        "rule": task.rule.value,
        "when": task.when.stored if task.when is not None else None,
        "may_fail": task.may_fail,
        "handles": [definition.tasks[no].key for no in task.handles],
        "retry": {name: one for name, one in retry_document(own.retry).items() if one is not None},
        "timeout_seconds": plain_number(_timeout(own)),
        "priority": document.priority.label,
        "pool": document.pool,
        "delivery": document.delivery,
        "start_deadline_seconds": None if deadline is None else plain_number(deadline),
    }
    return {name: one for name, one in written.items() if one is not None or name == "payload"}
