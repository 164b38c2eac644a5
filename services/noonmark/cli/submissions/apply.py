"""`noonmark job apply`: create and change jobs to match files."""

from __future__ import annotations

import sys
from typing import Annotated

import typer

from noonmark.cli.terminal.bulk_requests import DryRun, Yes
from noonmark.cli.terminal.options import AsJson
from noonmark.cli.terminal.problems import CliError, ExitCode


def apply(
    *,
    files: Annotated[
        list[str],
        typer.Option(
            "--file",
            "-f",
            metavar="FILE|FOLDER|-",
            help="File or folder (recursive) with job documents, YAML or JSON, or with what `job export` or"
            " `job show --json` printed; repeatable.",
        ),
    ],
    set_name: Annotated[
        str | None,
        typer.Option("--set", help="Set of these jobs: labels them, for --prune."),
    ] = None,
    prune: Annotated[
        bool,
        typer.Option(
            "--prune",
            help="Cancel jobs of the set that are not in the files, in the namespaces of the files.",
        ),
    ] = False,
    namespace: Annotated[
        str | None,
        typer.Option("--namespace", help="Namespace of documents that name none; also used by --prune."),
    ] = None,
    dry_run: DryRun = False,
    yes: Yes = False,
    as_json: AsJson = False,
) -> None:
    """Create and change jobs to match files.

    A job is identified by its namespace and name. The command shows and changes the fields that differ, and
    skips jobs without a difference. If any document is invalid, nothing is changed.
    """
    if prune and set_name is None:
        raise CliError("--prune needs --set: it cancels only jobs of the set", ExitCode.USAGE)
    from noonmark.cli.submissions.apply_files import read_sources  # noqa: PLC0415 - not needed to show help
    from noonmark.cli.submissions.apply_steps import apply_sources  # noqa: PLC0415
    from noonmark.cli.submissions.shown_jobs import NOTE  # noqa: PLC0415

    sources, problems = read_sources(files)
    if any(source.shown for source in sources):
        print(f"note: {NOTE}", file=sys.stderr)
    apply_sources(
        sources,
        problems,
        set_name=set_name,
        prune=prune,
        namespace=namespace,
        dry_run=dry_run,
        yes=yes,
        as_json=as_json,
        report=None,
    )
