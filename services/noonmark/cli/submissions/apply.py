"""`noonmark job apply`: jobs as files declare them; what differs is changed, and nothing else."""

from __future__ import annotations

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
            help="Job documents, YAML or JSON, several in a file; of a folder all below it; repeatable.",
        ),
    ],
    set_name: Annotated[
        str | None,
        typer.Option("--set", help="Name of the set that these jobs are: labels them, for --prune later."),
    ] = None,
    prune: Annotated[
        bool,
        typer.Option(
            "--prune",
            help="End the jobs of the set that are no longer in the files, in the namespaces that they name.",
        ),
    ] = False,
    namespace: Annotated[
        str | None,
        typer.Option("--namespace", help="Namespace of documents that name none; --prune looks there, too."),
    ] = None,
    dry_run: DryRun = False,
    yes: Yes = False,
    as_json: AsJson = False,
) -> None:
    """Make jobs as files declare them.

    A job is known by its namespace and name. The fields that differ are shown, and changed; a job without a
    difference is left alone. If any document is wrong, nothing is changed.
    """
    if prune and set_name is None:
        raise CliError("--prune needs --set: it ends only jobs that an apply of the set made", ExitCode.USAGE)
    from noonmark.cli.submissions.apply_files import read_sources  # noqa: PLC0415 - not needed to show help
    from noonmark.cli.submissions.apply_steps import apply_sources  # noqa: PLC0415

    sources, problems = read_sources(files)
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
