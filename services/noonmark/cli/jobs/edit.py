"""`noonmark job create` and `edit`: one job, of options or of a file, or changed in an editor."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final

import typer

from noonmark.cli.connections.context import operator_settings
from noonmark.cli.connections.job_ref import InNamespace, Job, id_of, read_job
from noonmark.cli.terminal.options import AsJson, LaneName
from noonmark.cli.terminal.output import printable, show_json
from noonmark.cli.terminal.problems import CliError, ExitCode, field_text

if TYPE_CHECKING:
    from noonmark.client import ApiError, Client
    from noonmark.client.answers import Answer

_CHANGED_MEANWHILE: Final = 412
_REFUSALS: Final = frozenset({400, 409, 413, 422})


def create(
    *,
    file: Annotated[
        str | None,
        typer.Option("--file", "-f", metavar="FILE|-", help="Job documents; options go before their fields."),
    ] = None,
    kind: Annotated[str | None, typer.Option("--type", help="http, grpc, script, python or kafka.")] = None,
    name: Annotated[str | None, typer.Option("--name", help="Recurring jobs are known by it.")] = None,
    handler: Annotated[str | None, typer.Option("--handler", help="Of Python jobs.")] = None,
    payload: Annotated[str | None, typer.Option("--payload", help="JSON: what the type needs.")] = None,
    schedule: Annotated[
        str | None, typer.Option("--schedule", help="Cron expression, or a schedule object as JSON.")
    ] = None,
    zone: Annotated[str | None, typer.Option("--zone", help="Zone of a cron expression.")] = None,
    run_at: Annotated[
        str | None, typer.Option("--run-at", help="Instant of a one-time job; else, without schedule, now.")
    ] = None,
    priority: Annotated[LaneName | None, typer.Option("--priority", help="Lane of its runs.")] = None,
    pool: Annotated[str | None, typer.Option("--pool", help="Which workers run it.")] = None,
    timeout: Annotated[
        float | None, typer.Option("--timeout", help="Longest time of an attempt, in seconds.")
    ] = None,
    max_retries: Annotated[
        int | None, typer.Option("--max-retries", help="Attempts after the first.")
    ] = None,
    label: Annotated[
        list[str] | None, typer.Option("--label", metavar="KEY=VALUE", help="Label; repeatable.")
    ] = None,
    idempotency_key: Annotated[
        str | None, typer.Option("--idempotency-key", help="A second job with this key is not made.")
    ] = None,
    namespace: Annotated[str | None, typer.Option("--namespace", help="Namespace of the job.")] = None,
    as_json: AsJson = False,
) -> None:
    """Make a job, of options, of a file, or of both."""
    given: dict[str, Any] = {
        "type": kind,
        "name": name,
        "handler": handler,
        "payload": _json_of(payload, "--payload"),
        "schedule": _schedule_of(schedule, zone),
        "run_at": run_at,
        "priority": priority.value if priority is not None else None,
        "pool": pool,
        "timeout_seconds": timeout,
        "max_retries": max_retries,
        "labels": _labels_of(label),
        "idempotency_key": idempotency_key,
        "namespace": namespace,
    }
    options = {field: value for field, value in given.items() if value is not None}
    if file is None and kind is None:
        raise CliError("give --type and what it needs, or a file with -f", ExitCode.USAGE)
    from noonmark.cli.submissions.submit import read_documents  # noqa: PLC0415

    documents: Sequence[dict[str, Any]] = read_documents(file) if file is not None else [{}]
    if len(documents) > 1:
        raise CliError("the file holds several documents: `noonmark job apply -f` takes them", ExitCode.USAGE)
    from noonmark.cli.connections.api import client  # noqa: PLC0415 - httpx takes a while to load

    with client(operator_settings()) as api:
        made = api.jobs.create({**documents[0], **options})
    if as_json:
        show_json(made)
    else:
        print(f"job {made['id']} is made; `noonmark job show {made['id']}` shows it")


def edit(*, job: Job, namespace: InNamespace = None, as_json: AsJson = False) -> None:
    """Change a job in an editor: VISUAL or EDITOR, else vi. What is refused is shown there again.

    If somebody else has changed the job meanwhile, nothing is changed, and the text is kept.
    """
    from noonmark.cli.connections.api import client  # noqa: PLC0415

    with client(operator_settings()) as api:
        job_id = id_of(api, job, namespace)
        answer = _edited(api, read_job(api, job_id), job_id)
    if as_json:
        show_json(answer.data if answer is not None else {"id": job_id, "changed": False})
    elif answer is None:
        print("nothing is changed")
    else:
        print(f"job {printable(job)} is changed; `noonmark job show {job_id}` shows it")


def document_in(job: Mapping[str, Any]) -> dict[str, Any]:
    """Return the document of a job as the API answers it, without what is not set.

    Raises:
        CliError: its payload may not be read: saved without it, the job would lose it.
    """
    if job["payload_hidden"]:
        raise CliError("the credential may not read the payload of the job, so that it cannot be edited")
    document: Mapping[str, Any] = job["document"]
    return {field: value for field, value in document.items() if value is not None}


def _edited(api: Client, read: Answer, job_id: str) -> Answer | None:
    """Let the user edit until the API takes it; None: the user changed nothing."""
    import tempfile  # noqa: PLC0415 - for this command only

    from noonmark.cli.terminal.yaml_text import dump  # noqa: PLC0415
    from noonmark.client import ApiError  # noqa: PLC0415

    first = text = dump([document_in(read.data)])
    head = (
        f"# Job {job_id}. Save and leave the editor to change it; leave it unchanged, or empty, to keep it.\n"
    )
    handle, path = tempfile.mkstemp(prefix="noonmark-job-", suffix=".yaml")
    os.close(handle)
    place = Path(path)
    remarks: list[str] = []
    while True:
        told = "".join(f"# {printable(line)}\n" for line in remarks)
        before = head + told + text
        place.write_text(before, encoding="utf-8")
        _open_editor(path)
        after = place.read_text(encoding="utf-8")
        text = "".join(line for line in after.splitlines(keepends=True) if not line.startswith("#"))
        if not text.strip() or text == first or (remarks and after == before):
            place.unlink()
            if remarks and text.strip() and text != first:
                raise CliError("\n".join(["the job is not changed:", *remarks]))
            return None
        try:
            document = _one_document(text)
            answer = api.request("PUT", f"/v1/jobs/{job_id}", json=document, headers={"If-Match": read.etag})
        except CliError as error:
            remarks = str(error).splitlines()
        except ApiError as error:
            if error.status == _CHANGED_MEANWHILE:
                raise CliError(
                    "the job was changed by somebody else meanwhile, and is not changed; your text is in"
                    f" {path}"
                ) from error
            if error.status not in _REFUSALS:
                raise CliError(f"{error}; your text is in {path}") from error
            remarks = _remarks(error)
        else:
            place.unlink()
            return answer


def _remarks(error: ApiError) -> list[str]:
    return list(map(field_text, error.errors)) or [error.detail or error.title]


def _one_document(text: str) -> dict[str, Any]:
    import yaml  # noqa: PLC0415

    from noonmark.cli.terminal.yaml_text import loader  # noqa: PLC0415

    try:
        data = yaml.load(text, loader())  # noqa: S506 - a safe loader, with fewer words
    except (yaml.YAMLError, RecursionError, ValueError) as error:
        raise CliError(f"is not YAML: {' '.join(str(error).split())}") from error
    if not isinstance(data, dict):
        raise CliError("is no job document: an object is needed")
    return data


def _open_editor(path: str) -> None:
    """Run the user's editor on a file, and wait for its end.

    Raises:
        CliError: it cannot be run, or says that it failed.
    """
    import shlex  # noqa: PLC0415 - for this command only
    import subprocess  # noqa: PLC0415

    command = os.environ.get("VISUAL") or os.environ.get("EDITOR") or "vi"
    try:
        done = subprocess.run([*shlex.split(command), path], check=False)  # noqa: S603 - what the user names
    except (OSError, ValueError) as error:
        raise CliError(
            f"the editor {command!r} cannot be run ({error}): set EDITOR; your text is in {path}",
            ExitCode.USAGE,
        ) from error
    if done.returncode:
        raise CliError(f"the editor {command!r} failed; the job is not changed, your text is in {path}")


def _json_of(given: str | None, option: str) -> Any:
    if given is None:
        return None
    try:
        return json.loads(given)
    except (ValueError, RecursionError) as error:
        raise CliError(f"{option} is no JSON: {error}", ExitCode.USAGE) from error


def _schedule_of(given: str | None, zone: str | None) -> Any:
    if given is None:
        if zone is not None:
            raise CliError("--zone is of a --schedule", ExitCode.USAGE)
        return None
    if given.lstrip().startswith(("{", "[")):
        if zone is not None:
            raise CliError("--zone is of a cron expression: an object has its own timezone", ExitCode.USAGE)
        return _json_of(given, "--schedule")
    return {"cron": given, "timezone": zone} if zone is not None else given


def _labels_of(given: Sequence[str] | None) -> dict[str, str] | None:
    if not given:
        return None
    labels = {}
    for item in given:
        key, equals, value = item.partition("=")
        if not (key and equals):
            raise CliError(f"--label is {item!r}; use KEY=VALUE", ExitCode.USAGE)
        labels[key] = value
    return labels
