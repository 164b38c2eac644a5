"""`noonmark healthcheck`: check the service of this container or machine."""

from __future__ import annotations

import os
import sys
from typing import Annotated

import typer

from noonmark.cli.terminal.problems import CliError, ExitCode


def healthcheck(
    *,
    host: Annotated[
        str | None, typer.Option(help="Address of the service. (default: NOONMARK_METRICS_HOST, or loopback)")
    ] = None,
    port: Annotated[
        int | None,
        typer.Option(min=1, max=65_535, help="Metrics port of the service. (default: NOONMARK_METRICS_PORT)"),
    ] = None,
    ready: Annotated[bool, typer.Option("--ready", help="Check readiness instead of liveness.")] = False,
) -> None:
    """Check a service's health and print its answer. Exits 1 if unhealthy."""
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
