"""`noonmark run complete`: the report of a target on a run that it had answered 202 to."""

from __future__ import annotations

import json
import sys
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any

import typer

from noonmark.cli.connections.context import operator_settings
from noonmark.cli.terminal.options import AsJson, read_uuid
from noonmark.cli.terminal.output import show_json
from noonmark.cli.terminal.problems import CliError, ExitCode

_MOST_TOKEN_CHARS = 500


class Ended(StrEnum):
    """How the work ended."""

    SUCCEEDED = "succeeded"
    FAILED = "failed"


def complete(
    run: Annotated[str, typer.Argument(metavar="RUN", help="Id of the run: `webhook-id` of the request.")],
    *,
    token_file: Annotated[
        str,
        typer.Option(
            metavar="FILE|-",
            help="File with the token of the request, Noonmark-Callback-Token; - is stdin. It is no option"
            " of its own, for other users can read those.",
        ),
    ],
    outcome: Annotated[Ended, typer.Option(help="How the work ended.")] = Ended.SUCCEEDED,
    result: Annotated[
        str | None, typer.Option(metavar="JSON", help="Of a success: what the run keeps.")
    ] = None,
    error: Annotated[str | None, typer.Option(help="Of a failure: what went wrong.")] = None,
    final: Annotated[
        bool, typer.Option("--final", help="Of a failure: another attempt cannot help.")
    ] = False,
    source: Annotated[str, typer.Option(help="`source` of the event.")] = "noonmark-cli",
    as_json: AsJson = False,
) -> None:
    """Report how the work of a run ended whose target had answered 202, as the target does with its token."""
    from noonmark.cli.submissions.submit import publish  # noqa: PLC0415
    from noonmark.core.ids import uuid7  # noqa: PLC0415

    run_id = read_uuid(run, "run")
    data: dict[str, Any] = {"run_id": str(run_id), "token": _token(token_file), "outcome": outcome.value}
    if result is not None:
        data["result"] = _json(result)
    if error is not None:
        data["error"] = error
    if final:
        data["retryable"] = False
    event = {
        "specversion": "1.0",
        "id": str(uuid7()),
        "source": source,
        "type": "noonmark.run.complete.v1",
        "datacontenttype": "application/json",
        "data": data,
    }
    _check(event)
    (sent,) = publish(operator_settings(), [event], source=source, bulk=False)
    if as_json:
        show_json({"id": sent["id"], "run_id": str(run_id), "position": sent["position"]})
        return
    print(
        f"the report on run {run_id} is published at {sent['position']}; `noonmark run show {run_id}` shows"
        " what becomes of it, `noonmark rejection list` whether it was refused"
    )


def _token(file: str) -> str:
    try:
        text = sys.stdin.read(_MOST_TOKEN_CHARS) if file == "-" else _read(Path(file))
    except (OSError, UnicodeDecodeError) as problem:
        reason = getattr(problem, "strerror", None) or "it is no text"
        raise CliError(f"the token cannot be read from {file}: {reason}", ExitCode.USAGE) from None
    token = text.strip()
    if not token:
        raise CliError(f"{file} holds no token", ExitCode.USAGE)
    return token


def _read(path: Path) -> str:
    with path.open(encoding="utf-8") as file:
        return file.read(_MOST_TOKEN_CHARS)


def _json(text: str) -> Any:
    try:
        return json.loads(text)
    except ValueError as problem:
        raise CliError(f"--result is not JSON: {problem}", ExitCode.USAGE) from None


def _check(event: dict[str, Any]) -> None:
    """Refuse what intake would refuse, before anything is published. The token is not shown."""
    from pydantic import ValidationError  # noqa: PLC0415

    from noonmark.schemas.jobs.completion import RunCompletion  # noqa: PLC0415
    from noonmark.schemas.problems.pydantic_errors import field_errors  # noqa: PLC0415

    try:
        RunCompletion.model_validate(event["data"])
    except ValidationError as problem:
        told = "; ".join(
            f"{one.pointer or 'the report'} {one.message}; {one.expected}"
            for one in field_errors(problem, RunCompletion)
        )
        raise CliError(f"this is no report: {told}", ExitCode.USAGE) from None
