"""`noonmark job create` and `edit`: create a job from options or a file, or change it in an editor."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final

import typer

from noonmark.cli.connections.context import operator_settings
from noonmark.cli.connections.job_ref import InNamespace, Job, id_of, read_job
from noonmark.cli.connections.periods import TIMES_AHEAD, read_time, shown_time
from noonmark.cli.jobs.created import created_text
from noonmark.cli.terminal.json_values import JSON_FORMS, read_json_option, reads_stdin
from noonmark.cli.terminal.options import AsJson, LaneName, duration_option, read_labels
from noonmark.cli.terminal.output import printable, show_json
from noonmark.cli.terminal.problems import CliError, ExitCode, field_text, file_reason

if TYPE_CHECKING:
    from noonmark.client import Client
    from noonmark.client.answers import Answer

_CHANGED_MEANWHILE: Final = 412
_REFUSALS: Final = frozenset({400, 409, 413, 422})


def create(
    *,
    file: Annotated[
        str | None,
        typer.Option(
            "--file", "-f", metavar="FILE|-", help="File with a job document; options override its fields."
        ),
    ] = None,
    kind: Annotated[
        str | None, typer.Option("--type", help="Type of the job: http, grpc, script, python or kafka.")
    ] = None,
    name: Annotated[
        str | None, typer.Option("--name", help="Name of the job; identifies recurring jobs.")
    ] = None,
    handler: Annotated[
        str | None, typer.Option("--handler", help="Handler of a Python job; implies --type python.")
    ] = None,
    payload: Annotated[
        str | None,
        typer.Option("--payload", help=f"Payload: {JSON_FORMS}; its form depends on the type."),
    ] = None,
    schedule: Annotated[
        str | None, typer.Option("--schedule", help="Cron expression, or schedule object as JSON.")
    ] = None,
    zone: Annotated[
        str | None,
        typer.Option("--zone", help="Time zone of a cron expression, or of --run-at without an offset."),
    ] = None,
    run_at: Annotated[
        str | None,
        typer.Option(
            "--run-at",
            metavar="TIME",
            help=f"When a one-time job is due: {TIMES_AHEAD}. (default without --schedule: now)",
        ),
    ] = None,
    priority: Annotated[LaneName | None, typer.Option("--priority", help="Lane of the job's runs.")] = None,
    pool: Annotated[
        str | None, typer.Option("--pool", help="Pool of workers that executes the runs.")
    ] = None,
    timeout: Annotated[
        float | None,
        duration_option("--timeout", help_text="Timeout of an attempt", least=0.001, most=86_400),
    ] = None,
    max_retries: Annotated[
        int | None, typer.Option("--max-retries", help="Maximum number of retries.")
    ] = None,
    label: Annotated[
        list[str] | None,
        typer.Option("--label", metavar="KEY:VALUE", help="Label, also as KEY=VALUE; repeatable."),
    ] = None,
    idempotency_key: Annotated[
        str | None,
        typer.Option("--idempotency-key", help="Key that prevents a second job from a repeated request."),
    ] = None,
    namespace: Annotated[str | None, typer.Option("--namespace", help="Namespace of the job.")] = None,
    as_json: AsJson = False,
) -> None:
    """Create a job from options, a file, or both."""
    if file == "-" and reads_stdin(payload):
        raise CliError("--file and --payload cannot both read standard input", ExitCode.USAGE)
    given: dict[str, Any] = {
        "type": kind or ("python" if handler and file is None else None),
        "name": name,
        "handler": handler,
        "payload": read_json_option(payload, "--payload"),
        "schedule": _schedule_of(schedule, zone if schedule is not None or run_at is None else None),
        "run_at": _run_at_of(run_at, zone),
        "priority": priority.value if priority is not None else None,
        "pool": pool,
        "timeout_seconds": timeout,
        "max_retries": max_retries,
        "labels": read_labels(label) or None,
        "idempotency_key": idempotency_key,
        "namespace": namespace,
    }
    options = {field: value for field, value in given.items() if value is not None}
    if file is None and "type" not in options:
        raise CliError(
            "give --handler for a Python job, --type and the options it needs for others, or a file with -f",
            ExitCode.USAGE,
        )
    from noonmark.cli.submissions.submit import read_documents  # noqa: PLC0415

    documents: Sequence[dict[str, Any]] = read_documents(file) if file is not None else [{}]
    if len(documents) > 1:
        raise CliError("the file contains several documents; use `noonmark job apply -f`", ExitCode.USAGE)
    from noonmark.cli.connections.api import client  # noqa: PLC0415 - httpx takes a while to load

    with client(operator_settings()) as api:
        created = api.jobs.create({**documents[0], **options})
        told = "" if as_json else created_text(api, created)
    if as_json:
        show_json(created)
    else:
        print(told)


def edit(*, job: Job, namespace: InNamespace = None, as_json: AsJson = False) -> None:
    """Edit a job in $VISUAL or $EDITOR (default: vi). Errors are shown in the editor again.

    If another user changed the job meanwhile, nothing is changed, and your text is kept.
    """
    from noonmark.cli.connections.api import client  # noqa: PLC0415

    with client(operator_settings()) as api:
        job_id = id_of(api, job, namespace)
        answer = _edited(api, read_job(api, job_id), job_id)
    if as_json:
        show_json(answer.data if answer is not None else {"id": job_id, "changed": False})
    elif answer is None:
        print("nothing changed")
    else:
        print(f"job {printable(job)} changed; run `noonmark job show {job_id}` to see it")


def document_in(job: Mapping[str, Any]) -> dict[str, Any]:
    """Return the document of a job without fields that are null; a payload can be null.

    Raises:
        CliError: the payload is hidden: saved without it, the job would lose it.
    """
    if job["payload_hidden"]:
        name = printable(str(job["name"] or job["id"]))
        raise CliError(f"cannot read job {name} as a whole: the API key may not read its payload")
    document: Mapping[str, Any] = job["document"]
    return {field: value for field, value in document.items() if value is not None or field == "payload"}


def _edited(api: Client, read: Answer, job_id: str) -> Answer | None:
    """Let the user edit until the API accepts the job; return None if the user changed nothing."""
    import tempfile  # noqa: PLC0415 - for this command only

    from noonmark.cli.terminal.yaml_text import dump  # noqa: PLC0415

    first = text = dump([document_in(read.data)])
    head = (
        f"# Job {job_id}. Save and close to change the job; leave the text unchanged, or empty, to cancel.\n"
    )
    handle, name = tempfile.mkstemp(prefix="noonmark-job-", suffix=".yaml")
    os.close(handle)
    path = Path(name)
    errors: list[str] = []
    while True:
        before = head + "".join(f"# {printable(line)}\n" for line in errors) + text
        after = _open_in_editor(path, before)
        text = "".join(line for line in after.splitlines(keepends=True) if not line.startswith("#"))
        if not text.strip() or text == first or (errors and after == before):
            path.unlink()
            if errors and text.strip() and text != first:
                raise CliError("\n".join(["job not changed:", *errors]))
            return None
        answer = _replaced(api, job_id, read.etag, text, path)
        if not isinstance(answer, list):
            path.unlink()
            return answer
        errors = answer


def _replaced(api: Client, job_id: str, etag: str | None, text: str, path: Path) -> Answer | list[str]:
    """Replace the job with the edited document; return the problems if the document is rejected.

    Raises:
        CliError: the API failed, or the job was changed by another user; the text stays in the file.
    """
    from noonmark.client import ApiError  # noqa: PLC0415

    try:
        document = _one_document(text)
        return api.request("PUT", f"/v1/jobs/{job_id}", json=document, headers={"If-Match": etag})
    except CliError as error:
        return str(error).splitlines()
    except ApiError as error:
        if error.status == _CHANGED_MEANWHILE:
            raise CliError(
                f"another user changed the job; your change is not saved, your text is in {path}"
            ) from error
        if error.status not in _REFUSALS:
            raise CliError(f"{error}; your text is in {path}") from error
        return list(map(field_text, error.errors)) or [error.detail or error.title]


def _open_in_editor(path: Path, text: str) -> str:
    """Return a text as the user saved it."""
    path.write_text(text, encoding="utf-8")
    _open_editor(str(path))
    return path.read_text(encoding="utf-8")


def _one_document(text: str) -> dict[str, Any]:
    import yaml  # noqa: PLC0415

    from noonmark.cli.terminal.yaml_text import loader, yaml_problem  # noqa: PLC0415

    try:
        data = yaml.load(text, loader())  # noqa: S506 - a safe loader with fewer types
    except (yaml.YAMLError, RecursionError, ValueError) as error:
        raise CliError(f"is not YAML: {yaml_problem(error)}") from error
    if not isinstance(data, dict):
        raise CliError("is not a job document: must be an object")
    return data


def _open_editor(path: str) -> None:
    """Run the user's editor on a file until it exits.

    Raises:
        CliError: the editor cannot be started, or it failed.
    """
    import shlex  # noqa: PLC0415 - for this command only
    import subprocess  # noqa: PLC0415

    command = os.environ.get("VISUAL") or os.environ.get("EDITOR") or "vi"
    try:
        done = subprocess.run([*shlex.split(command), path], check=False)  # noqa: S603 - what the user names
    except (OSError, ValueError) as error:
        raise CliError(
            f"cannot run the editor {command!r}: {_reason(error)}; set EDITOR; your text is in {path}",
            ExitCode.USAGE,
        ) from error
    if done.returncode:
        raise CliError(f"the editor {command!r} failed; job not changed, your text is in {path}")


def _reason(error: OSError | ValueError) -> str:
    """Return why an editor cannot run: it cannot be started, or its command has an open quote."""
    return file_reason(error) if isinstance(error, OSError) else str(error).lower()


def _run_at_of(given: str | None, zone: str | None) -> str | None:
    """Return `run_at` of the document: an instant in the past is a missed one, as in documents."""
    at = read_time(given, zone, option="--run-at", ahead=True)
    return shown_time(at) if at is not None else None


def _schedule_of(given: str | None, zone: str | None) -> Any:
    if given is None:
        if zone is not None:
            raise CliError("--zone needs --schedule or --run-at", ExitCode.USAGE)
        return None
    if given.lstrip().startswith(("{", "[")):
        if zone is not None:
            raise CliError(
                "--zone works only with a cron expression; set `timezone` in the schedule object",
                ExitCode.USAGE,
            )
        return read_json_option(given, "--schedule")
    return {"cron": given, "timezone": zone} if zone is not None else given
