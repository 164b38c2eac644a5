"""Builds the document of a workflow from typed handles of its tasks.

    flow = Workflow("nightly-sales", schedule="30 2 * * *")
    extract = flow.task("extract", python="sales.extract")
    orders = flow.task("orders", python="sales.load_orders", depends_on=[extract.when(at="/rows", gt=0)])
    flow.result(extract, at="/rows")
    noonmark.jobs.create(flow.document())

Names of tasks and conditions are checked where they are written; the rest is checked like any document.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from copy import deepcopy
from dataclasses import dataclass, field
from typing import Any, Final, Literal, TypedDict, TypeVar, Unpack

from noonmark.core.kinds.json_values import pointer_path
from noonmark.core.workflows import KEY_PATTERN
from noonmark.core.workflows.conditions import parse_condition
from noonmark.core.workflows.problems import InvalidWorkflowError

Condition = Mapping[str, Any]
"""A condition as in a document; docs/job-document.md lists its forms."""

RuleName = Literal["all_succeeded", "none_failed", "all_done", "one_succeeded", "one_failed"]
Verdict = Literal["succeeded", "failed", "skipped"]

_T = TypeVar("_T")

_KEY: Final = re.compile(KEY_PATTERN, re.ASCII)
_KEY_RULE: Final = "use 1 to 63 of a-z, 0-9, '-' and '_', the first a letter"
_WITH_PAYLOAD: Final = ("http", "grpc", "script", "kafka")
_TYPES: Final = ("python", *_WITH_PAYLOAD)
_MADE_HERE: Final = ("type", "tasks", "finally", "result")


class Comparison(TypedDict, total=False):
    """How a value is compared: exactly one of these. Types are not converted."""

    eq: Any
    ne: Any
    lt: float | str
    le: float | str
    gt: float | str
    ge: float | str
    in_: Sequence[Any]
    exists: bool


class TaskFields(TypedDict, total=False):
    """Fields of a task: one of `python`, `http`, `grpc`, `script` and `kafka`, and any others.

    Attributes:
        python: name of a registered handler; `payload` is what it receives.
        http: payload of a task of this type; the same for `grpc`, `script` and `kafka`.
        depends_on: tasks that this one waits for, or `task.when(…)` for a condition on the result.
    """

    python: str
    http: Mapping[str, Any]
    grpc: Mapping[str, Any]
    script: Mapping[str, Any]
    kafka: Mapping[str, Any]
    payload: Any
    depends_on: Sequence[TaskHandle | Dependency]
    rule: RuleName
    when: Condition
    may_fail: bool
    handles: Sequence[TaskHandle]
    max_retries: int
    retry_delay_seconds: float
    retry: Mapping[str, Any]
    timeout_seconds: float | None
    priority: str | int
    pool: str
    delivery: Literal["at_least_once", "at_most_once", "exactly_once"]
    start_deadline_seconds: float | None


@dataclass(frozen=True, slots=True)
class TaskHandle:
    """A task of a workflow, as `Workflow.task` returns it: what other tasks depend on."""

    key: str
    flow: Workflow = field(repr=False)

    def when(
        self, condition: Condition | None = None, *, at: str = "", **test: Unpack[Comparison]
    ) -> Dependency:
        """Return a dependency on this task with a condition on its result.

        If the condition does not hold, this task counts as skipped for the one that depends on it.

        Args:
            condition: instead of a comparison, any condition; comparisons in it can leave out `result`.
            at: JSON pointer into the result; empty: the whole result.
            test: one of `eq`, `ne`, `lt`, `le`, `gt`, `ge`, `in_` and `exists`.

        Raises:
            ValueError: it is not a condition.
        """
        if condition is not None and (at or test):
            raise ValueError(f"dependency on {self.key!r}: pass a condition or a comparison, not both")
        given = _comparison(at, test) if condition is None else dict(condition)
        _check(given, f"dependency on {self.key!r}", self.flow, of_edge=True)
        return Dependency(self, given)

    def result(self, *, at: str = "", **test: Unpack[Comparison]) -> dict[str, Any]:
        """Return a condition on this task's result, for `when` of a task or within another condition.

        Raises:
            ValueError: it is not a condition.
        """
        made = {"result": self.key, **_comparison(at, test)}
        _check(made, f"condition on {self.key!r}", self.flow)
        return made

    def verdict(self, *verdicts: Verdict) -> dict[str, Any]:
        """Return a condition that holds if this task ended in one of these ways.

        Raises:
            ValueError: none is given, or one does not exist.
        """
        made = {"verdict": self.key, "in": list(verdicts)}
        _check(made, f"condition on {self.key!r}", self.flow)
        return made


@dataclass(frozen=True, slots=True)
class Dependency:
    """A task that is depended on, with a condition on its result."""

    task: TaskHandle
    condition: Condition


class Workflow:
    """A workflow under construction. `document` returns its job document.

    Args:
        name: of the job; recurring jobs need one.
        defaults: values of fields that tasks do not set themselves.
        fields: the other fields of the job document, such as `schedule`, `overlap` or `deadline_seconds`.

    Raises:
        ValueError: `fields` has one that methods of this class make.
    """

    def __init__(
        self, name: str | None = None, *, defaults: Mapping[str, Any] | None = None, **fields: Any
    ) -> None:
        if made := [one for one in _MADE_HERE if one in fields]:
            raise ValueError(f"the builder makes {', '.join(made)}: use task, finally_task and result")
        named = {} if name is None else {"name": name}
        given = {} if defaults is None else {"defaults": dict(defaults)}
        self.name: str | None = name
        self._fields: dict[str, Any] = deepcopy({**named, "type": "workflow", **fields, **given})
        self._tasks: dict[str, dict[str, Any]] = {}
        self._finally: dict[str, dict[str, Any]] = {}
        self._result: dict[str, str] | None = None

    def task(self, key: str, **fields: Unpack[TaskFields]) -> TaskHandle:
        """Add a task.

        Args:
            key: its name in the workflow; runs, redrives and history identify it by this.
            fields: what it does and when it runs.

        Raises:
            ValueError: the key is not valid or is used twice, or a field refers to a task that it cannot.
            TypeError: a field does not exist, or it has no type or several.
        """
        return self._add(self._tasks, key, fields)

    def finally_task(self, key: str, **fields: Unpack[TaskFields]) -> TaskHandle:
        """Add a task that runs when all others have ended, also after a failure or a cancel.

        Raises:
            ValueError: as `task` does.
            TypeError: as `task` does.
        """
        return self._add(self._finally, key, fields)

    def result(self, task: TaskHandle, *, at: str = "") -> None:
        """Set what the result of a run is: the value at a JSON pointer in the result of a task.

        Raises:
            ValueError: the task is of another workflow, `at` is not a pointer, or the result was set before.
        """
        if self._result is not None:
            raise ValueError(f"the result is set already: it is that of {self._result['result']!r}")
        self._check_own("result", task)
        try:
            pointer_path(at)
        except ValueError as error:
            raise ValueError(f"result: {at!r} is not a JSON pointer: {error}") from None
        self._result = {"result": task.key, "at": at} if at else {"result": task.key}

    def document(self) -> dict[str, Any]:
        """Return the job document, a new one with each call; submit it like that of any job.

        Raises:
            ValueError: there is no task.
        """
        if not self._tasks:
            raise ValueError("the workflow has no tasks: add one with task")
        made: dict[str, Any] = {**self._fields, "tasks": self._tasks}
        if self._finally:
            made["finally"] = self._finally
        if self._result is not None:
            made["result"] = self._result
        return deepcopy(made)

    def owns(self, key: str) -> bool:
        """Whether the workflow has a task with this key, so far."""
        return key in self._tasks or key in self._finally

    def _add(self, section: dict[str, dict[str, Any]], key: str, fields: TaskFields) -> TaskHandle:
        if not isinstance(key, str) or not _KEY.fullmatch(key):
            raise ValueError(f"{key!r} is not the key of a task: {_KEY_RULE}")
        if self.owns(key):
            raise ValueError(f"the workflow has a task {key!r} already")
        known = TaskFields.__annotations__
        if unknown := [name for name in fields if name not in known]:
            raise TypeError(f"task {key!r}: no such field: {', '.join(unknown)}")
        made = self._made(key, fields)
        if section is self._tasks:
            self._refuse_finally(key, made)
        section[key] = deepcopy(made)
        return TaskHandle(key, self)

    def _made(self, key: str, fields: TaskFields) -> dict[str, Any]:
        made = _work(key, fields)
        if depends_on := fields.get("depends_on"):
            made["depends_on"] = self._edges(key, depends_on)
        if (when := fields.get("when")) is not None:
            made["when"] = dict(when)
            _check(made["when"], f"task {key!r}: when", self)
        if handles := fields.get("handles"):
            self._check_own(f"task {key!r}: handles", *_listed(key, "handles", handles))
            made["handles"] = [one.key for one in handles]
        done = {*_TYPES, "payload", "depends_on", "when", "handles"}
        return made | {name: one for name, one in fields.items() if name not in done}

    def _edges(self, key: str, depends_on: Sequence[TaskHandle | Dependency]) -> list[Any]:
        edges: list[Any] = []
        seen: set[str] = set()
        where = f"task {key!r}: depends_on"
        for one in _listed(key, "depends_on", depends_on):
            task = one.task if isinstance(one, Dependency) else one
            self._check_own(where, task)
            if task.key in seen:
                raise ValueError(f"{where} has {task.key!r} twice")
            seen.add(task.key)
            if isinstance(one, Dependency):
                edges.append({"task": task.key, "if": dict(one.condition)})
            else:
                edges.append(task.key)
        return edges

    def _check_own(self, where: str, *tasks: object) -> None:
        for task in tasks:
            if not isinstance(task, TaskHandle):
                raise TypeError(f"{where}: {task!r} is not a task; pass what task or finally_task returned")
            if task.flow is not self:
                raise ValueError(f"{where}: {task.key!r} is a task of another workflow ({task.flow.name})")

    def _refuse_finally(self, key: str, made: Mapping[str, Any]) -> None:
        for edge in made.get("depends_on", ()):
            parent = edge if isinstance(edge, str) else edge["task"]
            if parent in self._finally:
                raise ValueError(
                    f"task {key!r}: depends_on has {parent!r}, a finally task, which runs after all tasks"
                )


def _listed(key: str, name: str, value: Sequence[_T]) -> Sequence[_T]:
    if not isinstance(value, list | tuple):
        raise TypeError(f"task {key!r}: {name} is not a list of tasks")
    return value


def _work(key: str, fields: TaskFields) -> dict[str, Any]:
    """Return what a task does: type, handler, payload."""
    given: Mapping[str, Any] = {**fields}
    types = [name for name in _TYPES if name in given]
    if len(types) != 1:
        found = "has none" if not types else f"has {' and '.join(types)}"
        raise TypeError(f"task {key!r} needs one of {', '.join(_TYPES)}; it {found}")
    (kind,) = types
    if kind in _WITH_PAYLOAD:
        if "payload" in given:
            raise TypeError(f"task {key!r}: {kind} is its payload; leave out payload")
        return {"type": kind, "payload": dict(given[kind])}
    made = {"type": kind, "handler": given[kind]}
    return {**made, "payload": given["payload"]} if "payload" in given else made


def _comparison(at: str, test: Mapping[str, Any]) -> dict[str, Any]:
    made: dict[str, Any] = {"at": at} if at else {}
    for name, operand in test.items():
        if name == "in_":
            made["in"] = list(operand)
        else:
            made[name] = operand
    return made


def _check(condition: Mapping[str, Any], where: str, flow: Workflow, *, of_edge: bool = False) -> None:
    """Refuse what is not a condition, or one that names tasks that the workflow does not have."""
    try:
        found = parse_condition(condition, of_edge=of_edge)
    except InvalidWorkflowError as error:
        problems = [f"{one.pointer} {one.message}; expected {one.expected}".strip() for one in error.problems]
        raise ValueError(f"{where}: {'; '.join(problems)}") from None
    if unknown := sorted(key for key in found.reads | found.verdicts if not flow.owns(key)):
        raise ValueError(f"{where} names {', '.join(map(repr, unknown))}, which the workflow does not have")
