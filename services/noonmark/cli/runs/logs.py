"""`noonmark run logs`: show the output of attempts."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from enum import StrEnum
from shlex import quote
from typing import TYPE_CHECKING, Annotated, Any
from uuid import UUID

import typer

from noonmark.cli.connections.api_pages import or_missing
from noonmark.cli.connections.context import operator_settings
from noonmark.cli.connections.ids import completed, is_prefix
from noonmark.cli.connections.job_ref import InNamespace, require_job
from noonmark.cli.terminal.options import AsJson, as_uuid
from noonmark.cli.terminal.output import as_json_line, printable, show_json
from noonmark.cli.terminal.problems import CliError

if TYPE_CHECKING:
    from noonmark.client import Client

Stream = StrEnum("Stream", {"LOG": "log", "STDOUT": "stdout", "STDERR": "stderr"})

_BEFORE_NEXT_ATTEMPT = ("queued", "retrying", "waiting")


def logs(
    run: Annotated[
        str,
        typer.Argument(
            metavar="ID|JOB", help="Id of the run (at least its first 8 characters), or name of its job."
        ),
    ],
    attempt: Annotated[int | None, typer.Option(min=1, help="Only this attempt.")] = None,
    stream: Annotated[
        Stream | None, typer.Option(help="Only this stream, unformatted; `log` is the output of `ctx.log`.")
    ] = None,
    *,
    follow: Annotated[
        bool, typer.Option("--follow", "-f", help="Follow the output until the run finishes.")
    ] = False,
    namespace: InNamespace = None,
    as_json: AsJson = False,
) -> None:
    """Show the output of a run's attempts: the last 64 KB of each stream; of a job, those of its latest run.

    Output of a running attempt is stored about once a second. `--follow` prints lines as they come.
    """
    from noonmark.cli.connections.api import client  # noqa: PLC0415 - httpx takes a while to load

    with client(operator_settings()) as api:
        run_id = _run_of(api, run, namespace)
    with client(operator_settings()) as api, or_missing(missing_run(run_id)):
        if follow:
            _follow(api, run_id, attempt, stream, as_json=as_json)
            return
        answer = api.runs.logs(run_id, attempt=attempt)
        found = answer["attempts"]
        nothing = "" if found or as_json else _nothing(api.runs.get(run_id), attempt)
    if as_json:
        show_json(answer)
    elif stream is not None:
        _print_stream(found, stream)
    elif found:
        _show(found)
    else:
        print(nothing)


def _run_of(api: Client, given: str, namespace: str | None) -> UUID:
    """Return the run that is given by its id, by the beginning of it, or as the latest run of a job.

    Raises:
        CliError: there is no such run or job, or the job has no run.
    """
    if (whole := as_uuid(given)) is not None:
        return whole
    latest = api.runs.list(job_name=given, namespace=namespace, limit=1).page().items
    if latest:
        row = latest[0]
        print(f"run {row['id']}, the latest of job {printable(given)}, is {row['state']}", file=sys.stderr)
        return UUID(str(row["id"]))
    if is_prefix(given) and (found := completed(api, given, "run")) is not None:
        return found
    require_job(api, given, namespace)
    raise CliError(f"job {given!r} has no run yet; `noonmark job trigger {quote(given)}` starts one")


def missing_run(run_id: UUID) -> str:
    """Return the message for a run that does not exist."""
    return f"run {run_id} does not exist; run `noonmark run list`"


def _follow(api: Client, run_id: UUID, attempt: int | None, stream: Stream | None, *, as_json: bool) -> None:
    """Show output as it comes, with `as_json` one document per line, until the run finishes."""
    lines = _Lines(stream)
    for event in api.runs.follow_logs(run_id, attempt=attempt):
        data = event.data
        if as_json:
            if event.event != "end" or data["reason"] == "finished":
                print(as_json_line({"run_id": run_id, "event": event.event, **data}))
        elif event.event == "output":
            lines.add(data)
        elif event.event == "gap":
            lines.skip(data)
        elif event.event == "lost":
            lines.lose(data)
        elif data["reason"] == "finished":
            lines.end(data["state"])
        sys.stdout.flush()


class _Lines:
    """Prints the lines of several streams; a line without its end waits for it."""

    def __init__(self, only: Stream | None) -> None:
        self._only = only
        self._source: tuple[int, str] | None = None
        self._begun = ""
        self._ended_with_cr = False
        self._has_output = False

    def add(self, data: Mapping[str, Any]) -> None:
        """Print new text of a stream."""
        if not self._wants(data):
            return
        self._has_output = True
        source = data["fence"], data["stream"]
        if source != self._source:
            self._print_begun()
            if self._only is None:
                print(f"== attempt {data['attempt']}, fence {data['fence']}: {data['stream']}")
            self._source, self._ended_with_cr = source, False
        text: str = data["text"]
        if self._ended_with_cr:
            text = text.removeprefix("\n")  # the other half of a line end
        self._ended_with_cr = text.endswith("\r")
        *lines, self._begun = f"{self._begun}{text}\0".splitlines()
        self._begun = self._begun.removesuffix("\0")
        for line in lines:
            print(_shown(line))

    def skip(self, data: Mapping[str, Any]) -> None:
        """Report dropped bytes."""
        if self._wants(data):
            self._has_output = True
            self._print_begun()
            self._note(f"== {data['bytes']} bytes of {data['stream']} were dropped")

    def lose(self, data: Mapping[str, Any]) -> None:
        """Report an attempt whose worker was lost."""
        self._print_begun()
        self._source = None
        worker = f"worker {data['worker']}" if data["worker"] else "worker"
        waits = "; waiting for the next attempt" if data["state"] in _BEFORE_NEXT_ATTEMPT else ""
        self._note(f"== {worker} lost in attempt {data['attempt']}{waits}")

    def end(self, state: str) -> None:
        """Print the state of the finished run."""
        self._print_begun()
        if self._only is None:
            print(f"== run is {state}{'' if self._has_output else '; no output was stored'}")

    def _note(self, note: str) -> None:
        print(note, file=sys.stdout if self._only is None else sys.stderr)

    def _wants(self, data: Mapping[str, Any]) -> bool:
        return self._only is None or data["stream"] == self._only

    def _print_begun(self) -> None:
        if self._begun:
            print(_shown(self._begun))
        self._begun = ""


def _print_stream(attempts: Sequence[Mapping[str, Any]], stream: Stream) -> None:
    for line in "".join(row[stream.value] for row in attempts).splitlines():
        print(_shown(line))


def _show(attempts: Sequence[Mapping[str, Any]]) -> None:
    for row in attempts:
        for stream in Stream:
            written = row[stream.value]
            if written:
                print(f"== attempt {row['attempt']}, fence {row['fence']}: {stream.value}")
                for line in written.splitlines():
                    print(_shown(line))
        if row["dropped"]:
            print(f"== {row['dropped']} earlier bytes were dropped")


def _shown(line: str) -> str:
    """Return a line as it was written, without control characters."""
    return "\t".join(map(printable, line.split("\t")))


def _nothing(run: Mapping[str, Any], attempt: int | None) -> str:
    which = f"attempt {attempt}" if attempt is not None else "its attempts"
    if run["state"] in {"running", "cancelling"}:
        return f"no output yet: the run is {run['state']}; follow it with --follow"
    return f"{which} stored no output"
