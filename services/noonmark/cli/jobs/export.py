"""`noonmark job export`: write jobs to files that `noonmark job apply` takes unchanged."""

from __future__ import annotations

import os
import re
import shlex
import sys
from collections.abc import Iterator, Mapping, Sequence
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final

import typer

from noonmark.cli.connections.context import operator_settings
from noonmark.cli.connections.job_ref import namespace_of, read_job
from noonmark.cli.jobs.edit import document_in
from noonmark.cli.jobs.selection import JobSelection
from noonmark.cli.terminal.options import AsJson, Labels, NamePattern, OneNamespace
from noonmark.cli.terminal.output import counted, printable, show_json
from noonmark.cli.terminal.problems import CliError, ExitCode, cannot_write

if TYPE_CHECKING:
    from noonmark.client import Client

_AT_ONCE: Final = 4
"""Jobs read concurrently: most of the time is spent waiting for answers."""

_NOT_IN_NAMES: Final = re.compile(r"[^A-Za-z0-9._-]+")
_LONGEST_NAME: Final = 100
_CALENDAR_OPTIONS: Final = {
    "dates": "--date",
    "ranges": "--range",
    "weekdays": "--weekday",
    "yearly": "--yearly",
}


class ExportedState(StrEnum):
    """States of jobs that can be exported: `apply` would create a cancelled job again."""

    ACTIVE = "active"
    PAUSED = "paused"
    COMPLETED = "completed"
    BROKEN = "broken"


_BY_DEFAULT: Final = (ExportedState.ACTIVE, ExportedState.PAUSED)


