"""Hands the metrics of a check to Prometheus: the command has ended before anything could scrape it."""

from __future__ import annotations

import time
from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final
from urllib.error import HTTPError
from urllib.parse import unquote, urlsplit

from noonmark.cli.terminal.problems import CliError, ExitCode, first_line

if TYPE_CHECKING:
    from noonmark.cli.verify.findings import Report

JOB: Final = "noonmark-verify"
"""The label `job` of what is pushed."""
_PUSH_SECONDS: Final = 10.0


def check_gateway(url: str | None) -> None:
    """Check the address of a Pushgateway before anything else is done.

    Raises:
        CliError: it is not a URL.
    """
    if url is not None and (urlsplit(url).scheme not in {"http", "https"} or not urlsplit(url).hostname):
        raise CliError(
            f"--metrics-gateway {_public(url)!r} is not an address such as http://pushgateway:9091",
            ExitCode.USAGE,
        )


def read_labels(given: list[str]) -> dict[str, str]:
    """Parse labels such as `namespace=prod`.

    Raises:
        CliError: one has no name or no value.
    """
    labels = {}
    for one in given:
        name, _, value = one.partition("=")
        if not name.isidentifier() or not name.isascii() or not value or name == "job":
            raise CliError(
                f"--metrics-label {one!r} is not name=value, such as namespace=prod; job is set already",
                ExitCode.USAGE,
            )
        labels[name] = value
    return labels


def write_file(report: Report, path: Path, *, period_seconds: int | None) -> None:
    """Write the metrics of a check for the textfile collector of a node exporter, in one step.

    Raises:
        CliError: the file cannot be written.
    """
    from prometheus_client import write_to_textfile  # noqa: PLC0415

    try:
        write_to_textfile(str(path), _measured(report, period_seconds))
    except OSError as error:
        raise CliError(f"cannot write {path}: {error.strerror}") from error


def push(report: Report, url: str, labels: Mapping[str, str], *, period_seconds: int | None) -> None:
    """Replace the metrics of a group in a Pushgateway.

    Args:
        report: of the check.
        url: of the Pushgateway; may contain a user and a password.
        labels: of the group, in addition to `job`.
        period_seconds: how often the check is called; None: not known.

    Raises:
        CliError: the Pushgateway does not answer, or refuses the metrics.
    """
    from prometheus_client import push_to_gateway  # noqa: PLC0415

    try:
        push_to_gateway(
            _public(url),
            JOB,
            _measured(report, period_seconds),
            grouping_key=dict(labels),
            timeout=_PUSH_SECONDS,
            handler=_handler(url),
        )
    except OSError as error:
        if isinstance(error, HTTPError):
            error.close()
        raise CliError(
            f"cannot push metrics to {_public(url)}: {first_line(getattr(error, 'reason', None) or error)};"
            " check --metrics-gateway and that the Pushgateway is up",
            ExitCode.UNREACHABLE,
        ) from error


def _measured(report: Report, period_seconds: int | None) -> Any:
    from noonmark.telemetry import metrics  # noqa: PLC0415

    metrics.VERIFY_FINDINGS.replace({(rule,): report.counts[rule] for rule in report.rules})
    metrics.VERIFY_RUNS.set(report.runs)
    metrics.VERIFY_COMPLETED.set(time.time())
    metrics.VERIFY_PERIOD.replace({} if period_seconds is None else {(): period_seconds})
    names = [row.name for row in metrics.TABLE if row.shown_by == ("verify",)]
    return metrics.REGISTRY.restricted_registry(names)


def _handler(url: str) -> Any:
    """Return what sends the request: with the user and password of the URL, if it has them."""
    from prometheus_client.exposition import basic_auth_handler, default_handler  # noqa: PLC0415

    parts = urlsplit(url)
    if parts.username is None:
        return default_handler
    return partial(
        basic_auth_handler, username=unquote(parts.username), password=unquote(parts.password or "")
    )


def _public(url: str) -> str:
    """Return a URL without user and password."""
    parts = urlsplit(url)
    return parts._replace(netloc=parts.netloc.rpartition("@")[2]).geturl()
