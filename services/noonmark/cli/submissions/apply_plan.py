"""Compare declared documents with jobs. This module makes no requests."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, Final, NamedTuple

from noonmark.cli.submissions.apply_files import Problem, Source

SET_LABEL: Final = "noonmark.dev/applied-by"
"""Label of jobs of `job apply --set NAME`; its value is the name."""


class Missing:
    """Marks a field that one side does not have."""

    def __repr__(self) -> str:
        return "(none)"


MISSING: Final = Missing()


class Action(StrEnum):
    """Action for a job."""

    CREATED = "created"
    CHANGED = "changed"
    UNCHANGED = "unchanged"
    ENDED = "ended"


class Change(NamedTuple):
    """One field that differs.

    Attributes:
        field: path of field names, separated by dots.
    """

    field: str
    old: Any
    new: Any


@dataclass(frozen=True, slots=True)
class Step:
    """Planned action for one job.

    Attributes:
        source: source of the document; None for a job that is no longer declared.
        document: the document to send.
        job_id: id of an existing job.
        etag: its ETag when it was read.
    """

    action: Action
    namespace: str
    name: str
    source: Source | None = None
    document: Mapping[str, Any] | None = None
    job_id: str | None = None
    etag: str | None = None
    changes: tuple[Change, ...] = ()


def declared(source: Source, namespace: str | None, set_name: str | None) -> dict[str, Any]:
    """Return the document to send: with its namespace and the label of its set.

    Args:
        source: source of the document.
        namespace: namespace of a document that names none; None leaves it to the server.
        set_name: name of the set, if any.
    """
    document = dict(source.document)
    if document.get("namespace") is None and namespace is not None:
        document["namespace"] = namespace
    if set_name is not None:
        labels = document.get("labels")
        # The server rejects a document that is not an object, with its own message.
        if labels is None or isinstance(labels, dict):
            document["labels"] = {**(labels or {}), SET_LABEL: set_name}
    return document


def unfit(source: Source) -> Problem | None:
    """Return why a document cannot be declared: the next apply must find its job again."""
    document = source.document
    name = document.get("name")
    if (not name or document.get("schedule") is None) and (unknown := _unknown_field(source)) is not None:
        return unknown
    if not isinstance(name, str) or not name:
        return source.problem("", "has no name: declared jobs are identified by namespace and name")
    if document.get("schedule") is None:
        return source.problem(
            "", "has no schedule: only recurring jobs can be declared; use `noonmark job create`"
        )
    return None


def _unknown_field(source: Source) -> Problem | None:
    """Return the problem of the first field that no job document has and for which another may be meant."""
    from noonmark.schemas.jobs.job import JobDocument  # noqa: PLC0415 - loads pydantic
    from noonmark.schemas.problems.pydantic_errors import unknown_field  # noqa: PLC0415
    from noonmark.schemas.problems.suggestions import meant  # noqa: PLC0415

    known = JobDocument.model_fields
    for field in map(str, source.document):
        if field not in known and meant(field, known, JobDocument.synonyms):
            problem = unknown_field(field, JobDocument, (field,))
            return source.problem(problem.pointer, problem.message)
    return None


def doubles(steps: Sequence[Step]) -> Iterator[Problem]:
    """Yield a problem for each document of a job that an earlier document declares."""
    first: dict[tuple[str, str], Source] = {}
    for step in steps:
        if step.source is None:
            continue
        earlier = first.setdefault((step.namespace, step.name), step.source)
        if earlier is not step.source:
            position = f"{earlier.file}:{earlier.line}"
            yield step.source.problem("/name", f"{step.name!r} is already declared in {position}")


def changes(old: Mapping[str, Any], new: Mapping[str, Any], prefix: str = "") -> Iterator[Change]:
    """Yield the fields that differ; objects are compared field by field, lists as a whole."""
    for name in dict.fromkeys((*old, *new)):
        before, after = old.get(name, MISSING), new.get(name, MISSING)
        field = f"{prefix}{name}"
        if isinstance(before, dict) and isinstance(after, dict):
            yield from changes(before, after, f"{field}.")
        elif not _same(before, after):
            yield Change(field, before, after)


def _same(before: object, after: object) -> bool:
    """Compare JSON values at any depth: 1 equals 1.0, but true does not equal 1."""
    if isinstance(before, list) and isinstance(after, list):
        return len(before) == len(after) and all(map(_same, before, after))
    if isinstance(before, dict) and isinstance(after, dict):
        return before.keys() == after.keys() and all(_same(before[name], after[name]) for name in before)
    return before == after and isinstance(before, bool) == isinstance(after, bool)
