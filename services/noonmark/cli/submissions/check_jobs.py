"""`noonmark job check`: check files of jobs offline, and show the tasks of workflows."""

from __future__ import annotations

import copy
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Annotated, Any, Final

import typer

from noonmark.cli.terminal.options import AsJson
from noonmark.cli.terminal.output import Column, counted, printable, shortened, show_json, show_list, verdict
from noonmark.cli.terminal.output import field as field_column
from noonmark.cli.terminal.problems import ExitCode

if TYPE_CHECKING:
    from noonmark.cli.submissions.apply_files import Problem, Source
    from noonmark.core.workflows.definition import Definition
    from noonmark.schemas.jobs.job import JobSpec

_NOTE: Final = (
    "checked offline: calendars, limits, pools and handlers are not checked, nor names that are in use"
)
_MOST_NAMED: Final = 4
"""How many dependencies of a task a line names."""

_LONGEST_PATH: Final = 20
"""How many tasks of a path are shown."""

_FIRST_DAY: Final = datetime(1970, 1, 1, tzinfo=UTC)


@dataclass(frozen=True, slots=True)
class CheckedJob:
    """A valid document.

    Attributes:
        source: where it is.
        spec: the checked job.
        definition: the graph of a workflow; None for other jobs.
        path: keys of the tasks on a longest path.
    """

    source: Source
    spec: JobSpec
    definition: Definition | None = None
    path: Sequence[str] = field(default_factory=list)


_COLUMNS = (
    field_column("no", "#", numeric=True),
    field_column("task", key=True),
    field_column("type"),
    field_column("rule", wide=True, varies=True),
    Column("AFTER", lambda row: shortened(row["after"], 200), elastic=True, key=True),
)


def check(
    files: Annotated[
        list[str],
        typer.Argument(
            metavar="FILE|FOLDER|-...",
            help="Files or folders (recursive) with job documents, YAML or JSON; `-` reads standard input.",
        ),
    ],
    as_json: AsJson = False,
) -> None:
    """Check job documents offline, and show the tasks of workflows.

    The check is that of the server, without what only an installation knows. Every problem is shown with its
    line and field; exits 1 if there are any.
    """
    from noonmark.cli.submissions.apply_files import read_sources  # noqa: PLC0415 - not needed to show help
    from noonmark.cli.submissions.apply_problems import in_order, messages  # noqa: PLC0415

    sources, problems = read_sources(files)
    valid: list[CheckedJob] = []
    for source in sources:
        found = check_source(source)
        if isinstance(found, CheckedJob):
            valid.append(found)
        else:
            problems += found
    problems = in_order(problems)
    if as_json:
        show_json({"items": [_shown(one) for one in valid], "problems": [one._asdict() for one in problems]})
    else:
        for one in valid:
            _show(one)
        for line in messages(problems):
            print(printable(line))
        print(f"{counted(len(sources), 'document')} checked: {verdict(len(problems))}; {_NOTE}")
    if problems:
        raise typer.Exit(ExitCode.PROBLEM)


def check_source(source: Source) -> CheckedJob | list[Problem]:
    """Check a document as the server does; return all its problems if it has any."""
    from noonmark.core.workflows.layers import longest_path  # noqa: PLC0415 - not needed to show help
    from noonmark.core.workflows.stored import definition_of  # noqa: PLC0415
    from noonmark.schemas.jobs.job import parse_job  # noqa: PLC0415
    from noonmark.schemas.problems.refusal import Refused  # noqa: PLC0415

    try:
        spec = parse_job(_without_calendars(source.document), now=datetime.now(UTC), ledger_floor=_FIRST_DAY)
    except Refused as refused:
        return [
            source.problem(
                one.pointer, f"{one.message}; expected {one.expected}" if one.expected else one.message
            )
            for one in refused.errors
        ]
    if spec.workflow is None:
        return CheckedJob(source, spec)
    definition = definition_of([(task.key, json.loads(task.graph_json)) for task in spec.workflow.tasks])
    path = [definition.tasks[no].key for no in longest_path(definition)]
    return CheckedJob(source, spec, definition, path)


def _without_calendars(document: Mapping[str, Any]) -> dict[str, Any]:
    """Return a document without its schedule's calendars, whose days only an installation knows."""
    schedule = document.get("schedule")
    if not isinstance(schedule, dict) or not isinstance(schedule.get("calendars"), dict):
        return dict(document)
    plain = copy.deepcopy(dict(document))
    del plain["schedule"]["calendars"]
    return plain


def _show(checked: CheckedJob) -> None:
    position = f"{checked.source.file}:{checked.source.line}"
    name = checked.spec.name or "the document"
    if checked.definition is None:
        print(printable(f"{position}: {name} is a valid {checked.spec.kind} job"))
        return
    definition = checked.definition
    edges = _edges(definition)
    tasks = counted(len(definition.tasks), "task")
    dependencies = f"{edges:,} {'dependency' if edges == 1 else 'dependencies'}"
    print(printable(f"{position}: {name} is a valid workflow: {tasks}, {dependencies}"))
    print(f"longest path, {counted(len(checked.path), 'task')}: {_path(checked.path)}")
    show_list(list(_rows(checked)), _COLUMNS)


def _path(keys: Sequence[str]) -> str:
    if len(keys) <= _LONGEST_PATH:
        return " → ".join(keys)
    head, tail = keys[: _LONGEST_PATH - 1], keys[-1]
    return f"{' → '.join(head)} → … → {tail}"


def _rows(checked: CheckedJob) -> Iterator[dict[str, Any]]:
    assert checked.definition is not None
    assert checked.spec.workflow is not None
    tasks = checked.definition.tasks
    for task, spec in zip(tasks, checked.spec.workflow.tasks, strict=True):
        names = [
            f"{tasks[edge.parent].key} (if)" if edge.condition is not None else tasks[edge.parent].key
            for edge in task.edges[:_MOST_NAMED]
        ]
        more = len(task.edges) - _MOST_NAMED
        after = ", ".join(names) + (f" and {more} more" if more > 0 else "")
        yield {
            "no": task.no,
            "task": task.key,
            "type": spec.kind,
            "rule": task.rule.value,
            "after": after or ("all others" if task.is_final else None),
        }


def _shown(checked: CheckedJob) -> dict[str, Any]:
    """Return a valid document for scripts."""
    spec, definition = checked.spec, checked.definition
    shown: dict[str, Any] = {
        "file": checked.source.file,
        "line": checked.source.line,
        "name": spec.name,
        "type": spec.kind,
    }
    if definition is None:
        return shown
    return shown | {
        "tasks": [task.key for task in definition.tasks],
        "dependencies": _edges(definition),
        "longest_path": list(checked.path),
    }


def _edges(definition: Definition) -> int:
    return sum(len(task.edges) for task in definition.tasks)
