"""Reads the tasks of a workflow one by one: fields as those of a job, dependencies, conditions."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from pydantic import ValidationError

from noonmark.core.retry import RetryPolicy
from noonmark.core.states import Lane
from noonmark.core.workflows import KEY_PATTERN
from noonmark.core.workflows.compile import Parent, TaskSource
from noonmark.core.workflows.conditions import Condition, parse_condition
from noonmark.core.workflows.definition import Rule
from noonmark.core.workflows.problems import InvalidWorkflowError, Problem
from noonmark.schemas.jobs.retry import check_retry, retry_of
from noonmark.schemas.jobs.retry_rules import REPLACED_BY_DELAYS, SHORT_FORMS
from noonmark.schemas.jobs.task_documents import TaskDefaults, TaskDocument
from noonmark.schemas.jobs.work import check_kind, encode_payload
from noonmark.schemas.problems.pydantic_errors import NOT_AVAILABLE, field_errors
from noonmark.schemas.problems.refusal import FieldError, kind_of, pointer, printable

_KEY: Final = re.compile(KEY_PATTERN, re.ASCII)
_RULES: Final = frozenset(Rule)
_NULLABLE: Final = frozenset({"timeout_seconds", "start_deadline_seconds"})
"""Fields with defaults in which null means "not given"."""

_RETRY_FIELDS: Final = frozenset({"retry", *SHORT_FORMS})
_RUN_FIELDS: Final = frozenset({"scheduled_for", "previous_instant", "previous_success", "id", "generation"})
_REFERENCES: Final = (b'"result":', b'"run":', b'"input":', b'"item":', b'"index":', b'"literal":')


@dataclass(frozen=True, slots=True)
class Defaults:
    """The checked `defaults` of a workflow.

    Attributes:
        fields: those that tasks take as they are.
        retry: fields of `retry`; a task's own take precedence one by one.
    """

    fields: Mapping[str, Any] = field(default_factory=dict)
    retry: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class CheckedTask:
    """A task that has no problems by itself."""

    document: TaskDocument
    payload_json: bytes
    retry: RetryPolicy


def defaults_in(value: object, lane: Lane | None, problems: list[FieldError]) -> Defaults:
    """Read the `defaults` of a workflow, none if they are invalid.

    Args:
        value: as the document has it; None if it is not given.
        lane: of the workflow, if its document has a priority: tasks have it, too.
        problems: what is wrong is appended.
    """
    given: dict[str, Any] = {} if lane is None else {"priority": lane.label}
    if value is None:
        return Defaults(given)
    if not isinstance(value, dict):
        problems.append(FieldError("/defaults", f"is {kind_of(value)}", "an object with fields of tasks"))
        return Defaults(given)
    own: list[FieldError] = []
    check_retry(value, own)
    problems_of_fields: list[FieldError] = []
    try:
        retry_of(TaskDefaults.model_validate(value), own)
    except ValidationError as error:
        problems_of_fields = field_errors(error, TaskDefaults, ("defaults",), value)
    problems += _placed(own, "/defaults")
    problems += problems_of_fields
    if own or problems_of_fields:
        return Defaults(given)
    given |= {name: one for name, one in value.items() if one is not None and name not in _RETRY_FIELDS}
    return Defaults(given, _full_retry(value))


class TaskReader:
    """Reads the tasks of one workflow. Problems are collected in `problems`."""

    def __init__(self, defaults: Defaults, payload_limit: int, problems: list[FieldError]) -> None:
        """Create a reader; `payload_limit` is the most bytes of a task's payload as JSON."""
        self._defaults = defaults
        self._payload_limit = payload_limit
        self._problems = problems

    def check(self, section: str, key: str, raw: Mapping[str, Any]) -> CheckedTask | None:
        """Check what a task does; None if its fields are invalid.

        Args:
            section: the field of the workflow's document that has the task.
            key: of the task.
            raw: the task as the document has it.
        """
        fields = self._defaults.fields
        given = {name: one for name, one in raw.items() if one is not None or name not in _NULLABLE}
        merged = {**fields, **given}
        own: list[FieldError] = []
        document = None
        try:
            document = TaskDocument.model_validate(merged)
        except ValidationError as error:
            self._problems += field_errors(error, TaskDocument, (section, key), merged)
        check_kind(merged, own)
        check_retry(raw, own)
        payload = encode_payload(merged, self._payload_limit, own)
        if not own and any(name in payload for name in _REFERENCES):
            own += _references(raw.get("payload"), ["payload"])
        retry = self._retry(document, raw, own) if document is not None and not own else None
        self._problems += _placed(own, f"/{section}/{key}")
        return None if document is None or retry is None or own else CheckedTask(document, payload, retry)

    def source(
        self, section: str, key: str, raw: Mapping[str, Any], start_deadline_seconds: float | None
    ) -> TaskSource:
        """Read what decides whether and when a task runs; what is no task key or rule is left out."""
        place = f"/{section}/{key}"
        rule, handles = raw.get("rule"), raw.get("handles")
        return TaskSource(
            key,
            place,
            list(self._parents(place, raw.get("depends_on"))),
            Rule(rule) if isinstance(rule, str) and rule in _RULES else Rule.ALL_SUCCEEDED,
            self._condition(raw.get("when"), f"{place}/when", of_edge=False),
            raw.get("may_fail") is True,
            handles if isinstance(handles, list) and all(map(_is_key, handles)) else (),
            section == "finally",
            start_deadline_seconds,
        )

    def _retry(
        self, document: TaskDocument, raw: Mapping[str, Any], problems: list[FieldError]
    ) -> RetryPolicy:
        if not self._defaults.retry:
            return retry_of(document, problems)
        own = _full_retry(raw)
        defaults = dict(self._defaults.retry)
        for name in REPLACED_BY_DELAYS if "delays" in own else ():
            defaults.pop(name, None)
        if any(name in own for name in REPLACED_BY_DELAYS):
            defaults.pop("delays", None)
        merged = {"retry": {**defaults, **own}, "delivery": document.delivery}
        return retry_of(TaskDefaults.model_validate(merged), problems)

    def _parents(self, place: str, items: object) -> Iterator[Parent]:
        for index, item in enumerate(items if isinstance(items, list) else ()):
            if isinstance(item, dict):
                at = f"{place}/depends_on/{index}/if"
                condition = self._condition(item.get("if"), at, of_edge=True)
                if _is_key(item.get("task")):
                    yield Parent(item["task"], condition, "/task", index)
            elif _is_key(item):
                yield Parent(item, None, "", index)

    def _condition(self, value: object, at: str, *, of_edge: bool) -> Condition | None:
        if value is None:
            return None
        try:
            return parse_condition(value, at, of_edge=of_edge)
        except InvalidWorkflowError as error:
            self._problems += map(field_error_of, error.problems)
            return None


