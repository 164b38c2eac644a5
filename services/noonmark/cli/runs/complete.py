"""`noonmark run complete`: report the outcome of a run whose target answered 202."""

from __future__ import annotations

import sys
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any

import typer

from noonmark.cli.connections.context import operator_settings
from noonmark.cli.terminal.json_values import JSON_FORMS, read_json_option, reads_stdin
from noonmark.cli.terminal.options import AsJson, as_uuid
from noonmark.cli.terminal.output import show_json
from noonmark.cli.terminal.problems import CliError, ExitCode, cannot_read

_MOST_TOKEN_CHARS = 500


class Ended(StrEnum):
    """Outcome of the work."""

    SUCCEEDED = "succeeded"
    FAILED = "failed"


def complete(
    run: Annotated[
        str, typer.Argument(metavar="RUN", help="Id of the run: the `webhook-id` of the request.")
    ],
    *,
    token_file: Annotated[
        str,
        typer.Option(
            metavar="FILE|-",
            help="File with the Noonmark-Callback-Token of the request; - is stdin. The token itself cannot"
            " be an option, because other users can read the command line.",
        ),
    ],
    outcome: Annotated[Ended, typer.Option(help="Outcome of the work.")] = Ended.SUCCEEDED,
    result: Annotated[
        str | None,
        typer.Option(metavar="JSON", help=f"Result to store, for a success: {JSON_FORMS}."),
    ] = None,
    error: Annotated[str | None, typer.Option(help="Error message, for a failure.")] = None,
    final: Annotated[bool, typer.Option("--final", help="Do not retry, for a failure.")] = False,
    source: Annotated[str, typer.Option(help="`source` of the event.")] = "noonmark-cli",
    as_json: AsJson = False,
) -> None:
    """Report the outcome of a run whose target answered 202, with the token of the request."""
    from noonmark.cli.submissions.submit import publish  # noqa: PLC0415
    from noonmark.core.ids import uuid7  # noqa: PLC0415

    run_id = as_uuid(run)
    if run_id is None:
        raise CliError(
            f"run {run!r} is not an id; give all 36 characters: this command only publishes to Kafka,"
            " and looks up no ids",
            ExitCode.USAGE,
        )
    if token_file == "-" and reads_stdin(result):  # noqa: S105 - not a token
        raise CliError("--token-file and --result cannot both read standard input", ExitCode.USAGE)
    data: dict[str, Any] = {"run_id": str(run_id), "token": _token(token_file), "outcome": outcome.value}
    if result is not None:
        data["result"] = read_json_option(result, "--result")
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
        f"report for run {run_id} published at {sent['position']}; check `noonmark run show {run_id}`,"
        " and `noonmark rejection list` if it was rejected"
    )


def _token(file: str) -> str:
    try:
        text = sys.stdin.read(_MOST_TOKEN_CHARS) if file == "-" else _read(Path(file))
    except (OSError, UnicodeDecodeError) as problem:
        raise cannot_read(f"the token from {file}", problem) from None
    token = text.strip()
    if not token:
        raise CliError(f"{file} contains no token", ExitCode.USAGE)
    return token


def _read(path: Path) -> str:
    with path.open(encoding="utf-8") as file:
        return file.read(_MOST_TOKEN_CHARS)


def _check(event: dict[str, Any]) -> None:
    """Reject what intake would reject, before anything is published. The token is not shown."""
    from pydantic import ValidationError  # noqa: PLC0415

    from noonmark.schemas.jobs.completion import RunCompletion  # noqa: PLC0415
    from noonmark.schemas.problems.pydantic_errors import field_errors  # noqa: PLC0415

    try:
        RunCompletion.model_validate(event["data"])
    except ValidationError as problem:
        problems = "; ".join(
            f"{one.pointer or 'the report'} {one.message}; {one.expected}"
            for one in field_errors(problem, RunCompletion)
        )
        raise CliError(f"invalid report: {problems}", ExitCode.USAGE) from None