def export(
    *,
    file: Annotated[
        Path | None, typer.Option("--file", "-f", help="Write all jobs to this file. (default: to stdout)")
    ] = None,
    folder: Annotated[
        Path | None, typer.Option("--folder", help="Write one file for each job to this folder.")
    ] = None,
    label: Labels = None,
    name: NamePattern = None,
    state: Annotated[
        list[ExportedState] | None,
        typer.Option(help="Only jobs in this state; repeatable. (default: active and paused)"),
    ] = None,
    namespace: OneNamespace = None,
    force: Annotated[
        bool, typer.Option("--force", help="Replace existing files, and write to a folder that is not empty.")
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Write the recurring jobs of a namespace as YAML that `noonmark job apply` takes unchanged.

    Comments name the calendars, limits and pools that the jobs use, with the commands that create them.
    One-time jobs are not exported: applying them would run them again.
    """
    if file is not None and folder is not None:
        raise CliError("give --file or --folder, not both", ExitCode.USAGE)
    if as_json and (file is not None or folder is not None):
        raise CliError("--json prints the documents; --file and --folder write YAML", ExitCode.USAGE)
    states = tuple(one.value for one in state or _BY_DEFAULT)
    selection = JobSelection.make(namespace, label, name, states, recurring=True)
    from noonmark.cli.connections.api import client  # noqa: PLC0415 - httpx takes a while to load

    with client(operator_settings()) as api:
        jobs = _read(api, selection)
        documents = [_document(job) for job in jobs]
        if as_json:
            show_json({"items": documents})
            return
        place = namespace_of(api, namespace)
        if not jobs:
            raise CliError(
                f"no {' or '.join(states)} recurring jobs found in namespace {place} with these filters;"
                " run `noonmark job list`"
            )
        used = _used(api, namespace, documents)
    texts = [_text(job, document) for job, document in zip(jobs, documents, strict=True)]
    if folder is not None:
        _write_folder(folder, _named(jobs, texts), _head(place, len(jobs), used), force=force)
        print(
            f"{counted(len(jobs), 'job')} exported to {folder}; `noonmark job apply -f {folder}` applies them"
        )
        return
    whole = _head(place, len(jobs), used) + "".join(texts)
    if file is None:
        sys.stdout.write(whole)
        return
    _write(file, whole, force=force)
    print(f"{counted(len(jobs), 'job')} exported to {file}; `noonmark job apply -f {file}` applies them")


def _read(api: Client, selection: JobSelection) -> list[Mapping[str, Any]]:
    """Return the selected jobs with their payloads, by name."""
    from concurrent.futures import ThreadPoolExecutor  # noqa: PLC0415 - for this command only

    ids = [str(job["id"]) for job in selection.read(api)]
    with ThreadPoolExecutor(_AT_ONCE) as pool:
        return list(pool.map(lambda job_id: read_job(api, job_id).data, ids))


def _document(job: Mapping[str, Any]) -> dict[str, Any]:
    """Return the document to apply: an idempotency key is used only once, on creation."""
    document = document_in(job)
    document.pop("idempotency_key", None)
    return document


def _text(job: Mapping[str, Any], document: Mapping[str, Any]) -> str:
    """Return a document as YAML, with a comment about what a document does not contain."""
    from noonmark.cli.terminal.yaml_text import dump  # noqa: PLC0415 - takes a while to load

    text = dump([document])
    if job["state"] == "active":
        return text
    note = f"# This job is {job['state']}; a document does not contain the state."
    return text.replace("---\n", f"---\n{note}\n", 1)


def _head(namespace: str, count: int, used: Sequence[str]) -> str:
    lines = [
        f"Exported by `noonmark job export` from namespace {namespace}: {counted(count, 'job')}.",
        "One-time jobs are not included. Apply with `noonmark job apply -f`.",
    ]
    if used:
        lines += ["The jobs use the following, which must exist before you apply them elsewhere:", *used]
    return "".join(f"# {printable(line)}\n" for line in lines)


def _used(api: Client, namespace: str | None, documents: Sequence[Mapping[str, Any]]) -> list[str]:
    """Return the commands that create what documents refer to: pools, calendars, limits."""
    pools = {pool for document in documents for pool in _pools(document)} - {"default"}
    calendars = {name for document in documents for name in _calendars(document.get("schedule"))}
    limits = {
        one["name"] if isinstance(one, dict) else one
        for document in documents
        for one in document.get("limits") or ()
    }
    # Nothing is read unless a job needs it: a key may be restricted to jobs.
    commands = [f"noonmark pool create {shlex.quote(name)}" for name in sorted(pools)]
    if calendars:
        commands += [
            _calendar_command(row)
            for row in api.calendars.list(namespace=namespace)
            if row["name"] in calendars
        ]
    if limits:
        commands += [
            _limit_command(row) for row in api.limits.list(namespace=namespace) if row["name"] in limits
        ]
    return commands


def _pools(document: Mapping[str, Any]) -> Iterator[str]:
    """Yield the pool of a job, or those of the tasks of a workflow."""
    tasks = [*(document.get("tasks") or {}).values(), *(document.get("finally") or {}).values()]
    for one in tasks or [document]:
        yield str(one["pool"])


def _calendars(schedule: Mapping[str, Any] | None) -> Iterator[str]:
    """Yield the names of the calendars of a schedule."""
    for names in ((schedule or {}).get("calendars") or {}).values():
        yield from [names] if isinstance(names, str) else names or ()


def _calendar_command(row: Mapping[str, Any]) -> str:
    days = [
        f"{option} {_day_text(day)}"
        for key, option in _CALENDAR_OPTIONS.items()
        for day in row.get(key) or ()
    ]
    return " ".join(["noonmark calendar set", shlex.quote(row["name"]), *days])


def _day_text(day: str | Mapping[str, str]) -> str:
    return day if isinstance(day, str) else f"{day['first']}..{day['last']}"


def _limit_command(row: Mapping[str, Any]) -> str:
    options = [f"--max-running {row['max_running']}"] if row["max_running"] is not None else []
    if row["rate_count"] is not None:
        options.append(f"--rate {row['rate_count']}/{row['rate_seconds']:g}s")
    if row["burst"] is not None:
        options.append(f"--burst {row['burst']}")
    return " ".join(["noonmark limit set", shlex.quote(row["name"]), *options])


def _named(jobs: Sequence[Mapping[str, Any]], texts: Sequence[str]) -> dict[str, str]:
    """Return the text of each job by its file name; names that differ only in case get a number."""
    files: dict[str, str] = {}
    taken: set[str] = set()
    for job, text in zip(jobs, texts, strict=True):
        stem = _NOT_IN_NAMES.sub("-", job["name"])[:_LONGEST_NAME].strip(".-") or "job"
        name, number = stem, 1
        while name.lower() in taken:
            number += 1
            name = f"{stem}-{number}"
        taken.add(name.lower())
        files[f"{name}.yaml"] = text
    return files


def _write_folder(folder: Path, files: Mapping[str, str], head: str, *, force: bool) -> None:
    """Write the files; the head is in the first.

    Raises:
        CliError: the folder is not empty, or cannot be written.
    """
    try:
        folder.mkdir(parents=True, exist_ok=True)
        others = sorted(path.name for path in folder.iterdir() if path.name not in files)
        if not force and any(folder.iterdir()):
            raise CliError(
                f"folder {folder} is not empty; pass --force to write to it anyway", ExitCode.USAGE
            )
    except OSError as error:
        raise cannot_write(folder, error) from error
    for number, (name, text) in enumerate(files.items()):
        _write(folder / name, text if number else head + text, force=force)
    if others:
        print(f"not from this export: {', '.join(others[:10])} in {folder}", file=sys.stderr)


def _write(path: Path, text: str, *, force: bool) -> None:
    """Write a file that only the owner can read: payloads may be confidential.

    Raises:
        CliError: it exists, or cannot be written.
    """
    if path.is_dir():
        raise CliError(
            f"{path} is a folder; write one file for each job to it with --folder {path}", ExitCode.USAGE
        )
    try:
        flags = os.O_WRONLY | os.O_CREAT | (os.O_TRUNC if force else os.O_EXCL)
        with os.fdopen(os.open(path, flags, 0o600), "w", encoding="utf-8") as file:
            file.write(text)
    except FileExistsError as error:
        raise CliError(f"{path} exists; pass --force to replace it", ExitCode.USAGE) from error
    except OSError as error:
        raise cannot_write(path, error) from error
