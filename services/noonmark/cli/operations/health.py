"""`noonmark healthcheck`: is the service of this container, or of this machine, well?"""

from __future__ import annotations

import os
import sys
from typing import Annotated

import typer

from noonmark.cli.terminal.problems import CliError, ExitCode


def healthcheck(
    *,
    host: Annotated[
        str | None, typer.Option(help="Where it listens. (default: NOONMARK_METRICS_HOST, or loopback)")
    ] = None,
    port: Annotated[
        int | None, typer.Option(min=1, max=65_535, help="Its port. (default: NOONMARK_METRICS_PORT)")
    ] = None,
    ready: Annotated[
        bool, typer.Option("--ready", help="Ask whether it can do its work, not only whether it is alive.")
    ] = False,
) -> None:
    """Ask a service how it is, and print its answer; exit code 1 unless it is well."""
    from noonmark.service.healthcheck import HealthcheckError, ask, metrics_address  # noqa: PLC0415

    given = {"NOONMARK_METRICS_HOST": host, "NOONMARK_METRICS_PORT": None if port is None else str(port)}
    options = {name: value for name, value in given.items() if value is not None}
    try:
        address = metrics_address({**os.environ, **options})
    except HealthcheckError as error:
        raise CliError(str(error), ExitCode.USAGE) from error
    answer = ask(*address, "/readyz" if ready else "/livez")
    print(answer.text, file=sys.stdout if answer.good else sys.stderr)
    if not answer.good:
        raise typer.Exit(ExitCode.PROBLEM)
