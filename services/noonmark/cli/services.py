"""Starting one service in this process, until it is told to stop."""

from __future__ import annotations

from importlib import import_module
from typing import Annotated, NoReturn

import typer

from noonmark.cli.context import load_settings
from noonmark.cli.options import Folder, LogLevel, MetricsHost, MetricsPort


def intake(
    metrics_port: MetricsPort = None, metrics_host: MetricsHost = None, log_level: LogLevel = None
) -> None:
    """Take submissions from Kafka into the database."""
    _serve("intake", metrics_port=metrics_port, metrics_host=metrics_host, log_level=log_level)


def trigger(
    metrics_port: MetricsPort = None, metrics_host: MetricsHost = None, log_level: LogLevel = None
) -> None:
    """Queue what is due: jobs, retries, runs whose worker was lost."""
    _serve("trigger", metrics_port=metrics_port, metrics_host=metrics_host, log_level=log_level)


def dispatcher(
    metrics_port: MetricsPort = None, metrics_host: MetricsHost = None, log_level: LogLevel = None
) -> None:
    """Relay what is queued to Kafka, and measure lag."""
    _serve("dispatcher", metrics_port=metrics_port, metrics_host=metrics_host, log_level=log_level)


def worker(
    *,
    pool: Annotated[str | None, typer.Option(help="Which runs to take: those of this pool.")] = None,
    handlers: Annotated[
        list[str] | None, typer.Option(help="Module that registers Python handlers; repeatable.")
    ] = None,
    path: Folder = None,
    slots: Annotated[int | None, typer.Option(help="Runs executed at once.")] = None,
    metrics_port: MetricsPort = None,
    metrics_host: MetricsHost = None,
    log_level: LogLevel = None,
) -> None:
    """Execute the runs of a pool."""
    settings = load_settings(
        pool=pool,
        handlers=tuple(handlers) if handlers else None,
        worker_slots=slots,
        metrics_port=metrics_port,
        metrics_host=metrics_host,
        log_level=log_level,
    )
    raise typer.Exit(import_module("noonmark.worker.main").run(settings, path))


def _serve(name: str, **overrides: object) -> NoReturn:
    """Run a service with the settings of the environment, options first; its exit code is the command's."""
    settings = load_settings(**overrides)
    raise typer.Exit(import_module(f"noonmark.{name}.main").run(settings))
