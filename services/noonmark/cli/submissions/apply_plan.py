"""What an apply would change: declared documents against jobs as they are. No requests are made here."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, Final, NamedTuple

from noonmark.cli.submissions.apply_files import Problem, Source

SET_LABEL: Final = "noonmark.dev/applied-by"
"""Label of jobs that `job apply --set NAME` made or changed; its value is the name."""


class Missing:
    """Stands for a field that one side does not have."""

    def __repr__(self) -> str:
        return "(none)"


MISSING: Final = Missing()


class Action(StrEnum):
    """What is done with a job."""

    CREATED = "created"
    CHANGED = "changed"
    UNCHANGED = "unchanged"
    ENDED = "ended"


class Change(NamedTuple):
    """One field that differs.

    Attributes:
        field: names of the fields down to it, with dots between them.
    """

    field: str
    old: Any
    new: Any


@dataclass(frozen=True, slots=True)
class Step:
    """What is to be done with one job.

    Attributes:
        source: of the document; None of a job that is no longer declared.
        document: what is sent.
        job_id: of a job that there is.
        etag: of that job, as it was read.
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
    """Return the document of a file as it is sent: in its namespace, with the label of its set.

    Args:
        source: of the document.
        namespace: where the document names none; None: left to the server.
        set_name: of the set, if any.
    """
    document = dict(source.document)
    if document.get("namespace") is None and namespace is not None:
        document["namespace"] = namespace
    if set_name is not None:
        labels = document.get("labels")
        # What is no object is refused by whoever reads the document, with its own words.
        if labels is None or isinstance(labels, dict):
            document["labels"] = {**(labels or {}), SET_LABEL: set_name}
    return document


def unfit(source: Source) -> Problem | None:
    """Return why a document cannot be declared: it must be of a job that is found again."""
    document = source.document
    name = document.get("name")
    if not isinstance(name, str) or not name:
        return source.problem("", "has no name: declared jobs are known by namespace and name")
    if document.get("schedule") is None:
        return source.problem(
            "", "has no schedule: a one-time job is over once it ran; `noonmark job create` makes one"
        )
    return None


def doubles(steps: Sequence[Step]) -> Iterator[Problem]:
    """Yield a problem for each document of a job that an earlier one declares already."""
    first: dict[tuple[str, str], Source] = {}
    for step in steps:
        if step.source is None:
            continue
        earlier = first.setdefault((step.namespace, step.name), step.source)
        if earlier is not step.source:
            place = f"{earlier.file}:{earlier.line}"
            yield step.source.problem("/name", f"{step.name!r} is declared already in {place}")


def changes(old: Mapping[str, Any], new: Mapping[str, Any], prefix: str = "") -> Iterator[Change]:
    """Yield the fields in which two documents differ; objects are gone into, lists are compared whole."""
    for name in dict.fromkeys((*old, *new)):
        before, after = old.get(name, MISSING), new.get(name, MISSING)
        field = f"{prefix}{name}"
        if isinstance(before, dict) and isinstance(after, dict):
            yield from changes(before, after, f"{field}.")
        elif not _same(before, after):
            yield Change(field, before, after)


def _same(before: object, after: object) -> bool:
    """Compare JSON values: it has one kind of number, but true is none, at whatever depth."""
    if isinstance(before, list) and isinstance(after, list):
        return len(before) == len(after) and all(map(_same, before, after))
    if isinstance(before, dict) and isinstance(after, dict):
        return before.keys() == after.keys() and all(_same(before[name], after[name]) for name in before)
    return before == after and isinstance(before, bool) == isinstance(after, bool)
