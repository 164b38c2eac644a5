"""The steps of `noonmark job apply`: compare documents with jobs, show the changes, make them."""

from __future__ import annotations

import json
import os
import re
import sys
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any, Final

import typer

from noonmark.cli.connections.context import operator_settings
from noonmark.cli.connections.job_ref import find_named, read_job
from noonmark.cli.submissions.apply_files import Problem, Source
from noonmark.cli.submissions.apply_plan import (
    MISSING,
    SET_LABEL,
    Action,
    Change,
    Step,
    changes,
    declared,
    doubles,
    unfit,
)
from noonmark.cli.submissions.apply_problems import in_order, messages
from noonmark.cli.terminal.bulk_requests import agree, may_ask, progress
from noonmark.cli.terminal.output import counted, is_terminal, printable, show_json
from noonmark.cli.terminal.problems import CliError, ExitCode, explain

if TYPE_CHECKING:
    from noonmark.client import Client

_SET_NAME: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._/-]{0,99}")
_AT_ONCE: Final = 4
"""Documents compared concurrently: most of the time is spent waiting for answers."""

_SOON_DONE: Final = 20
"""Show no progress up to this number of jobs."""

_REFUSALS: Final = frozenset({400, 409, 413, 422})
_COLORS: Final = {
    Action.CREATED: ("+", "green"),
    Action.CHANGED: ("~", "yellow"),
    Action.ENDED: ("-", "red"),
    Action.UNCHANGED: ("=", None),
}


def apply_documents(
    documents: Mapping[int, Mapping[str, Any]],
    *,
    file: str,
    set_name: str | None,
    dry_run: bool,
    report: dict[str, Any] | None,
) -> None:
    """Apply documents that another command produced.

    Args:
        documents: documents of recurring jobs by line number.
        file: their file, for messages.
        set_name: name of the set, if any.
        dry_run: change nothing.
        report: printed as JSON together with the applied changes; None prints text.
    """
    sources = [Source(file, line, document) for line, document in documents.items()]
    apply_sources(
        sources,
        [],
        set_name=set_name,
        prune=False,
        namespace=None,
        dry_run=dry_run,
        yes=True,
        as_json=report is not None,
        report=report,
    )


def apply_sources(
    sources: Sequence[Source],
    problems: list[Problem],
    *,
    set_name: str | None,
    prune: bool,
    namespace: str | None,
    dry_run: bool,
    yes: bool,
    as_json: bool,
    report: dict[str, Any] | None,
) -> None:
    """Apply the documents of files.

    Args:
        sources: the valid documents.
        problems: the problems of the others.
        set_name: name of the set, if any.
        prune: cancel jobs of the set that no document declares, in the namespaces of the documents.
        namespace: namespace of documents that name none; it is pruned, too.
        dry_run: change nothing.
        yes: do not prompt.
        as_json: print JSON.
        report: printed as JSON together with the applied changes.

    Raises:
        CliError: the API rejected a request or is unreachable.
        typer.Exit: a document is invalid; all problems are printed, and nothing is changed.
    """
    if set_name is not None and not _SET_NAME.fullmatch(set_name):
        raise CliError(
            f"--set {set_name!r} is not a set name; use 1 to 100 of A-Z, a-z, 0-9 and . _ / -",
            ExitCode.USAGE,
        )
    from noonmark.cli.connections.api import client  # noqa: PLC0415 - httpx takes a while to load

    with client(operator_settings()) as api:
        home = namespace or api.namespace or _home(api)
        documents = [(source, declared(source, home, set_name)) for source in sources]
        # Even if there are problems already: report all of them at once.
        steps = list(_plan(api, documents, problems))
        problems += doubles(steps)
        _refuse(in_order(problems), as_json=as_json)
        if prune:
            assert set_name is not None
            steps += _pruned(api, set_name, namespace, steps)
        ended = sum(step.action is Action.ENDED for step in steps)
        if ended and not dry_run:
            may_ask(yes=yes, as_json=as_json)
        if not as_json:
            _show(steps)
        if ended and not dry_run:
            agree(f"Cancel {counted(ended, 'job')}?", yes=yes)
        if not dry_run:
            _carry_out(api, steps)
    _print_result(steps, dry_run=dry_run, as_json=as_json, report=report)


def _home(api: Client) -> str | None:
    """Return the namespace of a key that has only one: the default for documents."""
    found: str | None = api.request("GET", "/v1/me").data.get("home")
    return found