def field_error_of(problem: Problem) -> FieldError:
    """Return a problem that the core found; names of unknown fields can have any length and characters."""
    return FieldError(pointer_text(problem.pointer), printable(problem.message), problem.expected)


def pointer_text(text: str) -> str:
    """Return a JSON pointer in a form that can be stored and sent; see `refusal.pointer`."""
    parts = [part.replace("~1", "/").replace("~0", "~") for part in text.split("/")[1:]]
    return pointer(parts)


def _is_key(value: object) -> bool:
    return isinstance(value, str) and _KEY.fullmatch(value) is not None


def _placed(problems: list[FieldError], place: str) -> Iterator[FieldError]:
    return (FieldError(place + one.pointer, one.message, one.expected) for one in problems)


def _full_retry(raw: Mapping[str, Any]) -> dict[str, Any]:
    """Return the retry fields of a task or of defaults in the names of `retry`."""
    full = {name: one for name, one in (raw.get("retry") or {}).items() if one is not None}
    return full | {ours: raw[short] for short, ours in SHORT_FORMS.items() if short in raw}


def _references(value: object, path: list[str | int]) -> list[FieldError]:
    """Find objects that a later version reads as references to other values."""
    if isinstance(value, dict):
        if _is_reference(value):
            message = f"is a reference, which {NOT_AVAILABLE}"
            return [FieldError(pointer(path), message, "a literal value")]
        return [found for name, one in value.items() for found in _references(one, [*path, name])]
    if isinstance(value, list):
        return [found for index, one in enumerate(value) for found in _references(one, [*path, index])]
    return []


def _is_reference(value: Mapping[str, Any]) -> bool:
    names = value.keys() - {"default"}
    if "result" in names:
        return names == {"result", "at"} and _is_key(value["result"]) and _is_place(value["at"])
    if len(names) != 1:
        return False
    (name,) = names
    one = value[name]
    return (
        (name == "run" and isinstance(one, str) and one in _RUN_FIELDS)
        or (name in {"input", "item"} and _is_place(one))
        or (name == "index" and one is True)
        or (name == "literal" and isinstance(one, dict))
    )


def _is_place(value: object) -> bool:
    return isinstance(value, str) and (not value or value.startswith("/"))