def _plan(
    api: Client, documents: Sequence[tuple[Source, dict[str, Any]]], problems: list[Problem]
) -> Iterator[Step]:
    """Yield a step for each document, in order; add what the API rejects to `problems`."""
    from concurrent.futures import ThreadPoolExecutor  # noqa: PLC0415 - for this command only

    with ThreadPoolExecutor(_AT_ONCE) as pool:
        steps = pool.map(lambda one: find_step(api, *one), documents)
        for number, found in enumerate(steps, start=1):
            _progress(number, len(documents))
            if isinstance(found, Step):
                yield found
            else:
                problems += found


def find_step(api: Client, source: Source, document: dict[str, Any]) -> Step | list[Problem]:
    """Return the step for a document, or all its problems: why it cannot be declared, and the API's."""
    from noonmark.client import ApiError  # noqa: PLC0415

    unusable = unfit(source)
    try:
        shown = api.request("POST", "/v1/preview", json={"document": document, "count": 2}).data
        lacks = list(_problems(source, shown.get("problems", ())))
        found = lacks if unusable is not None else _step(api, source, document, shown, lacks)
    except ApiError as error:
        if error.status not in _REFUSALS:
            raise
        whole = source.problem("", error.detail or error.title)
        found = list(_problems(source, error.errors)) or [whole]
    if unusable is None or isinstance(found, Step):
        return found
    return [unusable, *(one for one in found if one.pointer not in {"", unusable.pointer})]


def _step(
    api: Client,
    source: Source,
    document: dict[str, Any],
    shown: Mapping[str, Any],
    lacks: list[Problem],
) -> Step | list[Problem]:
    """Return the step for a document.

    Args:
        api: client of the API.
        source: source of the document.
        document: the document to send.
        shown: its preview: the server fills in the defaults, so that the comparison uses the result.
        lacks: what no live worker can run of it.
    """
    wanted = shown["document"]
    namespace, name = wanted["namespace"], wanted["name"]
    listed = find_named(api, name, namespace)
    if listed is None:
        return lacks or Step(Action.CREATED, namespace, name, source, document)
    answer = read_job(api, str(listed["id"]))
    if answer.data["payload_hidden"]:
        raise CliError(
            f"cannot compare {namespace}/{name}: the API key may not read its payload;"
            " apply needs the role editor"
        )
    found = tuple(changes(_compared(answer.data["document"]), _compared(wanted)))
    found = found or tuple(_lost_timer(answer.data, shown["fires"]))
    action = Action.CHANGED if found else Action.UNCHANGED
    if found and lacks:
        # An unchanged job is no problem, even if no live worker can run it.
        return lacks
    return Step(action, namespace, name, source, document, str(listed["id"]), answer.etag, found)


def _lost_timer(job: Mapping[str, Any], fires: Sequence[Mapping[str, Any]]) -> Iterator[Change]:
    """Yield the next instant of a job as a change if its timer was lost or moved outside noonmark.

    The server then plans the job again, although its document is the same.
    """
    if job["state"] != "active" or not fires:
        return
    jitter = timedelta(seconds=(job["document"].get("schedule") or {}).get("jitter_seconds") or 0)
    current = job["next_run_at"]
    # The job may have fired since the preview was made, so that its next instant is the second one.
    latest = datetime.fromisoformat(fires[-1]["at"]) + jitter
    if current is None or datetime.fromisoformat(current) > latest:
        yield Change("next instant", current, fires[0]["at"])


def _compared(document: Mapping[str, Any]) -> dict[str, Any]:
    """Return the fields that an apply can change: an idempotency key is set only on creation."""
    return {field: value for field, value in document.items() if field != "idempotency_key"}


def _problems(source: Source, errors: Iterable[Mapping[str, Any]]) -> Iterator[Problem]:
    """Yield the problems that the API reports, with the lines of their fields."""
    for one in errors:
        expected = f"; expected {one['expected']}" if one.get("expected") else ""
        pointer = str(one.get("pointer", "")).removeprefix("/document")
        yield source.problem(pointer, f"{one.get('message', '')}{expected}")


def _pruned(api: Client, set_name: str, namespace: str | None, steps: Sequence[Step]) -> list[Step]:
    """Return a step for each job of the set that no file declares, in the namespaces of the apply.

    These are the namespaces of the documents and of the command: other teams may use the same set name.
    """
    kept = {(step.namespace, step.name) for step in steps}
    spaces = {step.namespace for step in steps} | ({namespace} if namespace is not None else set())
    gone = [
        str(job["id"])
        for space in sorted(spaces)
        for job in api.jobs.list(
            namespace=space,
            labels={SET_LABEL: set_name},
            state=("active", "paused", "broken"),
            recurring=True,
        )
        if (space, job["name"]) not in kept
    ]
    # The ETag is that of this read: a job that leaves the set before the confirmation is not cancelled.
    found = [read_job(api, job_id) for job_id in gone]
    return [
        Step(Action.ENDED, one.data["namespace"], one.data["name"], job_id=str(one.data["id"]), etag=one.etag)
        for one in found
        if one.data["document"]["labels"].get(SET_LABEL) == set_name
    ]


def _refuse(problems: Sequence[Problem], *, as_json: bool) -> None:
    """Exit if any document is invalid; then nothing is changed."""
    if not problems:
        return
    if as_json:
        show_json({"problems": [problem._asdict() for problem in problems]})
    else:
        for line in messages(problems):
            print(printable(line), file=sys.stderr)
        print(f"{counted(len(problems), 'problem')}; nothing changed", file=sys.stderr)
    raise typer.Exit(ExitCode.PROBLEM)


def _carry_out(api: Client, steps: Sequence[Step]) -> None:
    """Make the changes, cancels last.

    Raises:
        CliError: a change was rejected, for example because another user changed the job.
    """
    from noonmark.client import ClientError  # noqa: PLC0415

    todo = [step for step in steps if step.action is not Action.UNCHANGED]
    for number, step in enumerate(todo, start=1):
        try:
            _do(api, step)
        except ClientError as error:
            explained = explain(error)
            raise CliError(
                f"{step.namespace}/{step.name}: {explained or error}\n{number - 1} of {len(todo)} changes"
                " were made; apply again to continue",
                explained.code if explained is not None else ExitCode.PROBLEM,
            ) from error
        _progress(number, len(todo))


def _progress(done: int, total: int) -> None:
    if total > _SOON_DONE:
        progress(done, total)


def _do(api: Client, step: Step) -> None:
    if step.action is Action.ENDED:
        assert step.job_id is not None
        api.jobs.delete(step.job_id, if_match=step.etag)
        return
    assert step.document is not None
    if step.job_id is None:
        api.jobs.create(step.document)
    else:
        api.jobs.replace(step.job_id, step.document, if_match=step.etag)


def _show(steps: Sequence[Step]) -> None:
    """Print the differences by job and field."""
    for step in steps:
        if step.action is Action.UNCHANGED:
            continue
        sign, color = _COLORS[step.action]
        position = f" ({step.source.file}:{step.source.line})" if step.source is not None else ""
        print(_colored(f"{sign} {printable(f'{step.namespace}/{step.name}')}", color) + printable(position))
        for change in step.changes:
            print(_change_line(change))


def _change_line(change: Change) -> str:
    old, new = _value(change.old), _value(change.new)
    return f"    {printable(change.field)}: {_colored(old, 'red')} -> {_colored(new, 'green')}"


def _value(value: object) -> str:
    return str(value) if value is MISSING else printable(json.dumps(value, ensure_ascii=False))


def _colored(text: str, color: str | None) -> str:
    plain = color is None or not is_terminal() or "NO_COLOR" in os.environ
    return text if plain else typer.style(text, fg=color)


def _print_result(
    steps: Sequence[Step], *, dry_run: bool, as_json: bool, report: dict[str, Any] | None
) -> None:
    """Print how many jobs were created, changed, unchanged and cancelled."""
    count = Counter(step.action for step in steps)
    if as_json:
        items = [_item(step) for step in steps]
        applied = {"items": items, **{action.value: count[action] for action in Action}, "dry_run": dry_run}
        show_json(applied if report is None else {**report, "applied": applied})
        return
    summary = ", ".join(f"{count[action]} {action}" for action in Action)
    print(f"{summary}{' (dry run, nothing changed)' if dry_run else ''}")


def _item(step: Step) -> dict[str, Any]:
    return {
        "namespace": step.namespace,
        "name": step.name,
        "action": step.action.value,
        "id": step.job_id,
        "file": step.source.file if step.source is not None else None,
        "line": step.source.line if step.source is not None else None,
        "changes": [
            {
                "field": change.field,
                "from": None if change.old is MISSING else change.old,
                "to": None if change.new is MISSING else change.new,
            }
            for change in step.changes
        ],
    }
